#include "unit.h"

#include "base/io.h"
#include "base/own.h"
#include "edge/front/stream.h"

#include <event2/event.h>
#include <fcntl.h>
#include <string.h>

#define CAP     1000
#define MANY    300000 /* more than is read at one go, less than the enlarged pipe */
#define PIPE_SZ (1 << 19)

struct world {
	struct event_base *base;
	struct stream s;
	int writer;
};

static void set_up(struct world *w)
{
	int ends[2];

	*w = (struct world){ .base = event_base_new() };
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
	assert_true(fcntl(ends[1], F_SETPIPE_SZ, PIPE_SZ) >= MANY);
	w->writer = ends[1];
	assert_int_equal(stream_open(&w->s, w->base, ends[0], CAP), 0);
}

static void tear_down(struct world *w)
{
	stream_close(&w->s);
	stream_close(&w->s); /* harmless */
	drop_fd(&w->writer);
	event_base_free(w->base);
}

static void put(struct world *w, size_t len)
{
	static char bytes[MANY];

	memset(bytes, 'x', sizeof(bytes));
	assert_int_equal(io_write_all(w->writer, bytes, len), 0);
}

static void the_rest_is_taken_at_the_end_without_waiting_for_the_writer(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	put(&w, MANY);
	stream_drain(&w.s); /* the loop has not run at all; the writer is open */
	assert_int_equal(output_view(&w.s.kept).total, MANY);
	stream_drain(&w.s); /* nothing more is there */
	assert_int_equal(output_view(&w.s.kept).total, MANY);
	tear_down(&w);
}

static void an_empty_pipe_is_no_wait(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	stream_drain(&w.s);
	assert_int_equal(output_view(&w.s.kept).total, 0);
	tear_down(&w);
}

/* One turn of the loop takes one chunk, so that other streams get theirs. */
static void a_turn_of_the_loop_takes_a_bounded_piece(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	put(&w, MANY);
	assert_true(event_base_loop(w.base, EVLOOP_ONCE) >= 0);
	assert_int_equal(output_view(&w.s.kept).total, 65536);
	stream_drain(&w.s);
	assert_int_equal(output_view(&w.s.kept).total, MANY);
	tear_down(&w);
}

static void at_its_end_the_stream_closes_itself(void **state)
{
	struct world w;

	(void)state;
	set_up(&w);
	put(&w, 5);
	drop_fd(&w.writer);
	assert_int_equal(event_base_dispatch(w.base), 1); /* returns: no event is left */
	assert_int_equal(w.s.fd, -1);
	assert_int_equal(output_view(&w.s.kept).total, 5);
	tear_down(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_rest_is_taken_at_the_end_without_waiting_for_the_writer),
		cmocka_unit_test(an_empty_pipe_is_no_wait),
		cmocka_unit_test(a_turn_of_the_loop_takes_a_bounded_piece),
		cmocka_unit_test(at_its_end_the_stream_closes_itself),
	};

	return cmocka_run_group_tests_name("front_stream", tests, NULL, NULL);
}
