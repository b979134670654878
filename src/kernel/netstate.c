#include "kernel/netstate.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* All that can change without a capability and outlives the socket that did it. What else
 * /proc/net shows is of the whole host, needs the capability, or is a list of sockets. */
static const char *const files[NETSTATE_FILES] = {
	"sockstat",      /* how many sockets there are; its other numbers are the host's */
	"dev",           /* every packet passes lo, there is no other device */
	"snmp",          /* also what failed before it became a packet: no route */
	"snmp6",         /* the same for IPv6 */
	"netstat",       /* TCP's and IP's finer counters */
	"ip6_flowlabel", /* a label lingers for seconds */
	"rt6_stats",     /* connect() caches a route, without a packet... */
	"ipv6_route",    /* ...and counts what refers to it */
};
enum {
	SOCKSTAT = 0,
	SNMP = 2,
	SNMP6 = 3
};
#define SNMP_TEXT_MAX 8192 /* Linux 6.18: 3.0 KB */
#define SOCKSTAT_MAX  1024

static const char *const free_of_sockets[] = { "sockets: used 0\n", " tw 0 " };

/* Linux 6.18, x86-64: 4.5 KB for a connection that was not accepted and whose other end has been
 * closed (struct tcp_sock, what is queued in it, its hash entries), 0.25 KB for one that only has
 * its time to wait. */
#define SOCKET_BYTES  4096
#define WAITING_BYTES 256

/* From its beginning, which makes the kernel say it anew. */
static int read_all(int fd, char *text, size_t room, size_t *ret_len)
{
	size_t len = 0;

	while (fd >= 0 && len < room) {
		ssize_t n = sys.pread(fd, text + len, room - len, (off_t)len);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		len += (size_t)n;
	}
	*ret_len = len;
	return len < room ? 0 : -EFBIG;
}

static int read_counters(const struct netstate *n, char text[NETSTATE_TEXT_MAX], size_t *ret_len)
{
	*ret_len = 0;
	for (unsigned i = SOCKSTAT + 1; i < NETSTATE_FILES; i++) {
		size_t len;
		int r = read_all(n->fd[i], text + *ret_len, NETSTATE_TEXT_MAX - *ret_len, &len);

		if (r < 0)
			return r;
		*ret_len += len;
	}
	return 0;
}

/* The list of how many sockets there are, as a string. */
static int read_sockstat(const struct netstate *n, char *text, size_t room)
{
	size_t len;
	int r = read_all(n->fd[SOCKSTAT], text, room - 1, &len);

	if (r == 0)
		text[len] = '\0';
	return r;
}

static bool has_sockets(const struct netstate *n)
{
	char text[SOCKSTAT_MAX];

	if (read_sockstat(n, text, sizeof(text)) < 0)
		return true;
	for (size_t i = 0; i < ARRAY_LEN(free_of_sockets); i++) {
		if (!strstr(text, free_of_sockets[i]))
			return true;
	}
	return false;
}

/* The next word of the line at *at, which moves behind it; an empty one at the line's end. */
static size_t next_word(const char **at, const char **ret)
{
	size_t len;

	*at += strspn(*at, " \t");
	len = strcspn(*at, " \t\n");
	*ret = *at;
	*at += len;
	return len;
}

static int parse_number(const char *word, size_t len, uint64_t *ret)
{
	char text[24];

	if (len == 0 || len >= sizeof(text))
		return -EINVAL;
	memcpy(text, word, len);
	text[len] = '\0';
	return io_parse_u64(text, ret);
}

static bool is_word(const char *word, size_t len, const char *text)
{
	return strlen(text) == len && memcmp(word, text, len) == 0;
}

/* The line after this one; NULL: there is none. */
static const char *next_line(const char *at)
{
	at = strchr(at, '\n');
	return at && at[1] ? at + 1 : NULL;
}

/* The first line at or after `at` that begins with `name`, behind that; NULL: none does. */
static const char *find_line(const char *at, const char *name)
{
	for (; at; at = next_line(at)) {
		const char *word, *rest = at;
		size_t len = next_word(&rest, &word);

		if (is_word(word, len, name))
			return rest;
	}
	return NULL;
}

