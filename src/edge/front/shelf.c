#include "edge/front/shelf.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <event2/event.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

/* A piece of the ring. They are taken in the order in which they lie, and given back in any. */
struct piece {
	TAILQ_ENTRY(piece) link;
	uint64_t at, room;
	bool free;           /* but one before it is not */
	struct kept_run *of; /* NULL: of none yet */
};

struct kept_run {
	struct stored run; /* first: a visitor's run is its entry */
	TAILQ_ENTRY(kept_run) link;
	char id[33];
	uint64_t index_bytes;
	unsigned visitors;
	bool gone; /* only its visitors have it */
	size_t count;
	struct stored_file files[];
};

/* The last ones that went, so that "too late" can be told from "never". */
#define GONE_MAX 1024

struct shelf {
	int fd;
	uint64_t capacity, keep_ns;
	TAILQ_HEAD(, piece) pieces;     /* from the oldest on */
	uint64_t head;                  /* behind the newest */
	TAILQ_HEAD(, kept_run) entries; /* in the order of their ends */
	void *by_id;                    /* tsearch(3) */
	uint64_t index_bytes;
	struct event *timer;
	struct artifacts_keeper keeper;
	char gone[GONE_MAX][33];
	unsigned gone_next;
};

/* ---- The ring ---- */

static bool find_room(const struct shelf *s, uint64_t room, uint64_t *ret_at)
{
	const struct piece *first = TAILQ_FIRST(&s->pieces);

	*ret_at = first ? s->head : 0;
	if (!first)
		return room <= s->capacity;
	if (s->head <= first->at) /* it has come round */
		return room <= first->at - s->head;
	if (room <= s->capacity - s->head)
		return true;
	*ret_at = 0;
	return room <= first->at;
}

static void give_place(void *ctx, void *place)
{
	struct shelf *s = ctx;
	struct piece *p = place, *first;

	p->free = true;
	while ((first = TAILQ_FIRST(&s->pieces)) && first->free) {
		TAILQ_REMOVE(&s->pieces, first, link);
		free(first);
	}
	/* Back to the disk: once nothing is kept. */
	if (TAILQ_EMPTY(&s->pieces) && ftruncate(s->fd, 0) < 0)
		log_warn("store", "why=\"%s\"", strerrordesc_np(errno));
}

static void give_places(struct shelf *s, struct kept_run *e)
{
	for (size_t i = 0; i < e->count; i++) {
		if (e->files[i].place)
			give_place(s, take_ptr(e->files[i].place));
	}
}

/* Room is given back from the oldest on: were it left to whoever still reads that, beyond its time,
 * one slow reader could keep all that has come after it. */
static bool revoke_oldest(struct shelf *s)
{
	const struct piece *first = TAILQ_FIRST(&s->pieces);

	if (!first || !first->of || !first->of->gone)
		return false;
	give_places(s, first->of);
	return true;
}

static int take_place(void *ctx, uint64_t size, void **ret_place)
{
	struct shelf *s = ctx;
	struct piece *p = calloc(1, sizeof(*p));
	bool found;

	if (!p)
		return -ENOMEM;
	p->room = size > 0 ? size : 1;
	do
		found = find_room(s, p->room, &p->at);
	while (!found && p->room <= s->capacity && revoke_oldest(s));
	if (!found) {
		free(p);
		return -ENOSPC;
	}
	s->head = p->at + p->room;
	TAILQ_INSERT_TAIL(&s->pieces, p, link);
	*ret_place = p;
	return 0;
}

