/* A first look at a JSON text, in one pass without recursion and in constant memory. It
 * answers what jansson cannot: how deep is it (before a parser recurses), where and why
 * is it wrong in the words that users of Python's json module know, and which values
 * are JSON but beyond what can be held.
 *
 *   runs in    the front, the caller
 *   owns       nothing
 *   trusts     no byte but that the text is valid UTF-8
 *
 * It is never the judge that accepts: what passes here is parsed by jansson.
 */
#pragma once

#include <stddef.h>

/* Values that jansson would refuse without saying whose they are. */
enum scan_oddity {
	SCAN_NOT_FINITE, /* NaN, Infinity, -Infinity: no JSON, but written by Python */
	SCAN_TOO_BIG,    /* an integer beyond 64 bits, a number beyond a double */
	SCAN_BAD_UNICODE /* a string with half of a surrogate pair */
};

struct scan_odd {
	enum scan_oddity what;
	unsigned depth;         /* containers around it */
	size_t at, len;         /* where it stands; len is at least 2 */
	size_t key_at, key_len; /* its key, raw and without quotes; meaningful at depth 1 */
};

typedef void scan_odd_fn(const struct scan_odd *odd, void *ctx);

struct scan_fault {
	const char *error; /* constant text, "Expecting value" */
	size_t at;         /* byte offset */
};

/* NULL in ret->error: well-formed and at most `depth` (1-64) levels deep; `on_odd` was
 * called for each oddity. Otherwise the first fault. */
void json_scan(const char *text, size_t len, unsigned depth, scan_odd_fn *on_odd, void *ctx,
	struct scan_fault *ret) __attribute__((nonnull(4, 6)));
