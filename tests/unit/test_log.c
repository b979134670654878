#include "unit.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Standard error goes to a memfd between these two. */
static int saved_stderr = -1, capture = -1;

static int start_capture(void **state)
{
	(void)state;
	saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 3);
	capture = memfd_create("log", MFD_CLOEXEC);
	if (saved_stderr < 0 || capture < 0 || dup2(capture, STDERR_FILENO) < 0)
		return -1;
	log_setup("test", LOG_LEVEL_INFO);
	return 0;
}

static int stop_capture(void **state)
{
	(void)state;
	if (dup2(saved_stderr, STDERR_FILENO) < 0)
		return -1;
	drop_fd(&saved_stderr);
	drop_fd(&capture);
	return 0;
}

static size_t captured(char *text, size_t room)
{
	ssize_t n = pread(capture, text, room - 1, 0);

	assert_true(n >= 0);
	text[n] = '\0';
	return (size_t)n;
}

static void event_is_one_line_of_pairs(void **state)
{
	char text[256];

	(void)state;
	log_info("start", "port=%d", 8000);
	(void)captured(text, sizeof(text));
	assert_memory_equal(text, "t=2", 3);
	assert_non_null(strstr(text, "Z lvl=info proc=test ev=start port=8000\n"));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1);
}

static void event_above_the_level_is_not_written(void **state)
{
	char text[256];

	(void)state;
	log_debug("noise", "x=%d", 1);
	assert_int_equal(captured(text, sizeof(text)), 0);
	log_setup("test", LOG_LEVEL_DEBUG);
	log_debug("noise", "x=%d", 1);
	assert_true(captured(text, sizeof(text)) > 0);
}

static void long_event_is_cut_but_keeps_its_newline(void **state)
{
	char big[3000], text[4096];
	size_t n;

	(void)state;
	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	log_info("big", "text=%s", big);
	n = captured(text, sizeof(text));
	assert_true(n <= LOG_LINE_MAX);
	assert_int_equal(text[n - 1], '\n');
	assert_ptr_equal(strchr(text, '\n'), text + n - 1);
}

static void quoting_leaves_no_way_to_forge_a_line(void **state)
{
	(void)state;
	assert_string_equal(LQ("plain"), "\"plain\"");
	assert_string_equal(LQ("a\nlvl=err"), "\"a\\x0alvl=err\"");
	assert_string_equal(LQ("q\"b\\"), "\"q\\\"b\\\\\"");
	assert_string_equal(LQ("\xc3\xa9\x7f"), "\"\\xc3\\xa9\\x7f\"");
}

static void quoting_clips_what_is_long(void **state)
{
	char big[1000];
	struct log_quoted q;

	(void)state;
	memset(big, 1, sizeof(big));
	q = log_quote(big, sizeof(big));
	assert_true(strlen(q.text) < LOG_QUOTE_MAX);
	assert_string_equal(q.text + strlen(q.text) - 4, "...\"");
}

static void relayed_bytes(const char *text, size_t len, const char *expected)
{
	struct log_relay r = { .from = "front" };
	char got[512];

	assert_int_equal(ftruncate(capture, 0), 0);
	assert_int_equal(lseek(capture, 0, SEEK_SET), 0);
	for (size_t i = 0; i < len; i++) /* in the smallest pieces */
		log_relay(&r, 0, text + i, 1);
	log_relay_end(&r, 0);
	(void)captured(got, sizeof(got));
	assert_string_equal(got, expected);

	assert_int_equal(ftruncate(capture, 0), 0);
	assert_int_equal(lseek(capture, 0, SEEK_SET), 0);
	log_relay(&r, 0, text, len);
	log_relay_end(&r, 0);
	(void)captured(got, sizeof(got));
	assert_string_equal(got, expected);
}

static void relay_marks_every_line_and_replaces_control_bytes(void **state)
{
	(void)state;
	relayed_bytes("a\x1b[2J\nb\0c\r\n", 11, "relay=front a?[2J\nrelay=front b?c?\n");
	relayed_bytes("\n\n\xff\n", 4, "relay=front ?\n");
	relayed_bytes("no end", 6, "relay=front no end\n");
	relayed_bytes("", 0, "");
}

