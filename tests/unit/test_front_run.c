/* The front as a whole, as its supervisor and its clients see it. "Nothing comes" is shown by what
 * comes next instead. */
#include "front_world.h"
#include "tests/unit/count_fds.h"
#include "unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "edge/front/front.h"
#include "wire/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* ---- the tests ---- */

static void a_run_goes_to_the_supervisor_and_its_verdict_to_the_client(void **state)
{
	struct reply r;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	world_start_ready(&w, 4, 4);
	client = world_ask_to_run(&w, "print(1)");
	world_expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(m.as.SUBMIT.limits.timeout_us, 1500000);
	assert_int_equal(m.as.SUBMIT.limits.memory_bytes, 64 * MIB);
	assert_int_equal(m.as.SUBMIT.code_bytes, 8);
	assert_int_equal(m.as.SUBMIT.allow_network, 0);
	assert_int_equal(io_write_all(m.fds[2], "one\n", 4), 0);
	assert_int_equal(io_write_all(m.fds[3], "two\n", 4), 0);
	msg_done(&m);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);

	world_hear(client, &r);
	assert_int_equal(r.status, 200);
	assert_string_equal(world_text_of(&r, "status"), "success");
	assert_string_equal(world_text_of(&r, "stdout"), "one\n");
	assert_string_equal(world_text_of(&r, "stderr"), "two\n");
	assert_int_equal(json_integer_value(json_object_get(r.body, "exit_code")), 0);
	assert_int_equal(strlen(world_text_of(&r, "id")), 32);
	assert_non_null(strstr(strstr(r.head, "X-Glovebox-Id: "), world_text_of(&r, "id")));
	json_decref(r.body);
	world_finish(&w);
}

static void what_is_handed_over_is_sealed_and_of_the_right_kind(void **state)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;
	static const int modes[] = { O_RDWR, O_RDONLY, O_WRONLY, O_WRONLY, O_RDWR };
	char byte;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	world_start_ready(&w, 4, 4);
	client = world_ask_to_run(&w, "x");
	world_expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(fcntl(m.fds[0], F_GET_SEALS), seals);
	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		assert_int_equal(fcntl(m.fds[i], F_GETFL) & (O_ACCMODE | O_NONBLOCK), modes[i]);
	assert_int_equal(read(m.fds[1], &byte, 1), 0); /* stdin is at its end already */
	msg_done(&m);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	world_expect_status(client, 200);
	world_finish(&w);
}

/* A descriptor that lives on elsewhere must not hold up the answer. */
static void output_before_a_timeout_is_kept_and_no_end_is_waited_for(void **state)
{
	struct reply r;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	world_start_ready(&w, 1, 4);
	client = world_ask_to_run(&w, "loop");
	world_expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(io_write_all(m.fds[2], "so far", 6), 0);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_WALL_TIMEOUT);
	world_hear(client, &r);
	assert_string_equal(world_text_of(&r, "status"), "timeout");
	assert_string_equal(world_text_of(&r, "stdout"), "so far");
	assert_int_equal(json_integer_value(json_object_get(r.body, "exit_code")), 124);
	json_decref(r.body);
	/* The answer comes first, and then our end is closed. */
	assert_int_equal(poll(&(struct pollfd){ .fd = m.fds[2] }, 1, 10000), 1);
	assert_true(write(m.fds[2], "x", 1) < 0 && errno == EPIPE);
	msg_done(&m);
	world_finish(&w);
}

static void a_client_that_leaves_cancels_its_run_and_the_slot_waits_for_the_verdict(void **state)
{
	struct world w;
	struct msg m, c;
	int client, next;

	(void)state;
	world_start_ready(&w, 1, 4);
	client = world_ask_to_run(&w, "first");
	world_expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	(void)close(client);
	world_expect(&w, MSG_CANCEL, &c);
	assert_int_equal(c.as.CANCEL.run, m.as.SUBMIT.run);
	next = world_ask_to_run(&w, "second");
	world_expect_load(&w, 1, 1);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_CANCELLED);
	world_run_through(&w, next, "second");
	world_finish(&w);
}

