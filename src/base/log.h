/* One line an event, `key=value`, to stderr in a single write():
 *
 *   t=2026-01-02T03:04:05.678Z lvl=info proc=front ev=execute id=… status=success
 *
 * A value that came from outside the program must go through log_quote() (LQ),
 * which clips it and escapes quotes, control bytes and everything beyond ASCII, so
 * that no caller can forge a line.
 *
 *   runs in    every process
 *   blocks     never on a pipe or a socket whose reader has stopped: the line is lost,
 *              counted, and said on the next one that fits. A terminal that is stopped
 *              in the middle of a line, and a disk, are waited for.
 *   threads    none
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum log_level {
	LOG_LEVEL_ERR,  /* someone must act */
	LOG_LEVEL_WARN, /* something was refused or lost */
	LOG_LEVEL_INFO, /* life cycle */
	LOG_LEVEL_DEBUG /* anything */
};

/* The name that this process carries in its lines (a constant string, borrowed),
 * and the highest level that is written. Defaults: "glovebox", LOG_LEVEL_INFO. */
void log_setup(const char *proc, enum log_level max) __attribute__((nonnull));
bool log_level_parse(const char *text, enum log_level *ret) __attribute__((nonnull));

/* Write one event. `ev` is a constant word; `fmt` makes the remaining pairs and may
 * be "" for none. Lines end at LOG_LINE_MAX bytes. */
void log_event(enum log_level lvl, const char *ev, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull));

/* Keep lines of LOG_LEVEL_INFO and LOG_LEVEL_DEBUG, for a process that has something more
 * urgent to do when it logs. `told` is called with the first that is kept: the process then
 * calls log_flush() when it has time. They are written before that when PIPE_BUF bytes have
 * come together or a line of a graver level follows, and lost if the process is killed. NULL:
 * no longer. */
typedef void log_held_fn(void *ctx);
void log_hold(log_held_fn *told, void *ctx);
void log_flush(void);

#define LOG_LINE_MAX 1024 /* under PIPE_BUF, so that lines of several processes never mix */

#define log_err(ev, ...)   log_event(LOG_LEVEL_ERR, ev, __VA_ARGS__)
#define log_warn(ev, ...)  log_event(LOG_LEVEL_WARN, ev, __VA_ARGS__)
#define log_info(ev, ...)  log_event(LOG_LEVEL_INFO, ev, __VA_ARGS__)
#define log_debug(ev, ...) log_event(LOG_LEVEL_DEBUG, ev, __VA_ARGS__)

#define LOG_QUOTE_MAX 200

struct log_quoted {
	char text[LOG_QUOTE_MAX];
};

/* `bytes` as a quoted, escaped and clipped value. */
struct log_quoted log_quote(const void *bytes, size_t len);
#define LQ(s) (log_quote((s), strlen(s)).text)

/* Lines that another process wrote as its log, on their way to our stderr. What it may
 * say of itself is up to it, so each line begins with `relay=FROM ` and cannot be taken
 * for ours; control bytes and all beyond ASCII become '?'. A line over LOG_LINE_MAX is cut
 * into several. Lines over LOG_RELAY_BYTES_PER_S are dropped, and their number is said. */
#define LOG_RELAY_BYTES_PER_S (256u * 1024)

struct log_relay {
	const char *from; /* a constant word; the rest starts as 0 */
	size_t len;
	char line[LOG_LINE_MAX]; /* the one that is not complete */
	uint64_t second_ns;      /* begin of the second that is counted */
	size_t second_bytes;     /* written in it */
	unsigned long dropped;   /* lines, not said yet */
};

/* `len` more bytes, at the time `now_ns` of clock_ns(). */
void log_relay(struct log_relay *r, uint64_t now_ns, const char *bytes, size_t len)
	__attribute__((nonnull));
/* Nothing follows: write the incomplete line, and say what has been dropped. */
void log_relay_end(struct log_relay *r, uint64_t now_ns) __attribute__((nonnull));
