/* Requests that HTTP servers are known to read differently, each with what ours must make
 * of it. One row a rule of the codec.
 *
 *   runs in    tests
 */
#pragma once

#include <stddef.h>

struct http_case {
	const char *name;
	const char *bytes;
	size_t len;
	const char *fill; /* then this, `times` over */
	size_t times;
	const char *tail; /* then this */
	const char *want; /* requests by method and target, with the body length if there is a
			   * body, then how it ends: see the comment in http_cases.c */
};

extern const struct http_case http_cases[];
extern const size_t http_case_count;

/* The row's bytes, on the heap. */
char *http_case_bytes(const struct http_case *c, size_t *ret_len);