static void a_half_closed_connection_counts_as_left(void **state)
{
	struct world w;
	struct msg m, c;
	int client;

	(void)state;
	world_start_ready(&w, 1, 4);
	client = world_ask_to_run(&w, "x");
	world_expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	world_expect(&w, MSG_CANCEL, &c);
	assert_int_equal(c.as.CANCEL.run, m.as.SUBMIT.run);
	(void)close(client);
	world_finish(&w);
}

static void a_client_that_leaves_the_line_is_skipped(void **state)
{
	int first, second, third;
	struct world w;

	(void)state;
	world_start_ready(&w, 1, 4);
	first = world_ask_to_run(&w, "first");
	world_expect_load(&w, 1, 0);
	second = world_ask_to_run(&w, "second");
	world_expect_load(&w, 1, 1);
	third = world_ask_to_run(&w, "third");
	world_expect_load(&w, 1, 2);
	(void)close(second);
	world_expect_load(&w, 1, 1);
	world_run_through(&w, first, "first");
	world_run_through(&w, third, "third");
	world_finish(&w);
}

static void those_who_wait_are_served_in_order(void **state)
{
	static const char *const codes[] = { "a", "b", "c", "d" };
	int clients[4];
	struct world w;

	(void)state;
	world_start_ready(&w, 1, 4);
	for (int i = 0; i < 4; i++) {
		clients[i] = world_ask_to_run(&w, codes[i]);
		world_expect_load(&w, 1, i);
	}
	for (int i = 0; i < 4; i++)
		world_run_through(&w, clients[i], codes[i]);
	world_expect_load(&w, 0, 0);
	world_finish(&w);
}

static void one_more_than_may_wait_gets_503_and_a_time(void **state)
{
	int first, second;
	struct world w;

	(void)state;
	world_start_ready(&w, 1, 1);
	first = world_ask_to_run(&w, "first");
	world_expect_load(&w, 1, 0);
	second = world_ask_to_run(&w, "second");
	world_expect_load(&w, 1, 1);
	world_expect_not_run(world_ask_to_run(&w, "third"), 503, true);
	world_run_through(&w, first, "first");
	world_run_through(&w, second, "second");
	world_finish(&w);
}

static void a_refused_run_says_that_the_code_did_not_run(void **state)
{
	struct msg_refused no = { .retry = 1, .fault = { -EAGAIN, "no cell\nis ready" } };
	struct world w;
	struct msg m;
	int client;

	(void)state;
	world_start_ready(&w, 1, 1);
	for (int retry = 1; retry >= 0; retry--) {
		client = world_ask_to_run(&w, "x");
		world_expect(&w, MSG_SUBMIT, &m);
		msg_done(&m);
		no.run = m.as.SUBMIT.run;
		no.retry = (uint32_t)retry;
		world_tell(&w, MSG_REFUSED, &no);
		world_expect_not_run(client, retry ? 503 : 500, retry);
	}
	world_run_through(&w, world_ask_to_run(&w, "y"), "y"); /* the slot is free again */
	world_finish(&w);
}

static void an_answer_to_no_run_changes_nothing(void **state)
{
	struct world w;
	int client;

	(void)state;
	world_start_ready(&w, 1, 1);
	client = world_ask_to_run(&w, "x");
	world_expect_load(&w, 1, 0);
	world_end_run(&w, 4711, CAUSE_EXIT);
	world_tell(&w, MSG_REFUSED, &(struct msg_refused){ .run = 4712, .fault = { -EIO, "no" } });
	world_run_through(&w, client, "x");
	world_finish(&w);
}

