#include "priv/supervisor/watch.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

void watch_add(const struct watch *w, unsigned n, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = w->token + n };

	if (fd >= 0 && epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 && errno != EEXIST)
		log_err("watch", "fd=%d why=\"%s\"", fd, strerrordesc_np(errno));
}

void watch_drop(const struct watch *w, int fd)
{
	if (fd >= 0)
		(void)epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}
