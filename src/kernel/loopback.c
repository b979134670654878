#include "kernel/loopback.h"

#include "base/fault.h"
#include "base/own.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int loopback_up(struct fault *f)
{
	cleanup_fd int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };

	if (fd < 0)
		return fault_set(f, -errno, "loopback: socket");
	if (ioctl(fd, SIOCSIFFLAGS, &req) < 0)
		return fault_set(f, -errno, "loopback: bring lo up");
	return 0;
}