static void without_its_supervisor_the_front_ends(void **state)
{
	struct world w;
	char byte;
	int client;

	(void)state;
	world_start_ready(&w, 1, 1);
	client = world_ask_to_run(&w, "x");
	world_expect_load(&w, 1, 0);
	drop_fd(&w.supervisor);
	assert_int_equal(world_join(&w), 1);
	world_finish(&w);
	assert_true(recv(client, &byte, 1, 0) <= 0); /* no answer is made up */
	(void)close(client);
}

static long resident_bytes(void)
{
	char text[128];
	long pages = 0;

	assert_true(io_read_text(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) > 0);
	assert_int_equal(sscanf(text, "%*d %ld", &pages), 1);
	return pages * sysconf(_SC_PAGESIZE);
}

static void a_flood_is_counted_to_the_byte_in_flat_memory(void **state)
{
	enum {
		BLOCK = 50000,
		BLOCKS = 1049
	}; /* 50 MiB and a bit, no multiple of a page */
	static char block[BLOCK];
	const json_t *out;
	struct reply r;
	struct world w;
	struct msg m;
	long before;
	int client;

	(void)state;
	memset(block, 'x', sizeof(block));
	world_start_ready(&w, 1, 1);
	world_run_through(&w, world_ask_to_run(&w, "warm"), "warm");
	before = resident_bytes();
	client = world_ask_to_run(&w, "flood");
	world_expect(&w, MSG_SUBMIT, &m);
	for (int i = 0; i < BLOCKS; i++)
		assert_int_equal(io_write_all(m.fds[2], block, sizeof(block)), 0);
	assert_int_equal(io_write_all(m.fds[2], "the end", 7), 0);
	msg_done(&m);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	world_hear(client, &r);
	assert_true(resident_bytes() - before < 16 * MIB);
	out = json_object_get(json_object_get(r.body, "output"), "stdout");
	assert_int_equal(
		json_integer_value(json_object_get(out, "bytes")), (json_int_t)BLOCK * BLOCKS + 7);
	assert_int_equal(json_integer_value(json_object_get(out, "kept")), 64 * 1024);
	assert_int_equal(json_integer_value(json_object_get(out, "dropped")),
		(json_int_t)BLOCK * BLOCKS + 7 - 64 * 1024);
	assert_string_equal(world_text_of(&r, "stdout") + 64 * 1024 - 7, "the end");
	json_decref(r.body);
	world_finish(&w);
}

/* What was in the pipe when the verdict came is part of the answer, all of it. */
static void a_full_pipe_at_the_end_is_read_to_its_end(void **state)
{
	static char block[65536];
	struct reply r;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	memset(block, 'y', sizeof(block));
	world_start_ready(&w, 1, 1);
	for (int i = 0; i < 20; i++) {
		client = world_ask_to_run(&w, "x");
		world_expect(&w, MSG_SUBMIT, &m);
		assert_int_equal(io_write_all(m.fds[2], block, 40000), 0);
		assert_int_equal(io_write_all(m.fds[3], block, sizeof(block)), 0);
		world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
		msg_done(&m);
		world_hear(client, &r);
		assert_int_equal(strlen(world_text_of(&r, "stdout")), 40000);
		assert_int_equal(strlen(world_text_of(&r, "stderr")), 65536);
		json_decref(r.body);
	}
	world_finish(&w);
}

static void a_slow_supervisor_gets_every_submit_once_it_reads(void **state)
{
	enum {
		RUNS = 100
	};
	int clients[RUNS];
	bool seen[RUNS + 1] = { 0 };
	struct world w;
	struct msg m;

	(void)state;
	world_start_ready(&w, RUNS, 0);
	for (int i = 0; i < RUNS; i++)
		clients[i] = world_ask_to_run(&w, "x");
	world_expect_load(&w, RUNS, 0);
	for (int i = 0; i < RUNS; i++) {
		world_expect(&w, MSG_SUBMIT, &m);
		msg_done(&m);
		assert_in_range(m.as.SUBMIT.run, 1, RUNS);
		assert_false(seen[m.as.SUBMIT.run]);
		seen[m.as.SUBMIT.run] = true;
	}
	for (uint64_t i = 1; i <= RUNS; i++)
		world_end_run(&w, i, CAUSE_EXIT);
	for (int i = 0; i < RUNS; i++)
		world_expect_status(clients[i], 200);
	world_finish(&w);
}

