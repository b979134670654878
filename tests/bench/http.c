#include "client.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct text http_post(const char *path, const struct text *body)
{
	struct text t = { .bytes = malloc(body->length + 512) };
	int head = snprintf(t.bytes, 512,
		"POST %s HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
		"Content-Length: %zu\r\n\r\n",
		path, body->length);

	memcpy(t.bytes + head, body->bytes, body->length);
	t.length = (size_t)head + body->length;
	return t;
}

struct text http_get(const char *path)
{
	struct text t = { .bytes = malloc(512) };

	t.length =
		(size_t)snprintf(t.bytes, 512, "GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", path);
	return t;
}

static bool connected(struct worker *w)
{
	const struct timeval patience = { .tv_sec = ANSWER_TIMEOUT_MS / 1000 };
	struct sockaddr_in to = {
		.sin_family = AF_INET,
		.sin_port = htons((uint16_t)w->load->port),
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	int one = 1;

	if (w->fd >= 0)
		return true;
	w->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(w->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	setsockopt(w->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return connect(w->fd, (struct sockaddr *)&to, sizeof(to)) == 0 || wrong(w, "connect: %m");
}

static bool send_all(int fd, const struct text *t)
{
	size_t done = 0;

	while (done < t->length) {
		ssize_t n = send(fd, t->bytes + done, t->length - done, MSG_NOSIGNAL);

		if (n <= 0)
			return false;
		done += (size_t)n;
	}
	return true;
}

/* One message with a Content-Length. Its body in `ret` is part of the worker's buffer. */
static bool receive(struct worker *w, struct text *ret)
{
	size_t have = 0, want = 0;

	while (want == 0 || have < want) {
		ssize_t n = have + 1 < w->size
				    ? recv(w->fd, w->buffer + have, w->size - 1 - have, 0)
				    : -1;
		char *end, *at;

		if (n <= 0)
			return wrong(w, "the answer ended after %zu bytes: %m", have);
		have += (size_t)n;
		w->buffer[have] = '\0';
		end = want == 0 ? strstr(w->buffer, "\r\n\r\n") : NULL;
		if (!end)
			continue;
		at = strcasestr(w->buffer, "\r\ncontent-length:");
		if (!at || at > end)
			return wrong(w, "an answer without Content-Length");
		ret->bytes = end + 4;
		ret->length = strtoul(at + 17, NULL, 10);
		want = (size_t)(ret->bytes - w->buffer) + ret->length;
	}
	return true;
}

static uint64_t thousandths(const json_t *object, const char *key)
{
	double v = json_number_value(json_object_get(object, key));

	return v > 0 ? (uint64_t)(v * 1000 + 0.5) : 0;
}

static uint64_t whole(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

/* The one file that has come back. */
static bool check_left(struct worker *w, const json_t *files)
{
	const json_t *file = json_array_get(files, 0);
	const char *path = json_string_value(json_object_get(file, "path"));
	const char *content = json_string_value(json_object_get(file, "content"));
	const struct text *left = &w->load->left;

	if (json_array_size(files) != 1 || !path || strcmp(path, w->load->left_name) != 0)
		return wrong(w, "%zu files came back, the first is %s", json_array_size(files),
			path ? path : "none");
	if (!content || strncmp(content, left->bytes, left->length) != 0)
		return wrong(w, "%s begins with \"%.40s\"", path, content ? content : "");
	return true;
}

static bool check(struct worker *w, const json_t *reply)
{
	const char *status = json_string_value(json_object_get(reply, "status"));
	const json_t *out = json_object_get(reply, "stdout");
	const json_t *code = json_object_get(reply, "exit_code");
	const char *complaint = json_string_value(json_object_get(reply, "stderr"));
	const struct text *expect = &w->load->expect;

	if (!status || strcmp(status, "success") != 0 || !json_is_integer(code) ||
		json_integer_value(code) != 0 || !complaint || complaint[0])
		return wrong(w, "status %s, cause %s, stderr \"%.120s\"", status ? status : "none",
			json_string_value(json_object_get(reply, "cause")),
			complaint ? complaint : "");
	if (json_string_length(out) != expect->length ||
		memcmp(json_string_value(out), expect->bytes, expect->length) != 0)
		return wrong(w, "printed \"%.80s\"", json_string_value(out));
	return !w->load->left_name || check_left(w, json_object_get(reply, "files"));
}

static bool read_reply(struct worker *w, const struct text *body, struct sample *ret)
{
	json_t *reply = json_loadb(body->bytes, body->length, 0, NULL);
	const json_t *usage = json_object_get(reply, "usage");
	bool ok = reply ? check(w, reply) : wrong(w, "the answer is no JSON");

	ret->faults = whole(usage, "minor_faults");
	ret->cpu_us = thousandths(usage, "cpu_ms");
	ret->memory_bytes = whole(usage, "memory_peak_bytes");
	ret->queue_us = thousandths(reply, "queue_ms");
	ret->setup_us = thousandths(usage, "setup_ms");
	ret->run_us = thousandths(reply, "execution_time_ms");
	ret->teardown_us = thousandths(usage, "teardown_ms");
	json_decref(reply);
	return ok;
}

bool http_once(struct worker *w, struct sample *ret)
{
	struct text body = { 0 };
	uint64_t began;
	bool ok;

	if (!connected(w))
		return false;
	began = now_ns();
	ok = send_all(w->fd, &w->load->request) ? receive(w, &body) : wrong(w, "send: %m");
	*ret = (struct sample){ .latency_ns = now_ns() - began };
	if (ok && strncmp(w->buffer, "HTTP/1.1 200 ", 13) != 0)
		return wrong(w, "%.12s: %.160s", w->buffer, body.bytes);
	if (ok)
		return w->load->plain || read_reply(w, &body, ret);
	close(w->fd);
	w->fd = -1;
	return false;
}

/* ---- The perfect server ---- */

static struct text echo_reply;

static void *echo(void *listener)
{
	int fd = accept((int)(intptr_t)listener, NULL, NULL), one = 1;
	char bytes[65536];

	/* A request is one packet here: both ends are this process. */
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	while (recv(fd, bytes, sizeof(bytes), 0) > 0 && send_all(fd, &echo_reply))
		;
	close(fd);
	return NULL;
}

unsigned http_start_echo(const struct text *expect)
{
	struct sockaddr_in at = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t length = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	json_t *reply = json_pack("{s:s, s:s%, s:s, s:i}", "status", "success", "stdout",
		expect->bytes, expect->length, "stderr", "", "exit_code", 0);
	char *body = json_dumps(reply, 0);
	pthread_t thread;

	/* The size of a real reply: the padding is white space after the object. */
	echo_reply.bytes = malloc(2048 + strlen(body));
	echo_reply.length = (size_t)snprintf(echo_reply.bytes, 2048 + strlen(body),
		"HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s%*s", strlen(body) + 900, body,
		900, "");
	free(body);
	json_decref(reply);
	if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(fd, 1) < 0 ||
		getsockname(fd, (struct sockaddr *)&at, &length) < 0 ||
		pthread_create(&thread, NULL, echo, (void *)(intptr_t)fd) != 0)
		return 0;
	pthread_detach(thread);
	return ntohs(at.sin_port);
}
