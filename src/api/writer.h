/* JSON text written piece by piece into one growing buffer: compact, UTF-8 unescaped.
 *
 * It exists because a program's output must not be copied more often than needed: it
 * is escaped straight from where it was captured into the reply. Input is parsed by
 * jansson, never here.
 *
 *   runs in    the front, the caller
 *   owns       its buffer, until writer_take()
 *   threads    none
 *
 * A call that runs out of memory marks the writer; writer_take() then gives NULL, so
 * that only one place has to look. `key` is NULL for the elements of an array and at
 * the top. Commas are the writer's business.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WRITER_DEPTH_MAX 64

struct writer {
	char *bytes;
	size_t len, room;
	uint64_t objects; /* bit d: the container at depth d is an object */
	unsigned depth;
	bool comma; /* a value stands in front of the next one */
	bool failed;
};

void writer_object(struct writer *w, const char *key) __attribute__((nonnull(1)));
void writer_array(struct writer *w, const char *key) __attribute__((nonnull(1)));
void writer_close(struct writer *w) __attribute__((nonnull));

void writer_string(struct writer *w, const char *key, const char *text)
	__attribute__((nonnull(1, 3)));
void writer_format(struct writer *w, const char *key, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(1, 3)));
void writer_u64(struct writer *w, const char *key, uint64_t value) __attribute__((nonnull(1)));
void writer_i64(struct writer *w, const char *key, int64_t value) __attribute__((nonnull(1)));
void writer_bool(struct writer *w, const char *key, bool value) __attribute__((nonnull(1)));
void writer_null(struct writer *w, const char *key) __attribute__((nonnull(1)));

/* Thousandths as whole ones: 1250 is "1.25". */
void writer_thousandths(struct writer *w, const char *key, uint64_t value)
	__attribute__((nonnull(1)));

/* A finite number: with as few digits as tell it apart ("0.1", "300"); and one with at most
 * `decimals` (0-9) behind the point ("12.35"). */
void writer_number(struct writer *w, const char *key, double value) __attribute__((nonnull(1)));
void writer_fixed(struct writer *w, const char *key, double value, int decimals)
	__attribute__((nonnull(1)));

/* A constant piece of JSON, as it stands. */
void writer_raw(struct writer *w, const char *key, const char *json) __attribute__((nonnull(1, 3)));

/* One string made of several pieces; what is not UTF-8 becomes U+FFFD, piece by piece. */
void writer_text_begin(struct writer *w, const char *key) __attribute__((nonnull(1)));
void writer_text(struct writer *w, const void *bytes, size_t len) __attribute__((nonnull(1)));
void writer_text_end(struct writer *w) __attribute__((nonnull));
/* What writer_text() would make of it, in bytes. */
size_t writer_text_len(const void *bytes, size_t len) __attribute__((nonnull));

/* One string: the base64 of two pieces as if they were one. */
void writer_base64(struct writer *w, const char *key, const void *head, size_t head_len,
	const void *tail, size_t tail_len) __attribute__((nonnull(1)));

/* A value as the text that jansson has parsed. */
void writer_json_text(struct writer *w, const char *key, const char *text, size_t len)
	__attribute__((nonnull(1, 3)));

/* The text, terminated, now the caller's to free(); NULL when memory ran out. CHECKs that
 * every container is closed. */
char *writer_take(struct writer *w, size_t *ret_len) __attribute__((nonnull(1)));

/* For CLEANUP(): drops what was not taken. */
void writer_drop(struct writer *w) __attribute__((nonnull));