/* ---- files that come back ---- */

static int ask_for_files(const struct world *w)
{
	return world_ask(w, "POST /execute", "Content-Type: application/json\r\n",
		"{\"code\": \"x\", \"artifacts\": \"list\"}");
}

static void end_with_files(const struct world *w, uint64_t run)
{
	world_tell(w, MSG_RESULT,
		&(struct msg_result){ .run = run, .cause = CAUSE_EXIT, .pids_peak = 1, .kept = 1 });
}

static void files_that_do_not_come_cost_a_warning_and_not_the_verdict(void **state)
{
	struct reply r;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	world_start_ready(&w, 1, 1);
	client = ask_for_files(&w);
	world_expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	end_with_files(&w, m.as.SUBMIT.run);
	world_expect(&w, MSG_COLLECT, &m);
	msg_done(&m); /* no collector, or one that is dead */
	world_hear(client, &r);
	assert_int_equal(r.status, 200);
	assert_string_equal(world_text_of(&r, "status"), "success");
	assert_int_equal(json_array_size(json_object_get(r.body, "files")), 0);
	assert_int_equal(json_array_size(json_object_get(r.body, "warnings")), 1);
	json_decref(r.body);
	world_expect_load(&w, 0, 0);
	world_finish(&w);
}

/* Who leaves while files arrive frees its slot at once: there may be two runs' messages for it. */
static void no_cancel_is_lost_on_a_slow_supervisor(void **state)
{
	enum {
		RUNS = 30
	};
	int clients[RUNS], cancelled = 0;
	struct world w;
	struct msg m;

	(void)state;
	world_start_ready(&w, RUNS, 0);
	for (int i = 0; i < RUNS; i++) {
		clients[i] = ask_for_files(&w);
		world_expect(&w, MSG_SUBMIT, &m);
		msg_done(&m);
	}
	/* From here on it reads nothing. */
	for (uint64_t i = 1; i <= RUNS; i++)
		end_with_files(&w, i);
	for (int i = 0; i < RUNS; i++)
		(void)close(clients[i]);
	world_expect_load(&w, 0, 0);
	for (int i = 0; i < RUNS; i++)
		clients[i] = ask_for_files(&w);
	world_expect_load(&w, RUNS, 0);
	for (int i = 0; i < RUNS; i++)
		(void)close(clients[i]);
	for (int i = 0; i < 10; i++) /* by when the front has seen that */
		world_expect_load(&w, RUNS, 0);
	while (cancelled < 2 * RUNS) {
		assert_int_equal(
			channel_recv(w.supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL), 1);
		msg_done(&m);
		cancelled += m.type == MSG_CANCEL;
	}
	world_finish(&w);
}

