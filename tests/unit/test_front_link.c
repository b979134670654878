#include "unit.h"

#include "base/own.h"
#include "edge/front/link.h"
#include "tests/unit/count_fds.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <sys/socket.h>

#define ROOM 8

struct world {
	struct event_base *base;
	struct link *link;
	int peer, got, lost;
};

static void on_got(struct msg *m, void *ctx)
{
	struct world *w = ctx;

	(void)m;
	w->got++;
}

static void on_lost(const char *why, void *ctx)
{
	struct world *w = ctx;

	assert_non_null(why);
	w->lost++;
}

static void set_up(struct world *w)
{
	const struct link_calls calls = { .got = on_got, .lost = on_lost, .ctx = w };
	int pair[2], small = 1;

	*w = (struct world){ 0 };
	assert_int_equal(channel_pair(pair, 1), 0);
	w->peer = pair[0];
	/* The kernel's least: a few messages. */
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	w->base = event_base_new();
	w->link = link_create(w->base, pair[1], ROOM, &calls);
	assert_non_null(w->link);
}

static void tear_down(struct world *w)
{
	link_destroy(w->link);
	event_base_free(w->base);
	drop_fd(&w->peer);
}

static void loop(struct world *w)
{
	assert_true(event_base_loop(w->base, EVLOOP_NONBLOCK) >= 0);
}

static int cancel(struct world *w, uint64_t run)
{
	return link_send(w->link, MSG_CANCEL, &(struct msg_cancel){ .run = run }, NULL);
}

/* Send 1, 2, 3... until nothing more is taken. How many were. */
static uint64_t fill(struct world *w)
{
	uint64_t n = 0;

	while (cancel(w, n + 1) == 0)
		n++;
	assert_int_equal(cancel(w, n + 1), -ENOBUFS);
	assert_true(n > ROOM);
	return n;
}

/* The run of the next CANCEL that has arrived, 0 when none has. */
static uint64_t arrived(struct world *w)
{
	struct msg m;
	int r = channel_recv(w->peer, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL);

	if (r == -EAGAIN)
		return 0;
	assert_int_equal(r, 1);
	return m.as.CANCEL.run;
}

static void what_does_not_fit_waits_and_arrives_in_order(void **state)
{
	uint64_t n, next = 1, run;
	struct world w;

	(void)state;
	set_up(&w);
	n = fill(&w);
	while (next <= n) {
		while ((run = arrived(&w)))
			assert_int_equal(run, next++);
		loop(&w);
	}
	assert_int_equal(arrived(&w), 0);
	tear_down(&w);
}

static void nothing_overtakes_what_waits(void **state)
{
	uint64_t n, next = 1, run;
	struct world w;

	(void)state;
	set_up(&w);
	n = fill(&w) - ROOM; /* these are in the socket, ROOM wait */
	while ((run = arrived(&w)))
		assert_int_equal(run, next++);
	assert_int_equal(next, n + 1);
	/* The socket is empty now, but the loop has not seen it. */
	assert_int_equal(cancel(&w, 99), -ENOBUFS);
	loop(&w);
	assert_int_equal(arrived(&w), n + 1);
	tear_down(&w);
}

static int submit(struct world *w)
{
	int fds[MSG_FDS_MAX];

	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return link_send(w->link, MSG_SUBMIT, &(struct msg_submit){ 0 }, fds);
}

static void descriptors_are_taken_whether_sent_kept_or_refused(void **state)
{
	unsigned before = count_fds(), open_ends;
	struct world w;
	struct msg m;

	(void)state;
	set_up(&w);
	open_ends = count_fds();
	assert_int_equal(submit(&w), 0); /* sent: the kernel has them now */
	assert_int_equal(count_fds(), open_ends);
	while (submit(&w) == 0)
		;
	assert_int_equal(submit(&w), -ENOBUFS); /* refused: closed; ROOM are kept */
	assert_int_equal(count_fds(), open_ends + ROOM * MSG_FDS_MAX);

	/* Those that are sent after all are closed after it. */
	assert_int_equal(channel_recv(w.peer, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL), 1);
	msg_done(&m);
	while (channel_recv(w.peer, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL) == 1)
		msg_done(&m);
	loop(&w);
	assert_true(count_fds() < open_ends + ROOM * MSG_FDS_MAX);
	tear_down(&w);
	assert_int_equal(count_fds(), before);
}

static void a_closed_channel_is_told_once_and_from_the_loop(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	drop_fd(&w.peer);
	assert_int_equal(cancel(&w, 1), -EPIPE);
	assert_int_equal(cancel(&w, 2), -EPIPE);
	assert_int_equal(w.lost, 0); /* not within link_send() */
	loop(&w);
	loop(&w);
	assert_int_equal(w.lost, 1);
	assert_int_equal(cancel(&w, 3), -EPIPE);
	tear_down(&w);
}

static void a_broken_rule_ends_the_link(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	assert_int_equal(send(w.peer, "junk", 4, 0), 4);
	loop(&w);
	assert_int_equal(w.got, 0);
	assert_int_equal(w.lost, 1);
	tear_down(&w);
}

static void messages_are_handed_in(void **state)
{
	struct msg_drain m = { 0 };
	struct world w;

	(void)state;
	set_up(&w);
	assert_int_equal(channel_send(w.peer, MSG_DRAIN, &m, NULL), 0);
	assert_int_equal(channel_send(w.peer, MSG_DRAIN, &m, NULL), 0);
	loop(&w);
	assert_int_equal(w.got, 2);
	assert_int_equal(w.lost, 0);
	tear_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_does_not_fit_waits_and_arrives_in_order),
		cmocka_unit_test(nothing_overtakes_what_waits),
		cmocka_unit_test(descriptors_are_taken_whether_sent_kept_or_refused),
		cmocka_unit_test(a_closed_channel_is_told_once_and_from_the_loop),
		cmocka_unit_test(a_broken_rule_ends_the_link),
		cmocka_unit_test(messages_are_handed_in),
	};

	return cmocka_run_group_tests_name("front_link", tests, NULL, NULL);
}
