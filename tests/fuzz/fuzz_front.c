/* Fuzz target: the front as a whole between hostile clients, hostile programs and a supervisor
 * that has gone bad: HTTP, routes, JSON, queue, SUBMIT, output, RESULT, the reply. The input is
 * a list of deeds. Checks, beyond memory errors, that
 *  - no client can make the front send what the supervisor would drop it for;
 *  - whatever a program prints and the supervisor says, a client reads HTTP and JSON;
 *  - after the end no descriptor is left.
 */
#include "edge/front/front.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "priv/supervisor/submit.h"
#include "tests/fuzz/fuzz.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <event2/event.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>

/* Numbers over 2^63 are JSON, though jansson has no integers for them. */
#define FUZZ_JSON (JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_INT_AS_REAL)

#define CLIENTS   3
#define RUNS      4
#define DEEDS_MAX 120
#define TEXT_MAX  65536 /* of one client's answers */

static struct msg_hello hello = {
	.layers = LAYER_ALL,
	.cgroup_version = 2,
	.settings = {
		.listen = { .kind = LISTEN_UNIX, .path = "/f" },
		.max_runs = 2,
		.max_queue = 1,
		.def = { 3000000, 64 << 20, 0, 500, 32 },
		.max = { 300000000, 1 << 30, 0, 4000, 512 },
		.output_bytes = 2048,
		.body_bytes = 16384,
		.code_bytes = 8192,
		.workspace_inodes = 4096,
		.max_connections = 2,
		.log_level = 0,
	},
};

static struct {
	struct event_base *base;
	struct front *front;
	int supervisor, listener;
	struct sockaddr_un at;
	socklen_t at_len;
	struct client {
		int fd;
		bool asked_head; /* its answers cannot be told apart */
		size_t len;
		char text[TEXT_MAX + 1];
	} clients[CLIENTS];
	struct msg runs[RUNS]; /* SUBMITs that were not answered */
	unsigned run_count;
	bool over;
} w;

static void loop(void)
{
	for (unsigned i = 0; i < 3; i++)
		(void)event_base_loop(w.base, EVLOOP_NONBLOCK);
}

static void start(enum listen_kind kind)
{
	static struct offers offers;
	struct front_plan plan = { .hello = &hello, .store_fd = -1, .offers = &offers };
	struct fault f = { 0 };
	int pair[2];

	hello.settings.listen.kind = kind;
	w.base = event_base_new();
	CHECK(w.base && channel_pair(pair, 1) == 0);
	w.supervisor = pair[0];
	w.listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	w.at = (struct sockaddr_un){ .sun_family = AF_UNIX };
	/* The kernel picks an abstract name. */
	CHECK(bind(w.listener, (struct sockaddr *)&w.at, sizeof(sa_family_t)) == 0);
	w.at_len = sizeof(w.at);
	CHECK(getsockname(w.listener, (struct sockaddr *)&w.at, &w.at_len) == 0);
	CHECK(listen(w.listener, CLIENTS) == 0);
	offers = (struct offers){ .count = 1,
		.of = { { .name = "python", .main_file = "main.py" } } };
	plan.base = w.base;
	plan.channel_fd = pair[1];
	plan.listen_fd = w.listener;
	w.front = front_create(&plan, &f);
	CHECK(w.front);
	for (unsigned i = 0; i < CLIENTS; i++)
		w.clients[i].fd = -1;
	w.run_count = 0;
	w.over = false;
}

/* ---- Clients ---- */

/* One answer off the beginning: its length, 0 when it is not complete. */
static size_t check_answer(const char *text, size_t len)
{
	const char *end = memmem(text, len, "\r\n\r\n", 4), *length;
	size_t body = 0, head;
	json_error_t e;
	json_t *root;

	if (!end)
		return 0;
	head = (size_t)(end + 4 - text);
	CHECK(memcmp(text, "HTTP/1.1 ", 9) == 0);
	if (memcmp(text + 9, "100", 3) == 0)
		return head;
	length = memmem(text, head, "\r\nContent-Length: ", 18);
	CHECK(length);
	body = strtoul(length + 18, NULL, 10);
	if (len - head < body)
		return 0;
	root = json_loadb(text + head, body, FUZZ_JSON, &e);
	CHECK(root); /* each answer of the front is JSON */
	json_decref(root);
	return head + body;
}

static void check_answers(const struct client *c)
{
	size_t at = 0, n;

	if (c->asked_head)
		return;
	while (at < c->len && (n = check_answer(c->text + at, c->len - at)) > 0)
		at += n;
}