static void drain_ends_what_runs_and_sends_away_what_waits(void **state)
{
	struct msg_drain drain = { .grace_us = DEADLINE_S * 1000000 };
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int running, waiting, late = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct reply r;
	struct world w;
	struct msg m;

	(void)state;
	world_start_ready(&w, 1, 4);
	running = world_ask_to_run(&w, "x");
	world_expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	waiting = world_ask_to_run(&w, "y");
	world_expect_load(&w, 1, 1);
	world_tell(&w, MSG_DRAIN, &drain);
	world_expect_not_run(waiting, 503, true);
	a.sin_port = htons(w.port);
	assert_int_equal(connect(late, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	(void)close(late);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	world_hear(running, &r);
	assert_int_equal(r.status, 200);
	assert_non_null(strstr(r.head, "Connection: close"));
	json_decref(r.body);
	assert_int_equal(world_join(&w), 0);
	world_finish(&w);
}

static void an_idle_front_drains_at_once(void **state)
{
	struct world w;

	(void)state;
	world_start_ready(&w, 1, 1);
	world_tell(&w, MSG_DRAIN, &(struct msg_drain){ .grace_us = DEADLINE_S * 1000000 });
	assert_int_equal(world_join(&w), 0);
	world_finish(&w);
}

static void after_the_grace_what_runs_is_cancelled_and_answered(void **state)
{
	struct reply r;
	struct world w;
	struct msg m, c;
	int client;

	(void)state;
	world_start_ready(&w, 1, 1);
	client = world_ask_to_run(&w, "x");
	world_expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	world_tell(&w, MSG_DRAIN, &(struct msg_drain){ .grace_us = 1000 });
	world_expect(&w, MSG_CANCEL, &c);
	assert_int_equal(c.as.CANCEL.run, m.as.SUBMIT.run);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_CANCELLED);
	world_hear(client, &r);
	assert_int_equal(r.status, 200);
	assert_string_equal(world_text_of(&r, "cause"), "cancelled");
	json_decref(r.body);
	assert_int_equal(world_join(&w), 0);
	world_finish(&w);
}

static void only_a_ready_supervisor_is_given_runs(void **state)
{
	struct msg_health sick = { .ready = 0, .why = { -EIO, "the cgroup is gone" } };
	int client, waiting;
	struct reply r;
	struct world w;
	struct msg m;

	(void)state;
	world_start(&w, 1, 4);
	world_expect_status(world_ask(&w, "GET /health", "", ""), 503); /* nothing heard yet */
	world_expect_not_run(world_ask_to_run(&w, "x"), 503, true);
	world_tell(&w, MSG_HEALTH, &(struct msg_health){ .ready = 1 });
	client = world_ask_to_run(&w, "x");
	while (channel_recv(w.supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL) != 1)
		fail();
	msg_done(&m);
	world_expect_status(world_ask(&w, "GET /health", "", ""), 200);
	waiting = world_ask_to_run(&w, "y");
	world_expect_load(&w, 1, 1);
	world_tell(&w, MSG_HEALTH, &sick);
	world_hear(waiting, &r); /* would wait for ever */
	assert_int_equal(r.status, 503);
	assert_non_null(strstr(world_text_of(&r, "detail"), "the cgroup is gone"));
	json_decref(r.body);
	world_expect_status(world_ask(&w, "GET /health", "", ""), 503);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	world_expect_status(client, 200);
	world_finish(&w);
}

static void a_bad_request_never_reaches_the_supervisor(void **state)
{
	static const struct {
		const char *line, *headers, *body;
		int status;
	} bad[] = {
		{ "POST /execute", "", "{}", 422 },
		{ "POST /execute", "", "{\"code\": 1}", 422 },
		{ "POST /execute", "", "not JSON", 422 },
		{ "POST /execute", "", "{\"code\": \"x\", \"allow_network\": true}", 422 },
		{ "POST /execute", "Content-Type: text/plain\r\n", "{\"code\": \"x\"}", 415 },
		{ "POST /execute", "Origin: https://evil.example\r\n", "{\"code\": \"x\"}", 403 },
		{ "POST /execute", "Host: evil.example\r\n", "{\"code\": \"x\"}", 403 },
		{ "GET /execute", "", "", 405 },
		{ "POST /nothing", "", "{\"code\": \"x\"}", 404 },
	};
	struct reply r;
	struct world w;

	(void)state;
	world_start_ready(&w, 1, 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		world_hear(world_ask(&w, bad[i].line, bad[i].headers, bad[i].body), &r);
		assert_int_equal(r.status, bad[i].status);
		assert_non_null(json_object_get(r.body, "detail"));
		assert_int_equal(strstr(r.head, "Allow: POST\r\n") != NULL, r.status == 405);
		json_decref(r.body);
	}
	world_run_through(&w, world_ask_to_run(&w, "good"), "good"); /* the first SUBMIT there is */
	world_finish(&w);
}

static void the_documents_are_served(void **state)
{
	static const char *const lines[] = { "GET /openapi.json", "GET /limits", "GET /health" };
	struct reply r;
	struct world w;

	(void)state;
	world_start(&w, 1, 1);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		world_hear(world_ask(&w, lines[i], "", ""), &r);
		assert_int_equal(r.status, i == 2 ? 503 : 200);
		assert_true(json_object_size(r.body) > 0);
		assert_non_null(strstr(r.head, "Content-Type: application/json\r\n"));
		json_decref(r.body);
	}
	world_finish(&w);
}