static int write_bytes(void *ctx, void *place, uint64_t at, const void *bytes, size_t len)
{
	const struct shelf *s = ctx;
	const struct piece *p = place;
	const char *from = bytes;

	while (len > 0) {
		ssize_t n = pwrite(s->fd, from, len, (off_t)(p->at + at));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		from += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

const struct artifacts_keeper *shelf_keeper(const struct shelf *s)
{
	return &s->keeper;
}

/* ---- The index ---- */

static int compare_ids(const void *a, const void *b)
{
	return strcmp(((const struct kept_run *)a)->id, ((const struct kept_run *)b)->id);
}

static void free_entry(struct shelf *s, struct kept_run *e)
{
	give_places(s, e);
	for (size_t i = 0; i < e->count; i++)
		free(e->files[i].path);
	s->index_bytes -= e->index_bytes;
	free(e);
}

static void forget(struct shelf *s, struct kept_run *e)
{
	(void)tdelete(e, &s->by_id, compare_ids);
	TAILQ_REMOVE(&s->entries, e, link);
	memcpy(s->gone[s->gone_next++ % GONE_MAX], e->id, sizeof(e->id));
	e->gone = true;
	if (e->visitors == 0)
		free_entry(s, e);
}

static void arm(const struct shelf *s)
{
	const struct kept_run *first = TAILQ_FIRST(&s->entries);
	uint64_t now = clock_ns(), left;
	struct timeval tv;

	if (!first)
		return;
	left = first->run.until_ns > now ? (first->run.until_ns - now) / NS_PER_US + 1 : 0;
	tv = (struct timeval){ .tv_sec = (time_t)(left / 1000000),
		.tv_usec = (suseconds_t)(left % 1000000) };
	(void)evtimer_add(s->timer, &tv);
}

static void expire(struct shelf *s)
{
	uint64_t now = clock_ns();
	struct kept_run *e;

	while ((e = TAILQ_FIRST(&s->entries)) && e->run.until_ns <= now)
		forget(s, e);
	arm(s);
}

static void on_timer(evutil_socket_t fd, short what, void *ctx)
{
	(void)fd;
	(void)what;
	expire(ctx);
}

/* An entry with the names and sizes of what is kept, which owns no place yet. */
static struct kept_run *make_entry(
	const struct shelf *s, const char *id, const struct artifacts_list *l)
{
	struct kept_run *e = calloc(1, sizeof(*e) + l->count * sizeof(e->files[0]));

	if (!e)
		return NULL;
	(void)strncat(e->id, id, sizeof(e->id) - 1);
	e->index_bytes = sizeof(*e) + l->count * sizeof(e->files[0]);
	for (size_t i = 0; i < l->count; i++) {
		const struct artifact *a = &l->files[i];
		struct stored_file *f = &e->files[e->count];

		if (!a->kept)
			continue;
		*f = (struct stored_file){ malloc(a->path_len + 1), a->path_len, a->size, NULL };
		e->count++;
		e->index_bytes += a->path_len + 64; /* malloc()'s own, and a piece */
		if (f->path)
			memcpy(f->path, a->path, a->path_len + 1);
		if (!f->path || s->index_bytes + e->index_bytes > SHELF_INDEX_MAX) {
			for (size_t k = 0; k < e->count; k++)
				free(e->files[k].path);
			free(e);
			return NULL;
		}
	}
	return e;
}

static bool is_any_kept(const struct artifacts_list *l)
{
	for (size_t i = 0; i < l->count; i++) {
		if (l->files[i].kept)
			return true;
	}
	return false;
}

int shelf_put(struct shelf *s, const char *id, struct artifacts_list *l)
{
	struct kept_run *e;
	size_t n = 0;

	if (!is_any_kept(l))
		return 0;
	e = make_entry(s, id, l);
	if (!e)
		return -ENOMEM;
	if (!tsearch(e, &s->by_id, compare_ids)) {
		for (size_t i = 0; i < e->count; i++)
			free(e->files[i].path);
		free(e);
		return -ENOMEM;
	}
	for (size_t i = 0; i < l->count; i++) {
		struct piece *p = l->files[i].place;

		if (!l->files[i].kept)
			continue;
		p->of = e;
		e->files[n++].place = take_ptr(l->files[i].place);
	}
	s->index_bytes += e->index_bytes;
	e->run = (struct stored){ e->id, clock_ns() + s->keep_ns, e->files, e->count };
	TAILQ_INSERT_TAIL(&s->entries, e, link);
	arm(s);
	return 0;
}

const struct stored *shelf_visit(struct shelf *s, const char *id, bool *ret_gone)
{
	struct kept_run key = { .id = "" }, **found;

	expire(s);
	*ret_gone = false;
	(void)strncat(key.id, id, sizeof(key.id) - 1);
	found = tfind(&key, &s->by_id, compare_ids);
	if (found) {
		(*found)->visitors++;
		return &(*found)->run;
	}
	for (unsigned i = 0; i < GONE_MAX && !*ret_gone; i++)
		*ret_gone = strcmp(s->gone[i], key.id) == 0;
	return NULL;
}

void shelf_leave(struct shelf *s, const struct stored *run)
{
	struct kept_run *e = (struct kept_run *)(uintptr_t)run;

	if (--e->visitors == 0 && e->gone)
		free_entry(s, e);
}

const struct stored_file *stored_find(const struct stored *run, const char *path, size_t len)
{
	for (size_t i = 0; i < run->count; i++) {
		if (run->files[i].path_len == len && memcmp(run->files[i].path, path, len) == 0)
			return &run->files[i];
	}
	return NULL;
}

ssize_t shelf_read(
	const struct shelf *s, const struct stored_file *f, uint64_t at, void *bytes, size_t room)
{
	const struct piece *p = f->place;
	uint64_t left = f->size - at;
	ssize_t n;

	if (!p)
		return -ESTALE;
	do
		n = pread(s->fd, bytes, left < room ? (size_t)left : room, (off_t)(p->at + at));
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* ---- From the beginning to the end ---- */

struct shelf *shelf_create(struct event_base *base, int fd, uint64_t capacity, uint64_t keep_us)
{
	cleanup_fd int file = fd;
	struct shelf *s = calloc(1, sizeof(*s));

	if (!s)
		return NULL;
	s->timer = evtimer_new(base, on_timer, s);
	if (!s->timer) {
		free(s);
		return NULL;
	}
	s->fd = take_fd(&file);
	s->capacity = capacity;
	s->keep_ns = keep_us * NS_PER_US;
	s->keeper = (struct artifacts_keeper){ take_place, write_bytes, give_place, s };
	TAILQ_INIT(&s->pieces);
	TAILQ_INIT(&s->entries);
	return s;
}

void shelf_destroy(struct shelf *s)
{
	struct kept_run *e;
	struct piece *p;

	if (!s)
		return;
	while ((e = TAILQ_FIRST(&s->entries)))
		forget(s, e);
	while ((p = TAILQ_FIRST(&s->pieces))) {
		TAILQ_REMOVE(&s->pieces, p, link);
		free(p);
	}
	event_free(s->timer);
	drop_fd(&s->fd);
	free(s);
}
