#include "base/log.h"

#include <errno.h>
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
} state = { "glovebox", LOG_LEVEL_INFO, 0 };

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
	if (write(STDERR_FILENO, line, n) == (ssize_t)n)
		state.lost = 0;
	else
		state.lost++;
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

void log_relay(const char *bytes, size_t len)
{
	char out[LOG_LINE_MAX];

	while (len > 0) {
		size_t n = len < sizeof(out) ? len : sizeof(out);

		for (size_t i = 0; i < n; i++) {
			unsigned char c = (unsigned char)bytes[i];

			out[i] = (char)(c == '\n' || (c >= 0x20 && c < 0x7f) ? c : '?');
		}
		(void)!write(STDERR_FILENO, out, n);
		bytes += n;
		len -= n;
	}
}
