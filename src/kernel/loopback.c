#include "kernel/loopback.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

int loopback_up(struct fault *f)
{
	cleanup_fd int fd = sys.socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING };
	int r;

	if (fd < 0)
		return fault_set(f, fd, "loopback: socket");
	r = sys.ioctl(fd, SIOCSIFFLAGS, &req);
	return r < 0 ? fault_set(f, r, "loopback: bring lo up") : 0;
}
