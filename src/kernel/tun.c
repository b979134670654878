#include "kernel/tun.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "wire/interface.h"

#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/route.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <linux/if_tun.h>

static int open_device(struct fault *f)
{
	int fd = sys.openat(AT_FDCWD, "/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC, 0);

	if (fd == -ENOENT || fd == -ENODEV || fd == -ENXIO)
		return fault_say(f, fd,
			"network: there is no /dev/net/tun here; `modprobe tun` may bring it, in a "
			"container --device /dev/net/tun");
	return fd < 0 ? fault_set(f, fd, "network: open /dev/net/tun") : fd;
}

int tun_check(struct fault *f)
{
	cleanup_fd int fd = open_device(f);

	return fd < 0 ? fd : 0;
}

int tun_open(int pidfd, int *ret_fd, struct fault *f)
{
	cleanup_fd int own = sys.openat(AT_FDCWD, "/proc/self/ns/net", O_RDONLY | O_CLOEXEC, 0);
	int r, fd;

	if (own < 0)
		return fault_set(f, own, "open the own network namespace");
	r = sys.setns(pidfd, CLONE_NEWNET);
	if (r < 0)
		return fault_set(f, r, "enter the cell's network namespace");
	fd = open_device(f);
	r = sys.setns(own, CLONE_NEWNET);
	if (r < 0)
		cannot_go_on("return to the own network namespace", r);
	if (fd < 0)
		return fd;
	*ret_fd = fd;
	return 0;
}

/* ---- Setting up, with the calls that ifconfig and route are made of ---- */

struct in6_ifreq_ { /* linux/ipv6.h and netinet/in.h cannot both be included */
	struct in6_addr address;
	uint32_t prefix;
	int index;
};

struct in6_rtmsg_ {
	struct in6_addr target, source, gateway;
	uint32_t type;
	uint16_t target_bits, source_bits;
	uint32_t metric;
	unsigned long info;
	uint32_t flags;
	int index;
};

static struct sockaddr_in address4(const uint8_t bytes[4])
{
	struct sockaddr_in a = { .sin_family = AF_INET };

	memcpy(&a.sin_addr, bytes, sizeof(a.sin_addr));
	return a;
}

static int ask(int fd, unsigned long request, void *argument, const char *what, struct fault *f)
{
	int r = sys.ioctl(fd, request, argument);

	return r < 0 ? fault_set(f, r, "%s", what) : 0;
}

static int set_address4(
	int fd, unsigned long request, const uint8_t bytes[4], const char *what, struct fault *f)
{
	struct ifreq req = { .ifr_name = INTERFACE_NAME };
	struct sockaddr_in a = address4(bytes);

	memcpy(&req.ifr_addr, &a, sizeof(a));
	return ask(fd, request, &req, what, f);
}

static int add_route4(int fd, struct fault *f)
{
	static const uint8_t gate[4] = { INTERFACE_GATE4 }, any[4] = { 0 };
	struct rtentry route = { .rt_flags = RTF_UP | RTF_GATEWAY };
	struct sockaddr_in to = address4(any), by = address4(gate);

	memcpy(&route.rt_dst, &to, sizeof(to));
	memcpy(&route.rt_genmask, &to, sizeof(to));
	memcpy(&route.rt_gateway, &by, sizeof(by));
	return ask(fd, SIOCADDRT, &route, "IPv4 route", f);
}

static int set_up4(struct fault *f)
{
	static const uint8_t cell[4] = { INTERFACE_CELL4 }, mask[4] = { INTERFACE_MASK4 };
	cleanup_fd int fd = sys.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_name = INTERFACE_NAME };
	int r;

	if (fd < 0)
		return fault_set(f, fd, "IPv4 socket");
	r = set_address4(fd, SIOCSIFADDR, cell, "IPv4 address", f);
	if (r == 0)
		r = set_address4(fd, SIOCSIFNETMASK, mask, "IPv4 network", f);
	req.ifr_mtu = INTERFACE_MTU;
	if (r == 0)
		r = ask(fd, SIOCSIFMTU, &req, "MTU", f);
	req.ifr_flags = IFF_UP | IFF_RUNNING | IFF_POINTOPOINT | IFF_NOARP;
	if (r == 0)
		r = ask(fd, SIOCSIFFLAGS, &req, "bring it up", f);
	return r == 0 ? add_route4(fd, f) : r;
}

/* A kernel or a host without IPv6 says so in one of these. */
static bool is_without(int code)
{
	return code == -EAFNOSUPPORT || code == -EACCES || code == -EPERM || code == -ENODEV ||
	       code == -EOPNOTSUPP;
}

static int set_up6(struct fault *f)
{
	static const struct in6_addr cell = { { { INTERFACE_CELL6 } } },
				     gate = { { { INTERFACE_GATE6 } } };
	cleanup_fd int fd = sys.socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct in6_ifreq_ address = { cell, INTERFACE_BITS6, 0 };
	struct in6_rtmsg_ route = { .gateway = gate, .metric = 1 };
	struct ifreq req = { .ifr_name = INTERFACE_NAME };
	int r;

	if (fd < 0)
		return is_without(fd) ? 0 : fault_set(f, fd, "IPv6 socket");
	r = ask(fd, SIOCGIFINDEX, &req, "number of the interface", f);
	if (r < 0)
		return r;
	address.index = route.index = req.ifr_ifindex;
	r = sys.ioctl(fd, SIOCSIFADDR, &address);
	if (r < 0)
		return is_without(r) ? 0 : fault_set(f, r, "IPv6 address");
	route.flags = RTF_UP | RTF_GATEWAY;
	return ask(fd, SIOCADDRT, &route, "IPv6 route", f);
}

int tun_set_up(int tun_fd, struct fault *f)
{
	struct ifreq req = { .ifr_name = INTERFACE_NAME };
	int r;

	req.ifr_flags = IFF_TUN | IFF_NO_PI;
	r = ask(tun_fd, TUNSETIFF, &req, "make the interface", f);
	if (r == 0)
		r = set_up4(f);
	if (r == 0)
		r = set_up6(f);
	return r;
}
