/* The files that a run has left, as they arrive: listed with their digests, held for the reply,
 * handed on to whoever keeps them; and what was left out.
 *
 *   runs in    the front, the caller
 *   owns       the list, the contents that the reply will hold
 *   threads    none
 *   trusts     no byte of the stream (wire/files.h), and not that it ends
 */
#pragma once

#include "wire/files.h"

#include <nettle/sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct writer;

/* What a request wants of the files. */
enum artifacts {
	ARTIFACTS_NONE,
	ARTIFACTS_LIST,   /* their names and digests */
	ARTIFACTS_INLINE, /* and their contents, as far as they fit */
	ARTIFACTS_MAX
};

/* "none", "list", "inline"; and back: ARTIFACTS_MAX for another word. */
const char *artifacts_word(enum artifacts a);
enum artifacts artifacts_by_word(const char *word) __attribute__((nonnull));

struct artifact {
	char *path; /* terminated */
	size_t path_len;
	uint64_t size;
	unsigned char sha256[SHA256_DIGEST_SIZE];
	char *content; /* NULL: it is not in the reply */
	bool kept;     /* the keeper has it */
	void *place;   /* ...and knows it by this; NULL once it is nobody's here */
};

struct left_out {
	char *path; /* terminated */
	size_t path_len;
	uint64_t size;
	enum files_reason why;
};

/* Who keeps the contents beyond the reply. */
struct artifacts_keeper {
	/* 0: `size` bytes will come, one file after the other. A negative errno: no room. */
	int (*begin)(void *ctx, uint64_t size, void **ret_place);
	/* The bytes from `at` on. A negative errno: it cannot be kept after all. */
	int (*bytes)(void *ctx, void *place, uint64_t at, const void *bytes, size_t len);
	/* It is wanted no more. */
	void (*drop)(void *ctx, void *place);
	void *ctx;
};

struct artifacts_plan {
	enum artifacts mode;
	struct files_caps caps; /* what the supervisor lets nobody pass; more is a broken stream */
	uint64_t inline_bytes;
	const struct artifacts_keeper *keeper; /* borrowed; NULL: nobody keeps anything */
};

struct artifacts_list {
	struct artifact *files;
	size_t count, room;
	struct left_out *skipped;
	size_t skipped_count, skipped_room;
	uint64_t more; /* left out, and not even named */
	bool complete; /* the stream has come to its end */
	struct artifacts_plan plan;
	uint64_t total_bytes, skipped_bytes, inline_left;
	/* The file that is arriving, the last of `files`: */
	bool arriving;
	uint64_t got;
	struct sha256_ctx digest;
	struct files_reader reader;
};

/* What a reader tells a list: `ctx` is the list. artifacts_feed() has one of its own. */
extern const struct files_calls artifacts_calls;

/* An empty list; `plan` is copied. */
void artifacts_init(struct artifacts_list *l, const struct artifacts_plan *plan)
	__attribute__((nonnull));

/* The next bytes of the stream. 0; -EPROTO with *ret_rule; -ENOMEM. */
int artifacts_feed(struct artifacts_list *l, const void *bytes, size_t len, const char **ret_rule)
	__attribute__((nonnull));

/* Nothing more comes: what is there stays, and a file that has not come whole is left out. */
void artifacts_end(struct artifacts_list *l) __attribute__((nonnull));

/* What the keeper has of it is not kept after all: a file without content is left out then. */
void artifacts_unkeep(struct artifacts_list *l) __attribute__((nonnull));

void artifacts_free(struct artifacts_list *l) __attribute__((nonnull));

/* "files" and "skipped". `l` NULL: both are empty. `id` is the run's where its files can be asked
 * for, NULL where they cannot. */
void artifacts_put(struct writer *w, const struct artifacts_list *l, const char *id)
	__attribute__((nonnull(1)));

/* The media type of a name, by its extension; application/octet-stream where it tells nothing. */
const char *artifacts_mime(const char *path, size_t len) __attribute__((nonnull));
