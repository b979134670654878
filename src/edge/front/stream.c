#include "edge/front/stream.h"

#include "base/clock.h"
#include "base/own.h"

#include <errno.h>
#include <event2/event.h>
#include <stdint.h>
#include <sys/ioctl.h>

/* What is read at one go: as much as a pipe holds by default. After it the others have
 * their turn, so that a flooding program cannot starve them. */
#define CHUNK 65536

static char chunk[CHUNK];

static void stop(struct stream *s)
{
	if (s->ready)
		event_free(s->ready); /* before the descriptor: epoll must forget it first */
	s->ready = NULL;
	drop_fd(&s->fd);
}

/* One read() of at most `room` bytes. How many came; 0 at the end, at an error and when
 * nothing is there, with *ret_over telling whether more may come. */
static size_t take(struct stream *s, size_t room, int *ret_over)
{
	ssize_t n;

	do
		n = read(s->fd, chunk, room < CHUNK ? room : CHUNK);
	while (n < 0 && errno == EINTR);
	*ret_over = n == 0 || (n < 0 && errno != EAGAIN);
	if (n <= 0)
		return 0;
	if (s->timeline)
		timeline_note(s->timeline, s->which, s->kept.total, (size_t)n, clock_ns());
	/* Out of memory loses bytes but counts them, and the count is in the reply. */
	(void)output_feed(&s->kept, chunk, (size_t)n);
	return (size_t)n;
}

static void on_ready(evutil_socket_t fd, short what, void *arg)
{
	struct stream *s = arg;
	int over;

	(void)fd;
	(void)what;
	(void)take(s, CHUNK, &over);
	if (over)
		stop(s);
}

int stream_open(struct stream *s, struct event_base *base, int fd, size_t cap)
{
	*s = (struct stream){ .fd = fd };
	output_init(&s->kept, cap);
	s->ready = event_new(base, fd, EV_READ | EV_PERSIST, on_ready, s);
	if (!s->ready || event_add(s->ready, NULL) < 0) {
		stop(s);
		return -ENOMEM;
	}
	return 0;
}

void stream_drain(struct stream *s)
{
	int there = 0, over = 0;
	size_t left, n;

	/* The amount is asked for once: if somebody still writes, this ends all the same. */
	if (s->fd >= 0 && ioctl(s->fd, FIONREAD, &there) == 0 && there > 0) {
		for (left = (size_t)there; left > 0 && !over; left -= n) {
			n = take(s, left, &over);
			if (n == 0)
				break;
		}
	}
}

void stream_close(struct stream *s)
{
	stop(s);
	output_free(&s->kept);
}
