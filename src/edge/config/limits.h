/* The section `limits` of a manifest, of a language or of an image: what holds where a request names
 * none.
 *
 *   runs in    the config process, and the process that reads images; pure
 *   trusts     no byte of the text
 */
#pragma once

#include "edge/config/document.h"
#include "wire/limits.h"

struct fault;

/* As libcyaml fills it by `limits_section_fields`; NULL: it is not there. */
struct limits_section {
	char *timeout, *memory, *cpu, *pids;
};
extern const cyaml_schema_field_t limits_section_fields[];

/* As numbers. A member of *ret of which the section says nothing stays as it is. A value that is
 * none, or out of range, is a fault with its line. */
int limits_take(const struct document *text, const struct limits_section *section,
	struct run_limits *ret, struct fault *f) __attribute__((nonnull));