int netstate_parse_snmp(const char *text, const char *name, const char *column, uint64_t *ret)
{
	const char *heading = find_line(text, name), *numbers, *word;
	size_t len;

	numbers = heading ? next_line(heading) : NULL;
	numbers = numbers ? find_line(numbers, name) : NULL;
	if (!numbers)
		return -ENOENT;
	for (;;) {
		const char *number;
		size_t digits;

		len = next_word(&heading, &word);
		digits = next_word(&numbers, &number);
		if (len == 0)
			return -ENOENT;
		if (is_word(word, len, column))
			return parse_number(number, digits, ret);
	}
}

int netstate_parse_snmp6(const char *text, const char *name, uint64_t *ret)
{
	const char *at = find_line(text, name), *word;
	size_t len;

	if (!at)
		return -ENOENT;
	len = next_word(&at, &word);
	return parse_number(word, len, ret);
}

/* Both counters, since the namespace was made. A kernel without IPv6 has one. */
static uint64_t read_unrouted(const struct netstate *n)
{
	static char text[SNMP_TEXT_MAX]; /* static: too large for a careful stack */
	uint64_t v4 = 0, v6 = 0;
	size_t len;

	if (read_all(n->fd[SNMP], text, sizeof(text) - 1, &len) == 0) {
		text[len] = '\0';
		(void)netstate_parse_snmp(text, "Ip:", "OutNoRoutes", &v4);
	}
	if (read_all(n->fd[SNMP6], text, sizeof(text) - 1, &len) == 0) {
		text[len] = '\0';
		(void)netstate_parse_snmp6(text, "Ip6OutNoRoutes", &v6);
	}
	return v4 + v6;
}

uint64_t netstate_unrouted(const struct netstate *n)
{
	uint64_t now = n->len > 0 ? read_unrouted(n) : 0;

	return now > n->unrouted ? now - n->unrouted : 0;
}

int netstate_open(pid_t pid, struct netstate *ret, struct fault *f)
{
	cleanup_fd int dir = -1;
	char path[32];
	int r = 0;

	netstate_clear(ret);
	(void)snprintf(path, sizeof(path), "/proc/%d/net", (int)pid);
	dir = sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return fault_set(f, dir, "open %s", path);
	for (unsigned i = 0; r == 0 && i < NETSTATE_FILES; i++) {
		ret->fd[i] = sys.openat(dir, files[i], O_RDONLY | O_CLOEXEC, 0);
		if (ret->fd[i] < 0 && ret->fd[i] != -ENOENT)
			r = fault_set(f, ret->fd[i], "open %s/%s", path, files[i]);
	}
	if (r == 0) {
		r = read_counters(ret, ret->text, &ret->len);
		if (r < 0)
			(void)fault_set(f, r, "read %s", path);
		ret->unrouted = read_unrouted(ret);
	}
	if (r < 0)
		netstate_close(ret);
	return r;
}

bool netstate_is_as_made(const struct netstate *n)
{
	static char now[NETSTATE_TEXT_MAX]; /* static: too large for a careful stack */
	size_t len;

	return n->len > 0 && !has_sockets(n) && read_counters(n, now, &len) == 0 && len == n->len &&
	       memcmp(now, n->text, len) == 0;
}

/* The number behind `word`; 0 without it. */
static uint64_t number_of(const char *text, const char *word)
{
	const char *at = strstr(text, word);

	return at ? strtoul(at + strlen(word), NULL, 10) : 0;
}

uint64_t netstate_socket_bytes(const struct netstate *n)
{
	char text[SOCKSTAT_MAX];

	if (n->len == 0 || read_sockstat(n, text, sizeof(text)) < 0)
		return 0;
	return number_of(text, "sockets: used ") * SOCKET_BYTES +
	       number_of(text, " tw ") * WAITING_BYTES;
}

void netstate_close(struct netstate *n)
{
	n->len = 0;
	for (unsigned i = 0; i < NETSTATE_FILES; i++)
		drop_fd(&n->fd[i]);
}

void netstate_clear(struct netstate *n)
{
	n->len = 0;
	for (unsigned i = 0; i < NETSTATE_FILES; i++)
		n->fd[i] = -1;
}