static void the_log_tells_of_a_request_but_not_of_its_code_or_output(void **state)
{
	int log = memfd_create("log", MFD_CLOEXEC), saved = dup(STDERR_FILENO), client;
	char text[4096] = { 0 };
	struct world w;
	struct msg m;

	(void)state;
	assert_true(log >= 0 && saved >= 0);
	assert_int_equal(dup2(log, STDERR_FILENO), STDERR_FILENO);
	world_start_ready(&w, 1, 1);
	client = world_ask_to_run(&w, "SECRET_CODE");
	world_expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(io_write_all(m.fds[2], "SECRET_OUTPUT", 13), 0);
	msg_done(&m);
	world_end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	world_expect_status(client, 200);
	world_expect_status(world_ask(&w, "GET /a\"b", "", ""), 404);
	world_finish(&w);
	assert_int_equal(dup2(saved, STDERR_FILENO), STDERR_FILENO);
	assert_true(pread(log, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "method=\"POST\" path=\"/execute\" http=200 status=success "
				     "cause=exit ms="));
	assert_non_null(strstr(text, "path=\"/a\\\"b\" http=404 status=- cause=- ms="));
	assert_null(strstr(text, "SECRET"));
	(void)close(saved);
	(void)close(log);
}

/* Each test leaves exactly the descriptors behind that it found. */
static unsigned fds_before;

static int set_up(void **state)
{
	(void)state;
	(void)signal(SIGPIPE, SIG_IGN);
	fds_before = count_fds();
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	return count_fds() == fds_before ? 0 : -1;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_run_goes_to_the_supervisor_and_its_verdict_to_the_client),
		TEST(what_is_handed_over_is_sealed_and_of_the_right_kind),
		TEST(output_before_a_timeout_is_kept_and_no_end_is_waited_for),
		TEST(a_client_that_leaves_cancels_its_run_and_the_slot_waits_for_the_verdict),
		TEST(a_half_closed_connection_counts_as_left),
		TEST(a_client_that_leaves_the_line_is_skipped),
		TEST(those_who_wait_are_served_in_order),
		TEST(one_more_than_may_wait_gets_503_and_a_time),
		TEST(a_refused_run_says_that_the_code_did_not_run),
		TEST(an_answer_to_no_run_changes_nothing),
		TEST(without_its_supervisor_the_front_ends),
		TEST(a_flood_is_counted_to_the_byte_in_flat_memory),
		TEST(a_full_pipe_at_the_end_is_read_to_its_end),
		TEST(a_slow_supervisor_gets_every_submit_once_it_reads),
		TEST(files_that_do_not_come_cost_a_warning_and_not_the_verdict),
		TEST(no_cancel_is_lost_on_a_slow_supervisor),
		TEST(drain_ends_what_runs_and_sends_away_what_waits),
		TEST(an_idle_front_drains_at_once),
		TEST(after_the_grace_what_runs_is_cancelled_and_answered),
		TEST(only_a_ready_supervisor_is_given_runs),
		TEST(a_bad_request_never_reaches_the_supervisor),
		TEST(the_documents_are_served),
		TEST(the_log_tells_of_a_request_but_not_of_its_code_or_output),
	};

	json_object_seed(0);
	return cmocka_run_group_tests_name("front_run", tests, NULL, NULL);
}
