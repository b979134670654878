/* One layer of an image, entry by entry: a tar, perhaps compressed, which may be a member of
 * another tar, which may be compressed as well. libarchive reads them; what it hands out is
 * counted against a budget before anybody looks at it, and hashed.
 *
 *   runs in    the process that reads archives
 *   blocks     as the file does
 *   trusts     no byte
 */
#pragma once

#include <archive.h>
#include <archive_entry.h>
#include <nettle/sha2.h>
#include <stdbool.h>
#include <stdint.h>

struct fault;

#define LAYER_BUFFER   (64u << 10)
#define LAYER_NAME_MAX 256 /* of a member, with its end */

/* The archive that is read: a file that can be sought, and the most that may be in it when it is
 * unpacked. */
struct origin {
	int fd;
	uint64_t bytes_max;
};

/* What all layers together may be. */
struct budget {
	uint64_t bytes_max, bytes;
	uint64_t entries_max, entries;
};

struct layer {
	struct archive *outer; /* positioned at the member; NULL: the file is the layer */
	struct archive *plain; /* undoes the compression */
	struct archive *tar;
	struct budget *budget;
	struct sha256_ctx hash;
	struct fault *fault; /* of the call that is going on */
	unsigned char packed[LAYER_BUFFER], unpacked[LAYER_BUFFER];
};

/* Find a member of the tar, from its beginning, and leave *ret to be read from there; a symbolic link
 * is followed to another member, once.
 * -ENOENT: there is none of that name. */
int layer_find_member(const struct origin *from, const char *name, struct archive **ret,
	struct fault *f) __attribute__((nonnull));

/* Open the layer that is member `name` of the archive, or with NULL the archive itself.
 * layer_close() in either case. */
int layer_open(struct layer *l, const struct origin *from, const char *name, struct budget *b,
	struct fault *f) __attribute__((nonnull(1, 2, 4, 5)));
void layer_close(struct layer *l) __attribute__((nonnull));

/* 1 and the next entry, which is the layer's until the next call; 0: that was the last. */
int layer_next(struct layer *l, struct archive_entry **ret, struct fault *f)
	__attribute__((nonnull));

/* Some bytes of the entry. How many; 0: that was all. */
ssize_t layer_read(struct layer *l, void *bytes, size_t room, struct fault *f)
	__attribute__((nonnull));

/* After the last entry: the SHA-256 of the uncompressed layer. */
int layer_digest(struct layer *l, uint8_t ret[static SHA256_DIGEST_SIZE], struct fault *f)
	__attribute__((nonnull));

/* "It is larger than …". Returns -EFBIG. */
int layer_too_large(uint64_t bytes_max, struct fault *f) __attribute__((nonnull));

/* "It has more than …". Returns -E2BIG. */
int layer_too_many(uint64_t entries_max, struct fault *f) __attribute__((nonnull));

/* What libarchive says of `a` as a fault, unless there is one. */
int layer_fault(struct archive *a, struct fault *f, const char *what) __attribute__((nonnull));