static void read_client(struct client *c)
{
	ssize_t n;

	while (c->fd >= 0 && c->len < TEXT_MAX &&
		(n = recv(c->fd, c->text + c->len, TEXT_MAX - c->len, MSG_DONTWAIT)) > 0)
		c->len += (size_t)n;
}

static void close_client(struct client *c)
{
	if (c->fd < 0)
		return;
	read_client(c);
	check_answers(c);
	drop_fd(&c->fd);
}

static void say(struct client *c, const void *bytes, size_t len)
{
	c->asked_head |= memmem(bytes, len, "HEAD", 4) != NULL;
	(void)send(c->fd, bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void say_request(struct fuzz *z, struct client *c)
{
	static const char *const fields[] = { "", ",\"memory_limit_mb\":64", ",\"cpu_limit\":1.5",
		",\"timeout_seconds\":1e-3", ",\"pids_limit\":512,\"nope\":[]",
		",\"cpu_time_seconds\":2", ",\"allow_network\":true" };
	static const char *const heads[] = { "", "Expect: 100-continue\r\n",
		"Origin: http://localhost:1\r\n", "Connection: close\r\n",
		"Content-Type: text/plain\r\n" };
	char body[600], head[400];
	size_t code;
	const uint8_t *p;
	int n = snprintf(body, sizeof(body), "{\"code\":\"");

	p = fuzz_take(z, fuzz_u8(z), &code);
	memcpy(body + n, p, code);
	n += (int)code;
	n += snprintf(body + n, sizeof(body) - (size_t)n, "\"%s}", fields[fuzz_u8(z) % 7]);
	code = (size_t)snprintf(head, sizeof(head),
		"POST /execute HTTP/1.1\r\nHost: localhost\r\n%sContent-Length: %d\r\n\r\n",
		heads[fuzz_u8(z) % 5], n);
	say(c, head, code);
	say(c, body, (size_t)n);
}

static void client_deed(struct fuzz *z)
{
	static const char *const gets[] = { "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /limits HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET /openapi.json HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n",
		"GET /nope HTTP/1.1\r\nHost: localhost\r\n\r\n" };
	struct client *c = &w.clients[fuzz_u8(z) % CLIENTS];
	const uint8_t *p;
	const char *get;
	size_t n;

	if (c->fd < 0) {
		c->len = 0;
		c->asked_head = false;
		c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (connect(c->fd, (struct sockaddr *)&w.at, w.at_len) < 0) {
			drop_fd(&c->fd); /* a server that drains takes nobody */
			return;
		}
		loop();
	}
	switch (fuzz_u8(z) % 8) {
	case 0:
		p = fuzz_take(z, fuzz_u8(z), &n);
		say(c, p, n);
		break;
	case 1:
		get = gets[fuzz_u8(z) % 4];
		say(c, get, strlen(get));
		break;
	case 2:
		(void)shutdown(c->fd, SHUT_WR);
		break;
	case 3:
		close_client(c);
		break;
	case 4:
		read_client(c);
		break;
	default:
		say_request(z, c);
	}
}

/* ---- The supervisor ---- */

static void read_submits(void)
{
	static struct msg m;
	struct fault f;
	int r;

	while ((r = channel_recv(w.supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL)) == 1) {
		if (m.type != MSG_SUBMIT)
			continue;
		CHECK(submit_violation(&m) == NULL);
		CHECK(m.as.SUBMIT.allow_network ||
			submit_check_limits(&m.as.SUBMIT, &hello.settings, &f) == 0);
		if (w.run_count < RUNS)
			w.runs[w.run_count++] = m;
		else
			msg_done(&m);
	}
	CHECK(r != -EPROTO);
}

static void forget_run(unsigned i)
{
	msg_done(&w.runs[i]);
	w.runs[i] = w.runs[--w.run_count];
}

static void answer(struct fuzz *z, unsigned i)
{
	struct msg_result result = { .memory_counter = fuzz_u8(z) };
	struct msg_refused refused = { .retry = fuzz_u8(z) % 2 };
	uint64_t run = w.runs[i].as.SUBMIT.run;
	uint8_t how = fuzz_u8(z);

	if (how % 4 == 0) {
		fuzz_fill(z, &result, sizeof(result));
		result.cause %= 8;
	}
	result.run = refused.run = how % 16 == 1 ? run + 1 : run;
	if (how % 4 != 3) {
		(void)channel_send(w.supervisor, MSG_RESULT, &result, NULL);
	} else {
		refused.fault.code = -(int)fuzz_u8(z);
		fuzz_fill(z, refused.fault.text, fuzz_u8(z) ? 20 : sizeof(refused.fault.text));
		(void)channel_send(w.supervisor, MSG_REFUSED, &refused, NULL);
	}
	if (result.run == run)
		forget_run(i);
}

static void send_health(struct fuzz *z)
{
	struct msg_health m = { .ready = 1 };

	if (fuzz_u8(z) % 2) {
		m.ready = fuzz_u8(z);
		m.warm = fuzz_u8(z) % 8;
		m.pool_ready = fuzz_u8(z);
		m.generation = fuzz_u64(z);
		fuzz_fill(z, &m.warm_why, fuzz_u8(z) % 2 ? 20 : sizeof(m.warm_why));
		fuzz_fill(z, &m.why, fuzz_u8(z) % 2 ? 20 : sizeof(m.why));
	}
	(void)channel_send(w.supervisor, MSG_HEALTH, &m, NULL);
}

/* An image that comes or goes, or nothing of the kind. */
static void send_offer(struct fuzz *z)
{
	struct msg_offer m = { .number = fuzz_u8(z) % 4,
		.edition = fuzz_u8(z),
		.offer = { .is_image = 1, .main_file = "main.sh" } };

	m.offer.name[0] = fuzz_u8(z) % 2 ? 'a' : '\0';
	if (fuzz_u8(z) % 4 == 0)
		fuzz_fill(z, &m, sizeof(m));
	(void)channel_send(w.supervisor, MSG_OFFER, &m, NULL);
}

/* What breaks a rule ends the front. */
static void send_packet(struct fuzz *z)
{
	static union msg_any payload;
	uint32_t type = fuzz_u8(z) % MSG_TYPE_MAX;
	size_t n;
	const uint8_t *p;

	if (type == MSG_OFFER) {
		send_offer(z);
		return;
	}
	if (type == MSG_HELLO || type == MSG_LAYER) {
		fuzz_fill(z, &payload, msg_size((enum msg_type)type));
		(void)channel_send(w.supervisor, (enum msg_type)type, &payload, NULL);
		return;
	}
	p = fuzz_take(z, fuzz_u8(z), &n);
	(void)send(w.supervisor, p, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	w.over = true;
}

static void print(struct fuzz *z, const struct msg *run)
{
	int fd = run->fds[2 + fuzz_u8(z) % 2];
	unsigned times = 1 + fuzz_u8(z) % 32;
	size_t n;
	const uint8_t *p = fuzz_take(z, fuzz_u8(z), &n);

	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	for (unsigned i = 0; n > 0 && i < times; i++)
		(void)!write(fd, p, n);
}

static void supervisor_deed(struct fuzz *z)
{
	const struct msg_drain drain = { .grace_us = fuzz_u64(z) >> 8 };
	unsigned i;

	read_submits();
	i = w.run_count > 0 ? fuzz_u8(z) % w.run_count : 0;
	switch (fuzz_u8(z) % 16) {
	case 0:
		send_packet(z);
		break;
	case 1:
		drop_fd(&w.supervisor);
		w.over = true;
		break;
	case 2:
		(void)channel_send(w.supervisor, MSG_DRAIN, &drain, NULL);
		break;
	case 3:
	case 4:
		send_health(z);
		break;
	case 5:
	case 6:
	case 7:
	case 8:
	case 9:
		if (w.run_count > 0)
			print(z, &w.runs[i]);
		break;
	default:
		if (w.run_count > 0)
			answer(z, i);
	}
}

/* ---- From the beginning to the end ---- */

static void finish(void)
{
	loop();
	for (unsigned i = 0; i < CLIENTS; i++)
		close_client(&w.clients[i]);
	loop();
	front_destroy(w.front);
	/* Freed bufferevents close their descriptors from the loop. */
	loop();
	event_base_free(w.base);
	if (w.supervisor >= 0)
		read_submits();
	while (w.run_count > 0)
		forget_run(0);
	drop_fd(&w.supervisor);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static const struct msg_health ready = { .ready = 1 };
	struct fuzz z = { bytes, len };
	unsigned fds;
	static bool seeded;

	if (!seeded)
		json_object_seed(1);
	seeded = true;
	log_setup("fuzz", LOG_LEVEL_ERR);
	fds = fuzz_count_fds();
	start((enum listen_kind)(fuzz_u8(&z) % 3));
	(void)channel_send(w.supervisor, MSG_HEALTH, &ready, NULL);
	for (unsigned i = 0; i < DEEDS_MAX && z.len > 0 && !w.over; i++) {
		loop();
		if (fuzz_u8(&z) % 2)
			client_deed(&z);
		else
			supervisor_deed(&z);
	}
	finish();
	CHECK(fuzz_count_fds() == fds);
	return 0;
}
