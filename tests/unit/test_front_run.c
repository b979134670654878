/* The front as a whole but for its confinement: it runs in a thread, the test is its
 * supervisor and its clients, over a real channel and real connections on loopback.
 * Everything waits for events with a deadline; "nothing comes" is shown by what comes
 * next instead. */
#include "unit.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "edge/front/front.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <jansson.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>

#define DEADLINE_S 20
#define MIB        (1024 * 1024)

struct world {
	struct event_base *base;
	struct front *front;
	pthread_t thread;
	bool joined;
	int status;     /* what front_run() returned */
	int supervisor; /* our end of the channel */
	uint16_t port;
};

struct reply {
	int status;
	char head[2048];
	json_t *body;
};

/* ---- the front in its thread ---- */

static void *serve(void *arg)
{
	struct world *w = arg;

	w->status = front_run(w->front);
	return NULL;
}

static int listen_on_loopback(uint16_t *ret_port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(a);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
	*ret_port = ntohs(a.sin_port);
	return fd;
}

static void set_deadline(int fd)
{
	struct timeval tv = { .tv_sec = DEADLINE_S };

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv)), 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv)), 0);
}

static struct msg_hello hello_of(uint32_t max_runs, uint32_t max_queue)
{
	struct msg_hello h = {
		.layers = LAYER_ALL,
		.cgroup_version = 2,
		.settings = {
			.listen = { .kind = LISTEN_INET, .ip = { 127, 0, 0, 1 } },
			.max_runs = max_runs,
			.max_queue = max_queue,
			.def = { 3000000, 64 * MIB, 0, 500, 32 },
			.max = { 300000000, 1024 * MIB, 0, 4000, 512 },
			.output_bytes = 64 * 1024,
			.body_bytes = MIB,
			.code_bytes = MIB / 2,
			.workspace_inodes = 4096,
			.max_connections = 256,
			.log_level = 2,
		},
	};

	return h;
}

static void tell(const struct world *w, enum msg_type type, const void *payload)
{
	assert_int_equal(channel_send(w->supervisor, type, payload, NULL), 0);
}

static void start(struct world *w, uint32_t max_runs, uint32_t max_queue)
{
	struct msg_hello hello = hello_of(max_runs, max_queue);
	struct front_plan plan = { .hello = &hello, .store_fd = -1 };
	struct fault f = { 0 };
	int pair[2], small = 4096;

	*w = (struct world){ .status = -1 };
	assert_int_equal(channel_pair(pair, 0), 0);
	w->supervisor = pair[0];
	set_deadline(w->supervisor);
	/* So small that a handful of messages fills it. */
	assert_int_equal(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)), 0);
	plan.channel_fd = pair[1];
	plan.listen_fd = listen_on_loopback(&w->port);
	w->base = plan.base = event_base_new();
	w->front = front_create(&plan, &f);
	assert_non_null(w->front);
	assert_int_equal(pthread_create(&w->thread, NULL, serve, w), 0);
}

static void start_ready(struct world *w, uint32_t max_runs, uint32_t max_queue)
{
	start(w, max_runs, max_queue);
	tell(w, MSG_HEALTH, &(struct msg_health){ .ready = 1 });
}

static int join(struct world *w)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_S;
	assert_int_equal(pthread_timedjoin_np(w->thread, NULL, &until), 0);
	w->joined = true;
	return w->status;
}

static void finish(struct world *w)
{
	drop_fd(&w->supervisor);
	if (!w->joined)
		assert_int_equal(join(w), 1); /* the supervisor is lost */
	front_destroy(w->front);
	event_base_free(w->base);
}

/* ---- clients ---- */

