/* Settings from outside the config file as the config process wants them: a sealed memfd
 * of records "SPELLING=VALUE", each ended by NUL; and the config file itself.
 *
 *   runs in    the caller
 *   owns       the descriptors belong to the caller
 */
#pragma once

struct fault;

#define CONFIG_FILE_DEFAULT "/etc/glovebox/glovebox.yaml"

/* `records` ends with NULL and may be NULL itself; `first`, if there is one, goes before
 * them: it is what holds where they say nothing, though the file is asked before it. `runtimes` is as for
 * manifests_write(). */
int overrides_make(const char *first, const char *const *records, const char *runtimes, int *ret_fd,
	struct fault *f) __attribute__((nonnull(4, 5), warn_unused_result));

/* Open the config file of that path; "": none (/dev/null); NULL: the default one, if it
 * is there. */
int overrides_open_file(const char *path, int *ret_fd, struct fault *f)
	__attribute__((nonnull(2, 3), warn_unused_result));
