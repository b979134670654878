/* Files of runs that are over, for those who come for them: in one file without a name, which is
 * a ring, for as long as the setting says, and gone with this process.
 *
 *   runs in    the front
 *   owns       the file, the index of what is in it
 *   threads    none
 *   blocks     as writing and reading a file does: the kernel's cache takes and has most of it
 *   trusts     no name: none is used but to be compared
 */
#pragma once

#include "api/artifacts.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct event_base;
struct shelf;

/* Names and such of all runs in the shelf; as much as a million short ones. */
#define SHELF_INDEX_MAX (UINT64_C(64) << 20)

struct stored_file {
	char *path;
	size_t path_len;
	uint64_t size;
	void *place; /* NULL: its room is others' */
};

/* What is there of one run. */
struct stored {
	const char *id;
	uint64_t until_ns;
	const struct stored_file *files; /* in the order of their paths */
	size_t count;
};

/* `fd` (taken) is a regular file that nobody else has, of which `capacity` bytes may be used for
 * `keep_us` each. NULL: out of memory. */
struct shelf *shelf_create(struct event_base *base, int fd, uint64_t capacity, uint64_t keep_us)
	__attribute__((nonnull, warn_unused_result));
void shelf_destroy(struct shelf *s);

/* The keeper (api/artifacts.h) that puts files there. */
const struct artifacts_keeper *shelf_keeper(const struct shelf *s) __attribute__((nonnull));

/* Have what is kept of `l` under the run's `id`; nothing: then there is no such run either. 0, or
 * -ENOMEM, also when the index is full: then nothing is, and the list owns its places as before. */
int shelf_put(struct shelf *s, const char *id, struct artifacts_list *l) __attribute__((nonnull));

/* The run of that id, held until shelf_leave(); NULL: it is not there. *ret_gone: it was. After its
 * time its bytes stay until their room is wanted. */
const struct stored *shelf_visit(struct shelf *s, const char *id, bool *ret_gone)
	__attribute__((nonnull));
void shelf_leave(struct shelf *s, const struct stored *run) __attribute__((nonnull));

/* The file of that path, or NULL. */
const struct stored_file *stored_find(const struct stored *run, const char *path, size_t len)
	__attribute__((nonnull));

/* Up to `room` bytes of `f` from `at` on: how many, or a negative errno. -ESTALE: its time was over,
 * and others have its room. */
ssize_t shelf_read(const struct shelf *s, const struct stored_file *f, uint64_t at, void *bytes,
	size_t room) __attribute__((nonnull));
