/* Bytes that a program wrote, as text: UTF-8 as Python's decoder sees it.
 *
 *   runs in    the front, the caller
 *   owns       nothing
 *   trusts     no byte
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* The length of the first character of `bytes` (`len` > 0), with *ret_ok true; or of
 * the bytes that one U+FFFD stands for (the maximal subpart, as in Python's
 * errors="replace"), with *ret_ok false. At least 1. */
size_t utf8_next(const void *bytes, size_t len, bool *ret_ok) __attribute__((nonnull));

/* How many bytes from the start are valid UTF-8; `len` when all are. */
size_t utf8_valid(const void *bytes, size_t len);

/* Characters in `len` bytes; an invalid sequence counts as the one U+FFFD it becomes. */
size_t utf8_count(const void *bytes, size_t len);

/* `len` less the bytes of a character that is not complete at the end: where a text may be
 * cut. At most 3 bytes shorter. */
size_t utf8_cut_end(const void *bytes, size_t len);

/* How many continuation bytes stand at the start, at most 3: what is left there of a
 * character when a text was cut in front of it. */
size_t utf8_cut_start(const void *bytes, size_t len);

/* Characters of base64, with padding, for `len` bytes. */
size_t base64_len(size_t len);

/* Is it standard base64 (RFC 4648, 4), padded, without line breaks? *ret is then how many bytes
 * base64_decode() makes of it; otherwise where it stops being that, `len` if it ends too early. */
bool base64_valid(const char *text, size_t len, size_t *ret) __attribute__((nonnull));

/* The bytes of a text that base64_valid() has found right. */
void base64_decode(const char *text, size_t len, void *ret) __attribute__((nonnull));
