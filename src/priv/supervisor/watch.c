#include "priv/supervisor/watch.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>

#define RETRY_NS (5 * NS_PER_MS)

/* What could not be watched: an end that nobody hears of would hold its run until its deadline. */
static struct missed {
	int epoll_fd, fd;
	struct epoll_event event;
} missed[WATCH_MISSED_MAX];
static unsigned missed_count;
static uint64_t missed_due_ns;

static void miss(const struct watch *w, int fd, const struct epoll_event *ev)
{
	if (missed_count == WATCH_MISSED_MAX)
		return;
	missed[missed_count++] = (struct missed){ w->epoll_fd, fd, *ev };
	missed_due_ns = clock_ns() + RETRY_NS;
}

void watch_add(const struct watch *w, unsigned n, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data.u64 = w->token + n };

	if (fd < 0 || epoll_ctl(w->epoll_fd, EPOLL_CTL_ADD, fd, &ev) == 0 || errno == EEXIST)
		return;
	log_err("watch", "fd=%d why=\"%s\"", fd, strerrordesc_np(errno));
	miss(w, fd, &ev);
}

void watch_drop(const struct watch *w, int fd)
{
	if (fd < 0)
		return;
	(void)epoll_ctl(w->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	for (unsigned i = missed_count; i-- > 0;) {
		if (missed[i].fd == fd && missed[i].epoll_fd == w->epoll_fd)
			missed[i] = missed[--missed_count];
	}
}

uint64_t watch_retry(uint64_t now_ns)
{
	if (missed_count == 0)
		return UINT64_MAX;
	if (now_ns < missed_due_ns)
		return missed_due_ns;
	for (unsigned i = missed_count; i-- > 0;) {
		struct missed *m = &missed[i];

		/* EEXIST and EBADF: somebody else has seen to it. */
		if (epoll_ctl(m->epoll_fd, EPOLL_CTL_ADD, m->fd, &m->event) == 0 ||
			errno == EEXIST || errno == EBADF)
			*m = missed[--missed_count];
	}
	missed_due_ns = now_ns + RETRY_NS;
	return missed_count > 0 ? missed_due_ns : UINT64_MAX;
}
