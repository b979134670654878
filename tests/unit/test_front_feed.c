#include "unit.h"

#include "base/fault.h"
#include "edge/front/feed.h"

#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE ((size_t)1 << 20) /* more than a pipe holds */

static struct event_base *base;

/* Its event knows where the feed is: it may not be moved. */
static void feed(struct feed *s, size_t len, int *ret_fd)
{
	struct fault f = { 0 };
	char *bytes = malloc(len);

	assert_non_null(bytes);
	for (size_t i = 0; i < len; i++)
		bytes[i] = (char)(i % 251);
	assert_int_equal(feed_open(s, base, bytes, len, ret_fd, &f), 0);
}

static void turn(void)
{
	assert_true(event_base_loop(base, EVLOOP_NONBLOCK) >= 0);
}

static void what_a_pipe_holds_is_written_at_once(void **state)
{
	struct feed s;
	char got[200];
	int fd;

	(void)state;
	feed(&s, 100, &fd);
	assert_int_equal(s.fd, -1);
	assert_null(s.bytes);
	assert_int_equal(read(fd, got, sizeof(got)), 100);
	assert_int_equal(read(fd, got, sizeof(got)), 0); /* and then it ends */
	feed_close(&s);
	(void)close(fd);
}

static void what_is_more_follows_as_it_is_read(void **state)
{
	static char got[LARGE + 1];
	size_t len = 0;
	struct feed s;
	ssize_t n;
	int fd;

	(void)state;
	feed(&s, LARGE, &fd);
	assert_true(s.fd >= 0);
	assert_int_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0); /* the program's end blocks */
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while ((n = read(fd, got + len, sizeof(got) - len)) != 0) {
		if (n > 0)
			len += (size_t)n;
		turn();
	}
	assert_int_equal(len, LARGE);
	for (size_t i = 0; i < LARGE; i++)
		assert_true(got[i] == (char)(i % 251));
	assert_int_equal(s.fd, -1);
	(void)close(fd);
}

static void a_reader_that_leaves_ends_it(void **state)
{
	struct feed s;
	int fd;

	(void)state;
	feed(&s, LARGE, &fd);
	assert_true(s.fd >= 0);
	(void)close(fd);
	turn();
	assert_int_equal(s.fd, -1);
	assert_null(s.bytes);
}

static void it_can_be_closed_at_any_time_and_again(void **state)
{
	struct feed s = FEED_NONE;
	int fd;

	(void)state;
	feed_close(&s);
	feed(&s, LARGE, &fd);
	feed_close(&s);
	feed_close(&s);
	assert_null(s.bytes);
	turn(); /* nothing is watched any more */
	(void)close(fd);
}

static int set_up(void **state)
{
	(void)state;
	(void)signal(SIGPIPE, SIG_IGN); /* as the front does */
	base = event_base_new();
	return base ? 0 : -1;
}

static int tear_down(void **state)
{
	(void)state;
	event_base_free(base);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_pipe_holds_is_written_at_once),
		cmocka_unit_test(what_is_more_follows_as_it_is_read),
		cmocka_unit_test(a_reader_that_leaves_ends_it),
		cmocka_unit_test(it_can_be_closed_at_any_time_and_again),
	};

	return cmocka_run_group_tests_name("front_feed", tests, set_up, tear_down);
}
