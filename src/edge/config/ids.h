/* Does a file of the user database name an id of our range? Read from the text, so that
 * nothing is loaded (no NSS) by the process that asks.
 *
 *   runs in    the config process; pure
 *   trusts     no byte: a line that cannot be read counts as naming no id
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct id_range {
	uint64_t first, last; /* both inside */
};

/* passwd: "name:x:UID:GID:…"; group: "name:x:GID:…"; subuid: "name:FIRST:COUNT". */
bool ids_passwd_names(const char *text, size_t len, const struct id_range *range)
	__attribute__((nonnull));
bool ids_group_names(const char *text, size_t len, const struct id_range *range)
	__attribute__((nonnull));
bool ids_subuid_names(const char *text, size_t len, const struct id_range *range)
	__attribute__((nonnull));
typedef bool ids_names_fn(const char *text, size_t len, const struct id_range *range);

/* Does the file name an id that a host with this uid-base needs: one of the 65,536 from
 * there on, or the config process's own? */
bool ids_are_taken(const char *text, size_t len, ids_names_fn *names, uint32_t uid_base)
	__attribute__((nonnull));
