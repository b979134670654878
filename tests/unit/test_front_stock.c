/* GET /runtimes: what is found out by runs, and when it is again. The runs are the test's. */
#include "api_settings.h"
#include "unit.h"

#include "api/request.h"
#include "base/clock.h"
#include "edge/front/answer.h"
#include "edge/front/run.h"
#include "edge/front/runs.h"
#include "edge/front/stock.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int __wrap_runs_begin(struct runs *rs, struct api_request *request, run_told_fn *told, void *ctx);
void __wrap_answer_send(struct http_request *req, const struct answer *a);
uint64_t __wrap_clock_ns(void);

static uint64_t now_ns;
static unsigned begun, answered; /* runs, requests */
static struct run_end end;       /* of each run */
static bool is_full;
static char said[4096]; /* the last answer */

uint64_t __wrap_clock_ns(void)
{
	return now_ns;
}

int __wrap_runs_begin(struct runs *rs, struct api_request *request, run_told_fn *told, void *ctx)
{
	(void)rs;
	if (is_full)
		return -EAGAIN;
	begun++;
	/* What a client's request has by default is this server's own to say here. */
	assert_int_equal(request->output_bytes, api_settings.output_bytes);
	assert_true(request->limits.memory_bytes > 0);
	api_request_free(request);
	told(ctx, NULL, &end);
	return 0;
}

void __wrap_answer_send(struct http_request *req, const struct answer *a)
{
	(void)req;
	answered++;
	assert_int_equal(a->status, 200);
	(void)snprintf(said, sizeof(said), "%s", a->json);
}

/* One request; how many runs it has taken. */
static unsigned ask(struct stock *st)
{
	char request;
	unsigned before = begun;

	answered = 0;
	stock_request(st, (struct http_request *)&request);
	assert_int_equal(answered, 1);
	return begun - before;
}

static struct offers offers = { .count = 1,
	.of = { { .name = "slow", .main_file = "main.slow", .inventory = "version" } } };
static const struct msg_result failure = { .cause = CAUSE_WALL_TIMEOUT };

static void a_program_that_fails_is_not_run_again_for_a_minute(void **state)
{
	static struct msg_hello hello;
	static struct msg_health health;
	struct runs runs = { 0 };
	struct stock st;

	(void)state;
	hello.settings = api_settings;
	stock_init(&st, &runs, &hello, &health, &offers);
	now_ns = 1000 * NS_PER_S;
	end = (struct run_end){ .result = &failure };
	assert_int_equal(ask(&st), 1);
	for (unsigned i = 0; i < 10; i++) {
		now_ns += 5 * NS_PER_S;
		assert_int_equal(ask(&st), 0);
		assert_non_null(strstr(said, "ended with wall_timeout"));
	}
	now_ns += 10 * NS_PER_S;
	assert_int_equal(ask(&st), 1);
	stock_done(&st);
}

/* That costs nobody anything. */
static void what_was_not_run_is_looked_at_each_time(void **state)
{
	static struct msg_hello hello;
	static struct msg_health health;
	struct runs runs = { 0 };
	struct stock st;

	(void)state;
	hello.settings = api_settings;
	stock_init(&st, &runs, &hello, &health, &offers);
	end = (struct run_end){ .why = "there is no /usr/bin/slow", .missing = true };
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(ask(&st), 1);
		assert_non_null(strstr(said, "no /usr/bin/slow"));
	}
	is_full = true;
	assert_int_equal(ask(&st), 0);
	assert_non_null(strstr(said, "takes no run now"));
	is_full = false;
	end = (struct run_end){ .why = "no cell was ready" };
	assert_int_equal(ask(&st), 1);
	assert_int_equal(ask(&st), 1);
	stock_done(&st);
}

static int file_of(const char *text)
{
	int fd = memfd_create("inventory", MFD_CLOEXEC);

	assert_true(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static void tell(struct stock *st, const char *text, const char *part)
{
	int fd = file_of(text);

	stock_take(st, 1, fd);
	(void)close(fd);
	assert_int_equal(ask(st), 0);
	if (!strstr(said, part))
		fail_msg("\"%s\" has no %s", said, part);
}

static void what_is_installed_in_an_image_is_what_the_supervisor_tells(void **state)
{
	static struct offers with = { .count = 2,
		.of = { { .name = "slow", .main_file = "main.slow", .inventory = "version" },
			{ .name = "image", .main_file = "main.py", .is_image = 1 } } };
	static struct msg_hello hello;
	static struct msg_health health;
	struct runs runs = { 0 };
	struct stock st;

	(void)state;
	hello.settings = api_settings;
	stock_init(&st, &runs, &hello, &health, &with);
	end = (struct run_end){ .why = "there is no /usr/bin/slow", .missing = true };
	st.of[0].state = INVENTORY_KNOWN;
	tell(&st, "3.11.2\nnumpy 1.24.2 python\nlibc6 2:2 3 dpkg\nodd\n",
		"\"version\":\"3.11.2\",\"packages\":["
		"{\"name\":\"numpy\",\"version\":\"1.24.2\",\"from\":\"python\"},"
		"{\"name\":\"libc6\",\"version\":\"2:2 3\",\"from\":\"dpkg\"},"
		"{\"name\":\"odd\",\"version\":null}]");
	tell(&st, "\n", "\"version\":null,\"packages\":null}");
	tell(&st, "3.11\n", "\"version\":\"3.11\",\"packages\":null}");
	tell(&st, "\n\x1b\xff \" dpkg\n", "\"from\":\"dpkg\"}"); /* hostile, and JSON */
	stock_forget(&st, 1);
	assert_int_equal(ask(&st), 0);
	assert_non_null(strstr(said, "\"version\":null,\"packages\":null}]"));
	stock_done(&st);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_fails_is_not_run_again_for_a_minute),
		cmocka_unit_test(what_was_not_run_is_looked_at_each_time),
		cmocka_unit_test(what_is_installed_in_an_image_is_what_the_supervisor_tells),
	};

	return cmocka_run_group_tests_name("front_stock", tests, NULL, NULL);
}