static int dial(const struct world *w)
{
	struct sockaddr_in a = { .sin_family = AF_INET,
		.sin_port = htons(w->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	set_deadline(fd);
	assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

/* A connection on which `method path` with `headers` (each with its CRLF) and `body` has
 * been sent. */
static int ask(const struct world *w, const char *start_line, const char *headers, const char *body)
{
	char head[1024];
	int fd = dial(w);
	int n = snprintf(head, sizeof(head), "%s HTTP/1.1\r\n%s%sContent-Length: %zu\r\n\r\n",
		start_line, strstr(headers, "Host:") ? "" : "Host: localhost\r\n", headers,
		strlen(body));

	assert_in_range(n, 1, sizeof(head) - 1);
	assert_int_equal(io_write_all(fd, head, (size_t)n), 0);
	assert_int_equal(io_write_all(fd, body, strlen(body)), 0);
	return fd;
}

static int ask_to_run(const struct world *w, const char *code)
{
	char body[512];

	(void)snprintf(body, sizeof(body), "{\"code\": \"%s\", \"timeout_seconds\": 1.5}", code);
	return ask(w, "POST /execute", "Content-Type: application/json\r\n", body);
}

/* The answer on `fd`, which is closed. */
static void hear(int fd, struct reply *ret)
{
	size_t room = 4 * MIB, len = 0, want = SIZE_MAX;
	cleanup_free char *bytes = malloc(room + 1);
	char *body = NULL;

	assert_non_null(bytes);
	while (len < want && len < room) {
		ssize_t n = recv(fd, bytes + len, room - len, 0);

		assert_true(n > 0);
		len += (size_t)n;
		bytes[len] = '\0';
		body = strstr(bytes, "\r\n\r\n");
		if (body) {
			const char *length = strstr(bytes, "Content-Length: ");

			assert_non_null(length);
			body += 4;
			want = (size_t)(body - bytes) + strtoul(length + 16, NULL, 10);
		}
	}
	assert_int_equal(len, want);
	(void)snprintf(ret->head, sizeof(ret->head), "%.*s", (int)(body - bytes), bytes);
	assert_int_equal(sscanf(ret->head, "HTTP/1.1 %d", &ret->status), 1);
	ret->body = json_loads(body, 0, NULL);
	assert_non_null(ret->body);
	(void)close(fd);
}

static const char *text_of(const struct reply *r, const char *key)
{
	return json_string_value(json_object_get(r->body, key));
}

static void expect_status(int fd, int status)
{
	struct reply r;

	hear(fd, &r);
	assert_int_equal(r.status, status);
	json_decref(r.body);
}

static void expect_not_run(int fd, int status, bool retry)
{
	struct reply r;

	hear(fd, &r);
	assert_int_equal(r.status, status);
	assert_non_null(strstr(text_of(&r, "detail"), "the code did not run"));
	assert_int_equal(strstr(r.head, "Retry-After: ") != NULL, retry);
	json_decref(r.body);
}

static void expect_load(const struct world *w, int running, int queued)
{
	int got_running = -1, got_queued = -1;
	struct reply r;

	/* A request that another connection brings may be looked at after this one. */
	for (int i = 0; i < 2000 && (got_running != running || got_queued != queued); i++) {
		hear(ask(w, "GET /health", "", ""), &r);
		got_running = (int)json_integer_value(json_object_get(r.body, "running"));
		got_queued = (int)json_integer_value(json_object_get(r.body, "queued"));
		json_decref(r.body);
	}
	assert_int_equal(got_running, running);
	assert_int_equal(got_queued, queued);
}

/* ---- the supervisor ---- */

static void expect(const struct world *w, enum msg_type type, struct msg *ret)
{
	assert_int_equal(channel_recv(w->supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, ret, NULL), 1);
	assert_int_equal(ret->type, type);
}

static void end_run(const struct world *w, uint64_t run, enum run_cause cause)
{
	struct msg_result m = { .run = run, .cause = cause, .wall_us = 1234, .pids_peak = 1 };

	tell(w, MSG_RESULT, &m);
}

/* Expect the SUBMIT of `code`, end it as a success, and expect the client to hear it. */
static void run_through(const struct world *w, int client, const char *code)
{
	char got[64] = { 0 };
	struct msg m;

	expect(w, MSG_SUBMIT, &m);
	assert_true(pread(m.fds[0], got, sizeof(got) - 1, 0) >= 0);
	assert_string_equal(got, code);
	msg_done(&m);
	end_run(w, m.as.SUBMIT.run, CAUSE_EXIT);
	expect_status(client, 200);
}

/* ---- the tests ---- */

static void a_run_goes_to_the_supervisor_and_its_verdict_to_the_client(void **state)
{
	struct reply r;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	start_ready(&w, 4, 4);
	client = ask_to_run(&w, "print(1)");
	expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(m.as.SUBMIT.limits.timeout_us, 1500000);
	assert_int_equal(m.as.SUBMIT.limits.memory_bytes, 64 * MIB);
	assert_int_equal(m.as.SUBMIT.code_bytes, 8);
	assert_int_equal(m.as.SUBMIT.allow_network, 0);
	assert_int_equal(io_write_all(m.fds[2], "one\n", 4), 0);
	assert_int_equal(io_write_all(m.fds[3], "two\n", 4), 0);
	msg_done(&m);
	end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);

	hear(client, &r);
	assert_int_equal(r.status, 200);
	assert_string_equal(text_of(&r, "status"), "success");
	assert_string_equal(text_of(&r, "stdout"), "one\n");
	assert_string_equal(text_of(&r, "stderr"), "two\n");
	assert_int_equal(json_integer_value(json_object_get(r.body, "exit_code")), 0);
	assert_int_equal(strlen(text_of(&r, "id")), 32);
	assert_non_null(strstr(strstr(r.head, "X-Glovebox-Id: "), text_of(&r, "id")));
	json_decref(r.body);
	finish(&w);
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
	start_ready(&w, 4, 4);
	client = ask_to_run(&w, "x");
	expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(fcntl(m.fds[0], F_GET_SEALS), seals);
	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		assert_int_equal(fcntl(m.fds[i], F_GETFL) & (O_ACCMODE | O_NONBLOCK), modes[i]);
	assert_int_equal(read(m.fds[1], &byte, 1), 0); /* stdin is at its end already */
	msg_done(&m);
	end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	expect_status(client, 200);
	finish(&w);
}

/* A descriptor that lives on elsewhere must not hold up the answer. */
static void output_before_a_timeout_is_kept_and_no_end_is_waited_for(void **state)
{
	struct reply r;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	start_ready(&w, 1, 4);
	client = ask_to_run(&w, "loop");
	expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(io_write_all(m.fds[2], "so far", 6), 0);
	end_run(&w, m.as.SUBMIT.run, CAUSE_WALL_TIMEOUT);
	hear(client, &r);
	assert_string_equal(text_of(&r, "status"), "timeout");
	assert_string_equal(text_of(&r, "stdout"), "so far");
	assert_int_equal(json_integer_value(json_object_get(r.body, "exit_code")), 124);
	json_decref(r.body);
	/* The answer comes first, and then our end is closed. */
	assert_int_equal(poll(&(struct pollfd){ .fd = m.fds[2] }, 1, 10000), 1);
	assert_true(write(m.fds[2], "x", 1) < 0 && errno == EPIPE);
	msg_done(&m);
	finish(&w);
}

static void a_client_that_leaves_cancels_its_run_and_the_slot_waits_for_the_verdict(void **state)
{
	struct world w;
	struct msg m, c;
	int client, next;

	(void)state;
	start_ready(&w, 1, 4);
	client = ask_to_run(&w, "first");
	expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	(void)close(client);
	expect(&w, MSG_CANCEL, &c);
	assert_int_equal(c.as.CANCEL.run, m.as.SUBMIT.run);
	next = ask_to_run(&w, "second");
	expect_load(&w, 1, 1);
	end_run(&w, m.as.SUBMIT.run, CAUSE_CANCELLED);
	run_through(&w, next, "second");
	finish(&w);
}

static void a_half_closed_connection_counts_as_left(void **state)
{
	struct world w;
	struct msg m, c;
	int client;

	(void)state;
	start_ready(&w, 1, 4);
	client = ask_to_run(&w, "x");
	expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	assert_int_equal(shutdown(client, SHUT_WR), 0);
	expect(&w, MSG_CANCEL, &c);
	assert_int_equal(c.as.CANCEL.run, m.as.SUBMIT.run);
	(void)close(client);
	finish(&w);
}

static void a_client_that_leaves_the_line_is_skipped(void **state)
{
	int first, second, third;
	struct world w;

	(void)state;
	start_ready(&w, 1, 4);
	first = ask_to_run(&w, "first");
	expect_load(&w, 1, 0);
	second = ask_to_run(&w, "second");
	expect_load(&w, 1, 1);
	third = ask_to_run(&w, "third");
	expect_load(&w, 1, 2);
	(void)close(second);
	expect_load(&w, 1, 1);
	run_through(&w, first, "first");
	run_through(&w, third, "third");
	finish(&w);
}

static void those_who_wait_are_served_in_order(void **state)
{
	static const char *const codes[] = { "a", "b", "c", "d" };
	int clients[4];
	struct world w;

	(void)state;
	start_ready(&w, 1, 4);
	for (int i = 0; i < 4; i++) {
		clients[i] = ask_to_run(&w, codes[i]);
		expect_load(&w, 1, i);
	}
	for (int i = 0; i < 4; i++)
		run_through(&w, clients[i], codes[i]);
	expect_load(&w, 0, 0);
	finish(&w);
}

static void one_more_than_may_wait_gets_503_and_a_time(void **state)
{
	int first, second;
	struct world w;

	(void)state;
	start_ready(&w, 1, 1);
	first = ask_to_run(&w, "first");
	expect_load(&w, 1, 0);
	second = ask_to_run(&w, "second");
	expect_load(&w, 1, 1);
	expect_not_run(ask_to_run(&w, "third"), 503, true);
	run_through(&w, first, "first");
	run_through(&w, second, "second");
	finish(&w);
}

static void a_refused_run_says_that_the_code_did_not_run(void **state)
{
	struct msg_refused no = { .retry = 1, .fault = { -EAGAIN, "no cell\nis ready" } };
	struct world w;
	struct msg m;
	int client;

	(void)state;
	start_ready(&w, 1, 1);
	for (int retry = 1; retry >= 0; retry--) {
		client = ask_to_run(&w, "x");
		expect(&w, MSG_SUBMIT, &m);
		msg_done(&m);
		no.run = m.as.SUBMIT.run;
		no.retry = (uint32_t)retry;
		tell(&w, MSG_REFUSED, &no);
		expect_not_run(client, retry ? 503 : 500, retry);
	}
	run_through(&w, ask_to_run(&w, "y"), "y"); /* the slot is free again */
	finish(&w);
}

static void an_answer_to_no_run_changes_nothing(void **state)
{
	struct world w;
	int client;

	(void)state;
	start_ready(&w, 1, 1);
	client = ask_to_run(&w, "x");
	expect_load(&w, 1, 0);
	end_run(&w, 4711, CAUSE_EXIT);
	tell(&w, MSG_REFUSED, &(struct msg_refused){ .run = 4712, .fault = { -EIO, "no" } });
	run_through(&w, client, "x");
	finish(&w);
}

static void without_its_supervisor_the_front_ends(void **state)
{
	struct world w;
	char byte;
	int client;

	(void)state;
	start_ready(&w, 1, 1);
	client = ask_to_run(&w, "x");
	expect_load(&w, 1, 0);
	drop_fd(&w.supervisor);
	assert_int_equal(join(&w), 1);
	finish(&w);
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
	start_ready(&w, 1, 1);
	run_through(&w, ask_to_run(&w, "warm"), "warm");
	before = resident_bytes();
	client = ask_to_run(&w, "flood");
	expect(&w, MSG_SUBMIT, &m);
	for (int i = 0; i < BLOCKS; i++)
		assert_int_equal(io_write_all(m.fds[2], block, sizeof(block)), 0);
	assert_int_equal(io_write_all(m.fds[2], "the end", 7), 0);
	msg_done(&m);
	end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	hear(client, &r);
	assert_true(resident_bytes() - before < 16 * MIB);
	out = json_object_get(json_object_get(r.body, "output"), "stdout");
	assert_int_equal(
		json_integer_value(json_object_get(out, "bytes")), (json_int_t)BLOCK * BLOCKS + 7);
	assert_int_equal(json_integer_value(json_object_get(out, "kept")), 64 * 1024);
	assert_int_equal(json_integer_value(json_object_get(out, "dropped")),
		(json_int_t)BLOCK * BLOCKS + 7 - 64 * 1024);
	assert_string_equal(text_of(&r, "stdout") + 64 * 1024 - 7, "the end");
	json_decref(r.body);
	finish(&w);
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
	start_ready(&w, 1, 1);
	for (int i = 0; i < 20; i++) {
		client = ask_to_run(&w, "x");
		expect(&w, MSG_SUBMIT, &m);
		assert_int_equal(io_write_all(m.fds[2], block, 40000), 0);
		assert_int_equal(io_write_all(m.fds[3], block, sizeof(block)), 0);
		end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
		msg_done(&m);
		hear(client, &r);
		assert_int_equal(strlen(text_of(&r, "stdout")), 40000);
		assert_int_equal(strlen(text_of(&r, "stderr")), 65536);
		json_decref(r.body);
	}
	finish(&w);
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
	start_ready(&w, RUNS, 0);
	for (int i = 0; i < RUNS; i++)
		clients[i] = ask_to_run(&w, "x");
	expect_load(&w, RUNS, 0);
	for (int i = 0; i < RUNS; i++) {
		expect(&w, MSG_SUBMIT, &m);
		msg_done(&m);
		assert_in_range(m.as.SUBMIT.run, 1, RUNS);
		assert_false(seen[m.as.SUBMIT.run]);
		seen[m.as.SUBMIT.run] = true;
	}
	for (uint64_t i = 1; i <= RUNS; i++)
		end_run(&w, i, CAUSE_EXIT);
	for (int i = 0; i < RUNS; i++)
		expect_status(clients[i], 200);
	finish(&w);
}

/* ---- files that come back ---- */

static int ask_for_files(const struct world *w)
{
	return ask(w, "POST /execute", "Content-Type: application/json\r\n",
		"{\"code\": \"x\", \"artifacts\": \"list\"}");
}

static void end_with_files(const struct world *w, uint64_t run)
{
	tell(w, MSG_RESULT,
		&(struct msg_result){ .run = run, .cause = CAUSE_EXIT, .pids_peak = 1, .kept = 1 });
}

static void files_that_do_not_come_cost_a_warning_and_not_the_verdict(void **state)
{
	struct reply r;
	struct world w;
	struct msg m;
	int client;

	(void)state;
	start_ready(&w, 1, 1);
	client = ask_for_files(&w);
	expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	end_with_files(&w, m.as.SUBMIT.run);
	expect(&w, MSG_COLLECT, &m);
	msg_done(&m); /* no collector, or one that is dead */
	hear(client, &r);
	assert_int_equal(r.status, 200);
	assert_string_equal(text_of(&r, "status"), "success");
	assert_int_equal(json_array_size(json_object_get(r.body, "files")), 0);
	assert_int_equal(json_array_size(json_object_get(r.body, "warnings")), 1);
	json_decref(r.body);
	expect_load(&w, 0, 0);
	finish(&w);
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
	start_ready(&w, RUNS, 0);
	for (int i = 0; i < RUNS; i++) {
		clients[i] = ask_for_files(&w);
		expect(&w, MSG_SUBMIT, &m);
		msg_done(&m);
	}
	/* From here on it reads nothing. */
	for (uint64_t i = 1; i <= RUNS; i++)
		end_with_files(&w, i);
	for (int i = 0; i < RUNS; i++)
		(void)close(clients[i]);
	expect_load(&w, 0, 0);
	for (int i = 0; i < RUNS; i++)
		clients[i] = ask_for_files(&w);
	expect_load(&w, RUNS, 0);
	for (int i = 0; i < RUNS; i++)
		(void)close(clients[i]);
	for (int i = 0; i < 10; i++) /* by when the front has seen that */
		expect_load(&w, RUNS, 0);
	while (cancelled < 2 * RUNS) {
		assert_int_equal(
			channel_recv(w.supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL), 1);
		msg_done(&m);
		cancelled += m.type == MSG_CANCEL;
	}
	finish(&w);
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
	start_ready(&w, 1, 4);
	running = ask_to_run(&w, "x");
	expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	waiting = ask_to_run(&w, "y");
	expect_load(&w, 1, 1);
	tell(&w, MSG_DRAIN, &drain);
	expect_not_run(waiting, 503, true);
	a.sin_port = htons(w.port);
	assert_int_equal(connect(late, (struct sockaddr *)&a, sizeof(a)), -1);
	assert_int_equal(errno, ECONNREFUSED);
	(void)close(late);
	end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	hear(running, &r);
	assert_int_equal(r.status, 200);
	assert_non_null(strstr(r.head, "Connection: close"));
	json_decref(r.body);
	assert_int_equal(join(&w), 0);
	finish(&w);
}

static void an_idle_front_drains_at_once(void **state)
{
	struct world w;

	(void)state;
	start_ready(&w, 1, 1);
	tell(&w, MSG_DRAIN, &(struct msg_drain){ .grace_us = DEADLINE_S * 1000000 });
	assert_int_equal(join(&w), 0);
	finish(&w);
}

static void after_the_grace_what_runs_is_cancelled_and_answered(void **state)
{
	struct reply r;
	struct world w;
	struct msg m, c;
	int client;

	(void)state;
	start_ready(&w, 1, 1);
	client = ask_to_run(&w, "x");
	expect(&w, MSG_SUBMIT, &m);
	msg_done(&m);
	tell(&w, MSG_DRAIN, &(struct msg_drain){ .grace_us = 1000 });
	expect(&w, MSG_CANCEL, &c);
	assert_int_equal(c.as.CANCEL.run, m.as.SUBMIT.run);
	end_run(&w, m.as.SUBMIT.run, CAUSE_CANCELLED);
	hear(client, &r);
	assert_int_equal(r.status, 200);
	assert_string_equal(text_of(&r, "cause"), "cancelled");
	json_decref(r.body);
	assert_int_equal(join(&w), 0);
	finish(&w);
}

static void only_a_ready_supervisor_is_given_runs(void **state)
{
	struct msg_health sick = { .ready = 0, .why = { -EIO, "the cgroup is gone" } };
	int client, waiting;
	struct reply r;
	struct world w;
	struct msg m;

	(void)state;
	start(&w, 1, 4);
	expect_status(ask(&w, "GET /health", "", ""), 503); /* nothing heard yet */
	expect_not_run(ask_to_run(&w, "x"), 503, true);
	tell(&w, MSG_HEALTH, &(struct msg_health){ .ready = 1 });
	client = ask_to_run(&w, "x");
	while (channel_recv(w.supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL) != 1)
		fail();
	msg_done(&m);
	expect_status(ask(&w, "GET /health", "", ""), 200);
	waiting = ask_to_run(&w, "y");
	expect_load(&w, 1, 1);
	tell(&w, MSG_HEALTH, &sick);
	hear(waiting, &r); /* would wait for ever */
	assert_int_equal(r.status, 503);
	assert_non_null(strstr(text_of(&r, "detail"), "the cgroup is gone"));
	json_decref(r.body);
	expect_status(ask(&w, "GET /health", "", ""), 503);
	end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	expect_status(client, 200);
	finish(&w);
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
	start_ready(&w, 1, 1);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		hear(ask(&w, bad[i].line, bad[i].headers, bad[i].body), &r);
		assert_int_equal(r.status, bad[i].status);
		assert_non_null(json_object_get(r.body, "detail"));
		assert_int_equal(strstr(r.head, "Allow: POST\r\n") != NULL, r.status == 405);
		json_decref(r.body);
	}
	run_through(&w, ask_to_run(&w, "good"), "good"); /* the first SUBMIT there is */
	finish(&w);
}

static void the_documents_are_served(void **state)
{
	static const char *const lines[] = { "GET /openapi.json", "GET /limits", "GET /health" };
	struct reply r;
	struct world w;

	(void)state;
	start(&w, 1, 1);
	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		hear(ask(&w, lines[i], "", ""), &r);
		assert_int_equal(r.status, i == 2 ? 503 : 200);
		assert_true(json_object_size(r.body) > 0);
		assert_non_null(strstr(r.head, "Content-Type: application/json\r\n"));
		json_decref(r.body);
	}
	finish(&w);
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
	start_ready(&w, 1, 1);
	client = ask_to_run(&w, "SECRET_CODE");
	expect(&w, MSG_SUBMIT, &m);
	assert_int_equal(io_write_all(m.fds[2], "SECRET_OUTPUT", 13), 0);
	msg_done(&m);
	end_run(&w, m.as.SUBMIT.run, CAUSE_EXIT);
	expect_status(client, 200);
	expect_status(ask(&w, "GET /a\"b", "", ""), 404);
	finish(&w);
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
static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n;
}

static int fds_before;

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
