#include "base/log.h"

#include "base/clock.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *const level_names[] = { "err", "warn", "info", "debug" };

static struct {
	const char *proc;
	enum log_level max;
	unsigned long lost;
	log_held_fn *held; /* NULL: every line is written at once */
	void *held_ctx;
} state = { "glovebox", LOG_LEVEL_INFO, 0, NULL, NULL };

/* Lines that wait for log_flush(). A pipe takes them whole or not at all. */
static struct {
	size_t len;
	unsigned long lines, lost_said;
	char bytes[PIPE_BUF];
} held;

void log_setup(const char *proc, enum log_level max)
{
	state.proc = proc;
	state.max = max;
}

bool log_level_parse(const char *text, enum log_level *ret)
{
	for (unsigned i = 0; i < sizeof(level_names) / sizeof(level_names[0]); i++) {
		if (strcmp(text, level_names[i]) == 0) {
			*ret = (enum log_level)i;
			return true;
		}
	}
	return false;
}

static size_t put_head(char *line, size_t room, enum log_level lvl, const char *ev)
{
	struct timespec now;
	struct tm tm;
	size_t n;

	(void)clock_gettime(CLOCK_REALTIME, &now);
	(void)gmtime_r(&now.tv_sec, &tm);
	n = strftime(line, room, "t=%Y-%m-%dT%H:%M:%S", &tm);
	n += (size_t)snprintf(line + n, room - n, ".%03ldZ lvl=%s proc=%s ev=%s",
		now.tv_nsec / 1000000, level_names[lvl], state.proc, ev);
	if (state.lost > 0)
		n += (size_t)snprintf(line + n, room - n, " lines_lost=%lu", state.lost);
	return n;
}

/* Whoever reads the log may have stopped reading, and we must not stop with it. A pipe that
 * polls as writable has room for PIPE_BUF bytes, which is more than any line, and a socket
 * for most of its buffer; files can always be written. */
static bool put(const char *lines, size_t n)
{
	struct pollfd p = { .fd = STDERR_FILENO, .events = POLLOUT };

	return poll(&p, 1, 0) != 0 && write(STDERR_FILENO, lines, n) == (ssize_t)n;
}

static bool put_line(const char *line, size_t n)
{
	bool there = put(line, n);

	state.lost += !there;
	return there;
}

void log_flush(void)
{
	int saved = errno;

	if (held.len > 0 && !put(held.bytes, held.len))
		state.lost += held.lost_said + held.lines;
	held.len = 0;
	held.lines = held.lost_said = 0;
	errno = saved;
}

void log_hold(log_held_fn *told, void *ctx)
{
	state.held = told;
	state.held_ctx = ctx;
	if (!told)
		log_flush();
}

static void hold(const char *line, size_t n)
{
	if (held.len + n > sizeof(held.bytes))
		log_flush();
	if (held.len == 0)
		state.held(state.held_ctx);
	memcpy(held.bytes + held.len, line, n);
	held.len += n;
	held.lines++;
	held.lost_said += state.lost; /* by that line, unless it is lost too */
	state.lost = 0;
}

void log_event(enum log_level lvl, const char *ev, const char *fmt, ...)
{
	char line[LOG_LINE_MAX];
	va_list ap;
	size_t n;
	int saved = errno, more;

	if (lvl > state.max)
		return;
	n = put_head(line, sizeof(line) - 1, lvl, ev);
	if (fmt[0]) {
		line[n++] = ' ';
		va_start(ap, fmt);
		more = vsnprintf(line + n, sizeof(line) - 1 - n, fmt, ap);
		va_end(ap);
		n += more > 0 ? (size_t)more : 0;
		if (n > sizeof(line) - 2)
			n = sizeof(line) - 2;
	}
	line[n++] = '\n';
	if (state.held && lvl >= LOG_LEVEL_INFO) {
		hold(line, n);
	} else {
		log_flush(); /* lines stay in the order of what happened */
		if (put_line(line, n))
			state.lost = 0; /* that line has said it */
	}
	errno = saved;
}

struct log_quoted log_quote(const void *bytes, size_t len)
{
	static const char hex[] = "0123456789abcdef";
	const unsigned char *p = bytes;
	struct log_quoted q;
	size_t n = 0;

	q.text[n++] = '"';
	for (size_t i = 0; i < len; i++) {
		if (n > sizeof(q.text) - 9) { /* room for one escape, "..." and the quote */
			memcpy(q.text + n, "...", 3);
			n += 3;
			break;
		}
		if (p[i] == '"' || p[i] == '\\') {
			q.text[n++] = '\\';
			q.text[n++] = (char)p[i];
		} else if (p[i] >= 0x20 && p[i] < 0x7f) {
			q.text[n++] = (char)p[i];
		} else {
			q.text[n++] = '\\';
			q.text[n++] = 'x';
			q.text[n++] = hex[p[i] >> 4];
			q.text[n++] = hex[p[i] & 15];
		}
	}
	q.text[n++] = '"';
	q.text[n] = '\0';
	return q;
}

static void say_dropped(struct log_relay *r)
{
	if (r->dropped > 0)
		log_warn("relay", "from=%s lines_dropped=%lu", r->from, r->dropped);
	r->dropped = 0;
}

static void relay_line(struct log_relay *r, uint64_t now_ns)
{
	char out[LOG_LINE_MAX + 32];
	size_t n;

	_Static_assert(sizeof(out) <= PIPE_BUF, "one write, whole or not at all");
	if (r->len == 0)
		return;
	if (now_ns - r->second_ns >= NS_PER_S) {
		r->second_ns = now_ns;
		r->second_bytes = 0;
		say_dropped(r);
	}
	n = (size_t)snprintf(out, sizeof(out), "relay=%.16s ", r->from);
	memcpy(out + n, r->line, r->len);
	n += r->len;
	out[n++] = '\n';
	r->len = 0;
	if (r->second_bytes + n > LOG_RELAY_BYTES_PER_S) {
		r->dropped++;
		return;
	}
	r->second_bytes += n;
	(void)put_line(out, n);
}

void log_relay(struct log_relay *r, uint64_t now_ns, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)bytes[i];

		if (c != '\n')
			r->line[r->len++] = (char)(c >= 0x20 && c < 0x7f ? c : '?');
		if (c == '\n' || r->len == sizeof(r->line))
			relay_line(r, now_ns);
	}
}

void log_relay_end(struct log_relay *r, uint64_t now_ns)
{
	relay_line(r, now_ns);
	say_dropped(r);
}