static void relay_cuts_a_long_line_into_marked_ones(void **state)
{
	struct log_relay r = { .from = "front" };
	char big[5000], text[8192];
	size_t lines = 0;

	(void)state;
	memset(big, 'r', sizeof(big));
	log_relay(&r, 0, big, sizeof(big));
	log_relay_end(&r, 0);
	assert_true(captured(text, sizeof(text)) > sizeof(big));
	for (char *at = text, *end; *at; at = end + 1, lines++) {
		end = strchr(at, '\n');
		assert_non_null(end);
		assert_memory_equal(at, "relay=front r", 13);
		assert_true(end - at < PIPE_BUF);
	}
	assert_int_equal(lines, (sizeof(big) + LOG_LINE_MAX - 1) / LOG_LINE_MAX);
}

static void relay_drops_what_is_too_much_for_a_second_and_says_so(void **state)
{
	static char line[100], text[2 * LOG_RELAY_BYTES_PER_S];
	const size_t lines = LOG_RELAY_BYTES_PER_S / sizeof(line) + 500;
	struct log_relay r = { .from = "front" };
	size_t n;

	(void)state;
	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\n';
	for (size_t i = 0; i < lines; i++)
		log_relay(&r, NS_PER_S - 1, line, sizeof(line));
	n = captured(text, sizeof(text));
	assert_in_range(n, LOG_RELAY_BYTES_PER_S - 200, LOG_RELAY_BYTES_PER_S);
	assert_int_equal(text[n - 1], '\n');

	log_relay(&r, 2 * NS_PER_S, "next\n", 5);
	(void)captured(text, sizeof(text));
	(void)snprintf(line, sizeof(line), " ev=relay from=front lines_dropped=%zu\n",
		lines - n / (sizeof(line) + strlen("relay=front ")));
	assert_non_null(strstr(text + n, line));
	assert_non_null(strstr(text + n, "\nrelay=front next\n"));
	n = captured(text, sizeof(text));
	log_relay_end(&r, 2 * NS_PER_S);
	assert_int_equal(captured(text, sizeof(text)), n); /* said once */
}

/* Standard error becomes a pipe without a reader's help, full, and blocking or not. */
static void fill_stderr(int pipe_fds[2], int flags)
{
	char text[512] = { 0 };

	assert_int_equal(pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK), 0);
	while (write(pipe_fds[1], text, sizeof(text)) > 0)
		;
	while (write(pipe_fds[1], text, 1) > 0)
		;
	assert_int_equal(fcntl(pipe_fds[1], F_SETFL, flags), 0);
	assert_true(dup2(pipe_fds[1], STDERR_FILENO) >= 0);
}

static void count_call(void *ctx)
{
	++*(unsigned *)ctx;
}

static void held_lines_wait_until_there_is_time_or_something_grave(void **state)
{
	char text[16384];
	unsigned calls = 0;

	(void)state;
	log_hold(count_call, &calls);
	log_info("one", "n=%d", 1);
	log_info("two", "n=%d", 2);
	assert_int_equal(captured(text, sizeof(text)), 0);
	assert_int_equal(calls, 1);
	log_flush();
	assert_true(captured(text, sizeof(text)) > 0);
	assert_true(strstr(text, "ev=one n=1\n") < strstr(text, "ev=two n=2\n"));

	log_info("three", "n=%d", 3);
	assert_int_equal(calls, 2);
	log_warn("grave", "n=%d", 4);
	(void)captured(text, sizeof(text));
	assert_true(strstr(text, "ev=three n=3\n") && strstr(text, "ev=grave n=4\n"));
	assert_true(strstr(text, "ev=three n=3\n") < strstr(text, "ev=grave n=4\n"));

	for (unsigned i = 0; i < 10; i++)
		log_info("long", "text=%0800u", i);
	assert_true(captured(text, sizeof(text)) > 4 * 800); /* as they came together */
	log_info("last", "n=%d", 5);
	log_hold(NULL, NULL);
	(void)captured(text, sizeof(text));
	assert_non_null(strstr(text, "ev=last n=5\n"));
}

