#include "kernel/netstate.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
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
#define SOCKSTAT 0

static const char *const free_of_sockets[] = { "sockets: used 0\n", " tw 0 " };

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

static bool has_sockets(const struct netstate *n)
{
	char text[1024];
	size_t len;

	if (read_all(n->fd[SOCKSTAT], text, sizeof(text) - 1, &len) < 0)
		return true;
	text[len] = '\0';
	for (size_t i = 0; i < ARRAY_LEN(free_of_sockets); i++) {
		if (!strstr(text, free_of_sockets[i]))
			return true;
	}
	return false;
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
