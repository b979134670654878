#include "front_world.h"

#include "unit.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "edge/front/front.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <arpa/inet.h>
#include <event2/event.h>
#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

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

struct msg_hello world_hello_of(uint32_t max_runs, uint32_t max_queue)
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

void world_tell(const struct world *w, enum msg_type type, const void *payload)
{
	assert_int_equal(channel_send(w->supervisor, type, payload, NULL), 0);
}

void world_start_as(struct world *w, const struct msg_hello *hello, struct offers *offers)
{
	struct front_plan plan = { .hello = hello, .store_fd = -1, .offers = offers };
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

void world_start(struct world *w, uint32_t max_runs, uint32_t max_queue)
{
	struct msg_hello hello = world_hello_of(max_runs, max_queue);

	world_start_as(w, &hello, NULL);
}

void world_start_ready(struct world *w, uint32_t max_runs, uint32_t max_queue)
{
	world_start(w, max_runs, max_queue);
	world_tell(w, MSG_HEALTH, &(struct msg_health){ .ready = 1 });
}

int world_join(struct world *w)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += DEADLINE_S;
	assert_int_equal(pthread_timedjoin_np(w->thread, NULL, &until), 0);
	w->joined = true;
	return w->status;
}

void world_finish(struct world *w)
{
	drop_fd(&w->supervisor);
	if (!w->joined)
		assert_int_equal(world_join(w), 1); /* the supervisor is lost */
	front_destroy(w->front);
	event_base_free(w->base);
}

/* ---- clients ---- */

int world_dial(const struct world *w)
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
int world_ask(const struct world *w, const char *start_line, const char *headers, const char *body)
{
	char head[1024];
	int fd = world_dial(w);
	int n = snprintf(head, sizeof(head), "%s HTTP/1.1\r\n%s%sContent-Length: %zu\r\n\r\n",
		start_line, strstr(headers, "Host:") ? "" : "Host: localhost\r\n", headers,
		strlen(body));

	assert_in_range(n, 1, sizeof(head) - 1);
	assert_int_equal(io_write_all(fd, head, (size_t)n), 0);
	assert_int_equal(io_write_all(fd, body, strlen(body)), 0);
	return fd;
}

int world_ask_to_run(const struct world *w, const char *code)
{
	char body[512];

	(void)snprintf(body, sizeof(body), "{\"code\": \"%s\", \"timeout_seconds\": 1.5}", code);
	return world_ask(w, "POST /execute", "Content-Type: application/json\r\n", body);
}

/* The answer on `fd`, which is closed. */
void world_hear(int fd, struct reply *ret)
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

const char *world_text_of(const struct reply *r, const char *key)
{
	return json_string_value(json_object_get(r->body, key));
}

void world_expect_status(int fd, int status)
{
	struct reply r;

	world_hear(fd, &r);
	assert_int_equal(r.status, status);
	json_decref(r.body);
}

void world_expect_not_run(int fd, int status, bool retry)
{
	struct reply r;

	world_hear(fd, &r);
	assert_int_equal(r.status, status);
	assert_non_null(strstr(world_text_of(&r, "detail"), "the code did not run"));
	assert_int_equal(strstr(r.head, "Retry-After: ") != NULL, retry);
	json_decref(r.body);
}

void world_expect_load(const struct world *w, int running, int queued)
{
	int got_running = -1, got_queued = -1;
	struct reply r;

	/* A request that another connection brings may be looked at after this one. */
	for (int i = 0; i < 2000 && (got_running != running || got_queued != queued); i++) {
		world_hear(world_ask(w, "GET /health", "", ""), &r);
		got_running = (int)json_integer_value(json_object_get(r.body, "running"));
		got_queued = (int)json_integer_value(json_object_get(r.body, "queued"));
		json_decref(r.body);
	}
	assert_int_equal(got_running, running);
	assert_int_equal(got_queued, queued);
}

/* ---- the supervisor ---- */

void world_expect(const struct world *w, enum msg_type type, struct msg *ret)
{
	assert_int_equal(channel_recv(w->supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, ret, NULL), 1);
	assert_int_equal(ret->type, type);
}

void world_end_run(const struct world *w, uint64_t run, enum run_cause cause)
{
	struct msg_result m = { .run = run, .cause = cause, .wall_us = 1234, .pids_peak = 1 };

	world_tell(w, MSG_RESULT, &m);
}

/* Expect the SUBMIT of `code`, end it as a success, and expect the client to hear it. */
void world_run_through(const struct world *w, int client, const char *code)
{
	char got[64] = { 0 };
	struct msg m;

	world_expect(w, MSG_SUBMIT, &m);
	assert_true(pread(m.fds[0], got, sizeof(got) - 1, 0) >= 0);
	assert_string_equal(got, code);
	msg_done(&m);
	world_end_run(w, m.as.SUBMIT.run, CAUSE_EXIT);
	world_expect_status(client, 200);
}
