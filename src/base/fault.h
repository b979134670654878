/* A failure with its story: a negative errno plus the chain of what was being
 * attempted, outermost first ("cell c7: workspace: fsopen tmpfs: ...").
 *
 * Fixed size and free of heap pointers on purpose: the child between clone3()
 * and execve() must not allocate, and one write() of a whole fault to a pipe or
 * one message on the wire has to carry it.
 *
 *   runs in    every process
 *   threads    none; a fault belongs to its caller
 */
#pragma once

#include <limits.h>
#include <stddef.h>

struct fault {
	int code; /* negative errno, 0 while nothing went wrong */
	char text[508];
};
_Static_assert(sizeof(struct fault) <= PIPE_BUF, "a fault must cross a pipe in one piece");

/* Both return f->code, so that a caller can write `return fault_set(...)`.
 * fault_set() records the first cause and appends strerror(-code) to the text;
 * fault_wrap() puts context and ": " in front of what is there. A text that does
 * not fit loses its end, never its beginning. `f` may be NULL: then only the
 * code is returned. `code` must be negative. */
int fault_set(struct fault *f, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(3)));
int fault_wrap(struct fault *f, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));

/* As fault_set(), but without the errno's own text: for failures whose message is
 * complete in itself ("memory_limit_mb must be at least 4"). */
int fault_say(struct fault *f, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull(3)));

/* Make a fault that came from another process safe to use: terminates the text
 * and replaces control bytes by '?'; a code that is no negative errno becomes
 * -EPROTO. Returns f->code. */
int fault_launder(struct fault *f) __attribute__((nonnull));
