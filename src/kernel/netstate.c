#include "kernel/netstate.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* All that can change without a capability and outlives the socket that did it. What else
 * /proc/net shows is of the whole host, needs the capability, or is a list of sockets. */
static const char *const files[] = {
	"dev",           /* every packet passes lo, there is no other device */
	"snmp",          /* also what failed before it became a packet: no route */
	"snmp6",         /* the same for IPv6 */
	"netstat",       /* TCP's and IP's finer counters */
	"ip6_flowlabel", /* a label lingers for seconds */
	"rt6_stats",     /* connect() caches a route, without a packet... */
	"ipv6_route",    /* ...and counts what refers to it */
};

/* The counts of sockets in a reading of sockstat; its other numbers are the host's. */
static const char *const free_of_sockets[] = { "sockets: used 0\n", " tw 0 " };

static int read_file(int dir_fd, const char *name, char *text, size_t room, size_t *ret_len)
{
	cleanup_fd int fd = sys.openat(dir_fd, name, O_RDONLY | O_CLOEXEC, 0);
	size_t len = 0;

	*ret_len = 0;
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	while (len < room) {
		ssize_t n = sys.read(fd, text + len, room - len);

		if (n < 0)
			return (int)n;
		if (n == 0) {
			*ret_len = len;
			return 0;
		}
		len += (size_t)n;
	}
	return -EFBIG;
}

static int check_sockets(int dir_fd, struct fault *f)
{
	char text[1024];
	size_t len;
	int r = read_file(dir_fd, "sockstat", text, sizeof(text) - 1, &len);

	if (r < 0)
		return fault_set(f, r, "read sockstat");
	text[len] = '\0';
	for (size_t i = 0; i < sizeof(free_of_sockets) / sizeof(free_of_sockets[0]); i++) {
		if (!strstr(text, free_of_sockets[i]))
			return fault_say(f, -EBUSY, "sockets are left");
	}
	return 0;
}

int netstate_read(pid_t pid, struct netstate *ret, struct fault *f)
{
	cleanup_fd int dir = -1;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/%d/net", (int)pid);
	dir = sys.openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return fault_set(f, dir, "open %s", path);
	ret->len = 0;
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
		size_t len;
		int r = read_file(
			dir, files[i], ret->text + ret->len, sizeof(ret->text) - ret->len, &len);

		if (r < 0)
			return fault_set(f, r, "read %s/%s", path, files[i]);
		ret->len += len;
	}
	return check_sockets(dir, f);
}

bool netstate_same(const struct netstate *a, const struct netstate *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}
