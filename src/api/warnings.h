/* What a caller should know although the run went on: the reply's warnings[]. Bounded.
 *
 *   runs in    the front, the caller
 *   owns       its texts, until warnings_free()
 */
#pragma once

#define WARNINGS_MAX 24

struct warnings {
	unsigned count;
	char *text[WARNINGS_MAX]; /* valid UTF-8 */
};

/* Add one; beyond WARNINGS_MAX, or out of memory, it is lost. */
void warnings_add(struct warnings *w, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(1, 2)));
void warnings_free(struct warnings *w) __attribute__((nonnull));
