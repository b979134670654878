#include "edge/front/feed.h"

#include "base/fault.h"
#include "base/own.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void feed_close(struct feed *s)
{
	if (s->ready)
		event_free(s->ready); /* before the descriptor: epoll must forget it first */
	s->ready = NULL;
	drop_fd(&s->fd);
	free(s->bytes);
	*s = FEED_NONE;
}

/* As much as goes. Whether it is over: all is written, or nobody will read it. */
static int write_some(struct feed *s)
{
	while (s->at < s->len) {
		ssize_t n = write(s->fd, s->bytes + s->at, s->len - s->at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno != EAGAIN;
		s->at += (size_t)n;
	}
	return 1;
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct feed *s = arg;

	(void)fd;
	(void)what;
	if (write_some(s))
		feed_close(s);
}

int feed_open(struct feed *s, struct event_base *base, char *bytes, size_t len, int *ret_read_fd,
	struct fault *f)
{
	int ends[2];

	*s = (struct feed){ .bytes = bytes, .len = len, .fd = -1 };
	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, -errno, "pipe for stdin");
	s->fd = ends[1];
	*ret_read_fd = ends[0];
	/* Ours alone: what a program finds as its stdin must block. */
	if (fcntl(s->fd, F_SETFL, O_NONBLOCK) < 0)
		return fault_set(f, -errno, "pipe for stdin");
	if (write_some(s)) {
		feed_close(s);
		return 0;
	}
	s->ready = event_new(base, s->fd, EV_WRITE | EV_PERSIST, on_ready, s);
	if (!s->ready || event_add(s->ready, NULL) < 0)
		return fault_set(f, -ENOMEM, "watch the pipe for stdin");
	return 0;
}