static void held_lines_that_are_lost_are_counted(void **state)
{
	char text[512];
	unsigned calls = 0;
	int full[2];

	(void)state;
	(void)alarm(20);
	fill_stderr(full, O_NONBLOCK);
	log_info("lost", "n=%d", 1);
	log_hold(count_call, &calls);
	log_info("lost", "n=%d", 2); /* it says that one was lost, and is lost itself */
	log_info("lost", "n=%d", 3);
	log_flush();
	assert_true(dup2(capture, STDERR_FILENO) >= 0);
	log_info("found", "n=%d", 4);
	log_info("after", "n=%d", 5);
	log_hold(NULL, NULL);
	(void)alarm(0);
	(void)captured(text, sizeof(text));
	assert_non_null(strstr(text, "ev=found lines_lost=3 n=4\n"));
	assert_non_null(strstr(text, "ev=after n=5\n"));
	(void)close(full[0]);
	(void)close(full[1]);
}

static void lines_are_lost_and_counted(int flags)
{
	struct log_relay r = { .from = "front" };
	char text[512];
	int full[2];

	(void)alarm(20); /* a log that blocks is the fault looked for */
	fill_stderr(full, flags);
	log_info("lost", "n=%d", 1);
	log_info("lost", "n=%d", 2);
	log_relay(&r, 0, "lost\n", 5);
	assert_true(dup2(capture, STDERR_FILENO) >= 0);
	log_relay(&r, 0, "relayed\n", 8);
	log_info("found", "n=%d", 3);
	log_info("after", "n=%d", 4);
	(void)alarm(0);
	(void)captured(text, sizeof(text));
	assert_memory_equal(text, "relay=front relayed\n", 20);
	assert_non_null(strstr(text, "ev=found lines_lost=3 n=3\n"));
	assert_non_null(strstr(text, "ev=after n=4\n"));
	(void)close(full[0]);
	(void)close(full[1]);
}

static void lost_lines_are_counted_on_the_next_one(void **state)
{
	(void)state;
	lines_are_lost_and_counted(O_NONBLOCK);
}

static void a_reader_that_has_stopped_does_not_stop_the_writer(void **state)
{
	(void)state;
	lines_are_lost_and_counted(0);
}

static void level_words_are_parsed_exactly(void **state)
{
	enum log_level l = LOG_LEVEL_ERR;

	(void)state;
	assert_true(log_level_parse("debug", &l));
	assert_int_equal(l, LOG_LEVEL_DEBUG);
	assert_true(log_level_parse("err", &l));
	assert_int_equal(l, LOG_LEVEL_ERR);
	assert_false(log_level_parse("error", &l));
	assert_false(log_level_parse("INFO", &l));
	assert_false(log_level_parse("", &l));
}

#define captured_test(f) cmocka_unit_test_setup_teardown(f, start_capture, stop_capture)

int main(void)
{
	const struct CMUnitTest tests[] = {
		captured_test(event_is_one_line_of_pairs),
		captured_test(event_above_the_level_is_not_written),
		captured_test(long_event_is_cut_but_keeps_its_newline),
		captured_test(relay_marks_every_line_and_replaces_control_bytes),
		captured_test(relay_cuts_a_long_line_into_marked_ones),
		captured_test(relay_drops_what_is_too_much_for_a_second_and_says_so),
		captured_test(lost_lines_are_counted_on_the_next_one),
		captured_test(held_lines_wait_until_there_is_time_or_something_grave),
		captured_test(held_lines_that_are_lost_are_counted),
		captured_test(a_reader_that_has_stopped_does_not_stop_the_writer),
		cmocka_unit_test(quoting_leaves_no_way_to_forge_a_line),
		cmocka_unit_test(quoting_clips_what_is_long),
		cmocka_unit_test(level_words_are_parsed_exactly),
	};

	return cmocka_run_group_tests_name("log", tests, NULL, NULL);
}
