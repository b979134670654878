#include "edge/front/link.h"

#include "base/own.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>

struct parcel {
	enum msg_type type;
	int fds[MSG_FDS_MAX];
	union {
		struct msg_submit submit;
		struct msg_cancel cancel;
	} payload; /* all that a client may send */
};

struct link {
	int fd;
	struct event *readable, *writable;
	struct link_calls calls;
	bool dead;
	const char *broken; /* why, found while sending; told by the next readable event */
	unsigned room, head, count;
	struct parcel parcels[];
};

/* Messages taken at one go, so that a busy supervisor does not starve the clients. */
#define BURST 16

static void close_all(int *fds, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		drop_fd(&fds[i]);
}

static void drop_parcels(struct link *l)
{
	for (; l->count > 0; l->count--) {
		struct parcel *p = &l->parcels[l->head];

		close_all(p->fds, msg_fds(p->type));
		l->head = (l->head + 1) % l->room;
	}
}

static void die(struct link *l, const char *why)
{
	l->dead = true;
	(void)event_del(l->readable);
	(void)event_del(l->writable);
	drop_parcels(l);
	l->calls.lost(why, l->calls.ctx);
}

/* A failed send is told from the loop, not from within link_send(): the caller is in
 * the middle of its own work. */
static void break_later(struct link *l, const char *why)
{
	l->broken = why;
	event_active(l->readable, EV_READ, 0);
}

static void on_readable(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;

	(void)what;
	for (unsigned i = 0; i < BURST && !l->dead; i++) {
		const char *rule = "unreadable channel";
		struct msg m;
		int r;

		if (l->broken) {
			die(l, l->broken);
			return;
		}
		r = channel_recv(fd, ROLE_SUPERVISOR, ROLE_CLIENT, &m, &rule);
		if (r == -EAGAIN)
			return;
		if (r <= 0) {
			die(l, r == 0 ? "closed" : rule);
			return;
		}
		l->calls.got(&m, l->calls.ctx);
		msg_done(&m);
	}
}

static void on_writable(evutil_socket_t fd, short what, void *arg)
{
	struct link *l = arg;

	(void)what;
	while (l->count > 0) {
		struct parcel *p = &l->parcels[l->head];
		int r = channel_send(fd, p->type, &p->payload, p->fds);

		if (r == -EAGAIN)
			return;
		if (r < 0) {
			die(l, "unwritable channel");
			return;
		}
		close_all(p->fds, msg_fds(p->type));
		l->head = (l->head + 1) % l->room;
		l->count--;
	}
	(void)event_del(l->writable);
}

static int keep(struct link *l, enum msg_type type, const void *payload, const int *fds)
{
	struct parcel *p = &l->parcels[(l->head + l->count) % l->room];

	if (l->count == l->room || msg_size(type) > sizeof(p->payload))
		return -ENOBUFS;
	if (l->count == 0 && event_add(l->writable, NULL) < 0)
		return -ENOBUFS;
	p->type = type;
	memcpy(&p->payload, payload, msg_size(type));
	if (fds)
		memcpy(p->fds, fds, msg_fds(type) * sizeof(int));
	l->count++;
	return 0;
}

/* The kernel is short of something: this message fails, not the link. */
static bool is_passing(int r)
{
	return r == -ENOMEM || r == -ENOBUFS || r == -ETOOMANYREFS;
}

int link_send(struct link *l, enum msg_type type, const void *payload, int *fds)
{
	int r = -EAGAIN;

	if (l->dead || l->broken) {
		r = -EPIPE;
	} else if (l->count == 0) { /* else it would overtake those that wait */
		r = channel_send(l->fd, type, payload, fds);
		if (r < 0 && r != -EAGAIN && !is_passing(r)) {
			break_later(l, "unwritable channel");
			r = -EPIPE;
		}
	}
	if (r == -EAGAIN) {
		r = keep(l, type, payload, fds);
		if (r == 0)
			return 0;
	}
	if (fds)
		close_all(fds, msg_fds(type));
	return r;
}

struct link *link_create(
	struct event_base *base, int fd, unsigned room, const struct link_calls *calls)
{
	struct link *l = calloc(1, sizeof(*l) + room * sizeof(l->parcels[0]));
	int flags;

	if (!l) {
		(void)close(fd);
		return NULL;
	}
	l->fd = fd;
	l->calls = *calls;
	l->room = room;
	flags = fcntl(fd, F_GETFL);
	l->readable = event_new(base, fd, EV_READ | EV_PERSIST, on_readable, l);
	l->writable = event_new(base, fd, EV_WRITE | EV_PERSIST, on_writable, l);
	if (flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 || !l->readable ||
		!l->writable || event_add(l->readable, NULL) < 0) {
		link_destroy(l);
		return NULL;
	}
	return l;
}

void link_destroy(struct link *l)
{
	if (!l)
		return;
	if (l->readable)
		event_free(l->readable);
	if (l->writable)
		event_free(l->writable);
	drop_parcels(l);
	drop_fd(&l->fd);
	free(l);
}
