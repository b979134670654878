/* One line an event, `key=value`, to stderr in a single write():
 *
 *   t=2026-01-02T03:04:05.678Z lvl=info proc=front ev=execute id=… status=success
 *
 * A value that came from outside the program must go through log_quote() (LQ),
 * which clips it and escapes quotes, control bytes and everything beyond ASCII, so
 * that no caller can forge a line.
 *
 *   runs in    every process
 *   blocks     as write() to stderr does; a full pipe loses the line, counted and
 *              said on the next one that fits when stderr is non-blocking
 *   threads    none
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

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

/* Copy `len` bytes that another process wrote as its log to our stderr, line by
 * line, with every control byte but newline replaced by '?'. */
void log_relay(const char *bytes, size_t len) __attribute__((nonnull));
