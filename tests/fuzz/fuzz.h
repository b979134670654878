/* What the fuzz targets share: bytes that are used up one choice after the other, and a count
 * of descriptors, so that one that is left open is a crash.
 *
 *   runs in    fuzz targets
 */
#pragma once

#include "base/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* What is left of the input. When it is used up every choice is 0. */
struct fuzz {
	const uint8_t *at;
	size_t len;
};

static inline uint8_t fuzz_u8(struct fuzz *z)
{
	if (z->len == 0)
		return 0;
	z->len--;
	return *z->at++;
}

static inline uint64_t fuzz_u64(struct fuzz *z)
{
	uint64_t v = 0;

	for (unsigned i = 0; i < 8; i++)
		v = v << 8 | fuzz_u8(z);
	return v;
}

/* At most `most` bytes, borrowed. */
static inline const uint8_t *fuzz_take(struct fuzz *z, size_t most, size_t *ret_len)
{
	const uint8_t *at = z->at;

	*ret_len = most < z->len ? most : z->len;
	z->at += *ret_len;
	z->len -= *ret_len;
	return at;
}

/* Fill `room` bytes, with 0 from where the input ends. */
static inline void fuzz_fill(struct fuzz *z, void *ret, size_t room)
{
	size_t n;
	const uint8_t *at = fuzz_take(z, room, &n);

	memset(ret, 0, room);
	if (n > 0)
		memcpy(ret, at, n);
}

/* A copy in a block of exactly that length, so that ASan notices one byte too far; the caller
 * frees it. */
static inline char *fuzz_block(const void *bytes, size_t len)
{
	char *copy = calloc(1, len ? len : 1);

	CHECK(copy);
	if (len > 0)
		memcpy(copy, bytes, len);
	return copy;
}

/* How many descriptors are open. */
static inline unsigned fuzz_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}
