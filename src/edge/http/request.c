#include "edge/http/server_internal.h"

#include "base/check.h"
#include "base/clock.h"

#include <event2/buffer.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BODY_ROOM_FIRST 4096u

struct http_request *request_create(struct http_conn *c)
{
	struct http_request *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->conn = c;
	req->started_ns = clock_ns();
	http_head_init(&req->head);
	return req;
}

void request_destroy(struct http_request *req)
{
	if (!req)
		return;
	req->conn->server->body_bytes -= req->body_room;
	free(req->body);
	free(req->text);
	free(req);
}

/* The codec lets no NUL through, and behind every part stands a byte that has done its duty
 * (a space, a colon, a CR), so that each part can be terminated where it is. */
bool request_take_head(struct http_request *req, struct evbuffer *in, size_t len)
{
	struct http_head *h = &req->head;
	char *query;

	req->text = malloc(len);
	if (!req->text || evbuffer_remove(in, req->text, len) != (int)len)
		return false;

	req->text[h->method.at + h->method.len] = '\0';
	req->text[h->target.at + h->target.len] = '\0';
	query = strchr(req->text + h->target.at, '?');
	if (query)
		*query = '\0';
	for (unsigned i = 0; i < h->field_count; i++) {
		req->text[h->fields[i].name.at + h->fields[i].name.len] = '\0';
		req->text[h->fields[i].value.at + h->fields[i].value.len] = '\0';
	}
	return true;
}

/* Grows with what has arrived, at most twofold, whatever Content-Length promises: memory has
 * to be paid for in bytes sent. */
char *request_body_room(struct http_request *req, size_t len)
{
	struct http_server *s = req->conn->server;
	size_t need = req->body_len + len, room = req->body_room;
	char *body;

	CHECK(need <= s->limits.body_bytes);
	if (need <= room)
		return req->body + req->body_len;

	room = room ? room * 2 : BODY_ROOM_FIRST;
	if (room < need)
		room = need;
	if (room > s->limits.body_bytes)
		room = (size_t)s->limits.body_bytes;
	if (s->limits.bodies_bytes &&
		s->body_bytes - req->body_room + room > s->limits.bodies_bytes)
		return NULL;

	body = realloc(req->body, room);
	if (!body)
		return NULL;
	s->body_bytes += room - req->body_room;
	req->body = body;
	req->body_room = room;
	return req->body + req->body_len;
}

const char *http_request_method(const struct http_request *req)
{
	return req->text + req->head.method.at;
}

const char *http_request_path(const struct http_request *req)
{
	return req->text + req->head.target.at;
}

/* The end of the target is known from the head; the path ends early when there was a '?'. */
const char *http_request_query(const struct http_request *req)
{
	const char *path = http_request_path(req);
	size_t len = strlen(path);

	return len < req->head.target.len ? path + len + 1 : path + len;
}

const char *http_request_header(const struct http_request *req, const char *name)
{
	for (unsigned i = 0; i < req->head.field_count; i++)
		if (strcasecmp(req->text + req->head.fields[i].name.at, name) == 0)
			return req->text + req->head.fields[i].value.at;
	return NULL;
}

const void *http_request_body(const struct http_request *req, size_t *ret_len)
{
	*ret_len = req->body_len;
	return req->body ? req->body : "";
}

int http_request_refused(const struct http_request *req)
{
	return req->refused;
}

const char *http_request_peer(const struct http_request *req)
{
	return req->conn->peer;
}

uint64_t http_request_started_ns(const struct http_request *req)
{
	return req->started_ns;
}

void http_request_set_data(struct http_request *req, void *data)
{
	req->data = data;
}

void *http_request_data(const struct http_request *req)
{
	return req->data;
}
