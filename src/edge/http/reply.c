#include "edge/http/server_internal.h"

#include "base/check.h"

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define DETAIL_MAX 160
#define DIRECT_MAX 16384 /* what a bufferevent writes at a time */

static const struct {
	int status;
	const char *reason;
} reasons[] = {
	{ 200, "OK" },
	{ 201, "Created" },
	{ 202, "Accepted" },
	{ 204, "No Content" },
	{ 301, "Moved Permanently" },
	{ 302, "Found" },
	{ 303, "See Other" },
	{ 304, "Not Modified" },
	{ 307, "Temporary Redirect" },
	{ 308, "Permanent Redirect" },
	{ 400, "Bad Request" },
	{ 401, "Unauthorized" },
	{ 403, "Forbidden" },
	{ 404, "Not Found" },
	{ 405, "Method Not Allowed" },
	{ 406, "Not Acceptable" },
	{ 408, "Request Timeout" },
	{ 409, "Conflict" },
	{ 410, "Gone" },
	{ 411, "Length Required" },
	{ 413, "Content Too Large" },
	{ 414, "URI Too Long" },
	{ 415, "Unsupported Media Type" },
	{ 417, "Expectation Failed" },
	{ 422, "Unprocessable Content" },
	{ 429, "Too Many Requests" },
	{ 431, "Request Header Fields Too Large" },
	{ 500, "Internal Server Error" },
	{ 501, "Not Implemented" },
	{ 503, "Service Unavailable" },
	{ 504, "Gateway Timeout" },
	{ 505, "HTTP Version Not Supported" },
};

static const char *reason_of(int status)
{
	for (size_t i = 0; i < ARRAY_LEN(reasons); i++)
		if (reasons[i].status == status)
			return reasons[i].reason;
	return "Unnamed"; /* a reason phrase may be anything; no client reads it */
}

/* The day's arithmetic by hand: gmtime_r() opens the time zone file at its first call, and
 * the front has no file system. Days are counted in eras of 400 years from a 1 March, which
 * puts the leap day at the end of a year. */
void reply_date(int64_t unix_s, char *text)
{
	static const char *const days[] = { "Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed" };
	static const char *const months[] = { "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep",
		"Oct", "Nov", "Dec", "Jan", "Feb" };
	unsigned day, second, era, in_era, year, in_year, month;

	if (unix_s < 0)
		unix_s = 0; /* a clock before 1970 is no clock */
	day = (unsigned)(unix_s / 86400);
	second = (unsigned)(unix_s % 86400);

	era = (day + 719468) / 146097; /* 0000-03-01 to 1970-01-01 are 719,468 days */
	in_era = (day + 719468) % 146097;
	year = (in_era - in_era / 1460 + in_era / 36524 - in_era / 146096) / 365;
	in_year = in_era - (365 * year + year / 4 - year / 100);
	month = (5 * in_year + 2) / 153;
	year += era * 400 + (month >= 10);

	(void)snprintf(text, REPLY_DATE_MAX, "%s, %02u %s %u %02u:%02u:%02u GMT", days[day % 7],
		in_year - (153 * month + 2) / 5 + 1, months[month], year, second / 3600,
		second / 60 % 60, second % 60);
}

/* A header value can come from elsewhere: no control byte may start a line of its own. */
static bool add_value(struct evbuffer *out, const char *value)
{
	size_t n;

	for (; *value; value += n) {
		for (n = 0; (unsigned char)value[n] >= 0x20 && value[n] != 0x7f; n++)
			;
		if (n > 0 && evbuffer_add(out, value, n) < 0)
			return false;
		if (value[n] == '\0')
			break;
		if (evbuffer_add(out, "?", 1) < 0)
			return false;
		n++;
	}
	return evbuffer_add(out, "\r\n", 2) == 0;
}

static bool add_field(struct evbuffer *out, const char *name, const char *value)
{
	return evbuffer_add_printf(out, "%s: ", name) > 0 && add_value(out, value);
}

/* How long the body is, or how its end is told. */
static bool add_framing(struct evbuffer *out, const struct reply *r)
{
	if (r->status == 204 || r->status == 304 || r->no_length)
		return true;
	if (r->chunked)
		return evbuffer_add_printf(out, "Transfer-Encoding: chunked\r\n") > 0;
	return evbuffer_add_printf(out, "Content-Length: %zu\r\n", r->len) > 0;
}

bool reply_encode(struct evbuffer *out, const struct reply *r)
{
	bool has_body = r->status != 204 && r->status != 304 && !r->omit_body;
	char date[REPLY_DATE_MAX];

	reply_date(time(NULL), date);
	if (evbuffer_add_printf(out,
		    "HTTP/1.1 %d %s\r\nServer: glovebox\r\nDate: %s\r\nConnection: %s\r\n",
		    r->status, reason_of(r->status), date,
		    r->keep_alive ? "keep-alive" : "close") < 0)
		return false;
	if (r->type && !add_field(out, "Content-Type", r->type))
		return false;
	if (!add_framing(out, r))
		return false;
	for (const struct http_header *x = r->extra; x && x->name; x++)
		if (!add_field(out, x->name, x->value))
			return false;
	if (evbuffer_add(out, "\r\n", 2) < 0)
		return false;
	return !has_body || r->len == 0 || evbuffer_add(out, r->body, r->len) == 0;
}

static void describe_refusal(int status, const struct http_limits *limits, char *text)
{
	switch (status) {
	case 408:
		(void)snprintf(text, DETAIL_MAX,
			"the request did not arrive in time (head: %u ms, body: %u ms)",
			limits->head_ms, limits->body_ms);
		break;
	case 413:
		(void)snprintf(text, DETAIL_MAX, "the body is larger than the limit of %llu bytes",
			(unsigned long long)limits->body_bytes);
		break;
	case 414:
		(void)snprintf(text, DETAIL_MAX, "the request line is longer than %u bytes",
			HTTP_REQUEST_LINE_MAX);
		break;
	case 417:
		(void)snprintf(text, DETAIL_MAX, "the only expectation met is 100-continue");
		break;
	case 431:
		(void)snprintf(text, DETAIL_MAX,
			"the request head is longer than %u bytes or has more than %u fields",
			HTTP_HEAD_MAX, HTTP_FIELDS_MAX);
		break;
	case 501:
		(void)snprintf(text, DETAIL_MAX, "the only transfer coding understood is chunked");
		break;
	case 503:
		(void)snprintf(text, DETAIL_MAX,
			"the server has no room for this request now; nothing was run, try again");
		break;
	case 505:
		(void)snprintf(text, DETAIL_MAX, "only HTTP/1.0 and HTTP/1.1 are spoken here");
		break;
	default:
		(void)snprintf(text, DETAIL_MAX, "the request is not well-formed HTTP/1.1");
	}
}

bool reply_encode_refusal(struct evbuffer *out, int status, const struct http_limits *limits)
{
	static const struct http_header retry[] = { { "Retry-After", "1" }, { NULL, NULL } };
	char detail[DETAIL_MAX], body[DETAIL_MAX + 16];

	/* The texts above hold nothing that JSON would want escaped. */
	describe_refusal(status, limits, detail);
	(void)snprintf(body, sizeof(body), "{\"detail\":\"%s\"}", detail);
	return reply_encode(out, &(struct reply){ .status = status,
					 .type = "application/json",
					 .body = body,
					 .len = strlen(body),
					 .extra = status == 503 ? retry : NULL });
}

/* Into the socket at once, past the bufferevent, which would ask epoll for room first and
 * write in the loop's next turn. What the socket does not take follows by that way; so does
 * all of it when an answer still waits there, when the connection closes behind it (which is
 * told by the bufferevent), or at an error, which the bufferevent then meets itself. A large
 * answer gains nothing, and the socket would take more of it at one go, which the budget of
 * unsent.c does not see although its memory is one piece. */
static bool send_reply(struct http_conn *c, const struct reply *r)
{
	struct evbuffer *out = bufferevent_get_output(c->bev), *first = c->server->answer;

	if (c->closing || r->len > DIRECT_MAX || evbuffer_get_length(out) > 0)
		return reply_encode(out, r);
	if (!reply_encode(first, r)) {
		(void)evbuffer_drain(first, evbuffer_get_length(first));
		return false;
	}
	(void)evbuffer_write(first, bufferevent_getfd(c->bev));
	return evbuffer_get_length(first) == 0 || evbuffer_add_buffer(out, first) == 0;
}

void http_reply(struct http_request *req, int status, const char *type, const void *body,
	size_t len, const struct http_header *extra)
{
	struct http_conn *c = req->conn;
	struct reply r = { .status = status,
		.type = type      ? type
			: len > 0 ? "application/json"
				  : NULL,
		.body = body,
		.len = len,
		.extra = extra,
		.keep_alive = !c->closing,
		.omit_body = strcmp(http_request_method(req), "HEAD") == 0 };

	CHECK(c->req == req && c->phase == CONN_RUNNING);
	CHECK(status >= 200 && status <= 599);
	if (!send_reply(c, &r))
		c->broken = true;
	c->req = NULL;
	request_destroy(req);
	conn_answered(c);
}

/* ---- Answers that come piece by piece ---- */

/* In the output at a time: a streamed answer costs that, and what its source holds. */
#define PIECE 65536

void reply_drop_source(struct http_conn *c)
{
	struct http_source source = c->source;

	c->source = (struct http_source){ 0 };
	if (source.read)
		source.done(source.ctx);
}

static bool add_piece(struct http_conn *c, const char *bytes, size_t len)
{
	struct evbuffer *out = bufferevent_get_output(c->bev);

	if (!c->chunked)
		return len == 0 || evbuffer_add(out, bytes, len) == 0;
	/* A chunk of 0 is the end. */
	return evbuffer_add_printf(out, "%zx\r\n", len) > 0 && evbuffer_add(out, bytes, len) == 0 &&
	       evbuffer_add(out, "\r\n", 2) == 0;
}

int reply_go_on(struct http_conn *c)
{
	static char bytes[PIECE];
	size_t room = c->source_left < sizeof(bytes) ? (size_t)c->source_left : sizeof(bytes);
	ssize_t n = room > 0 ? c->source.read(c->source.ctx, bytes, room) : 0;

	if (n < 0 || (n == 0 && room > 0 && c->source_left != HTTP_LEN_UNKNOWN))
		return -1; /* a body that is shorter than announced */
	if ((n > 0 || c->chunked) && !add_piece(c, bytes, (size_t)n))
		return -1;
	if (c->source_left != HTTP_LEN_UNKNOWN)
		c->source_left -= (uint64_t)n;
	if (n > 0 && c->source_left > 0)
		return 1;
	reply_drop_source(c);
	return 0;
}

void http_reply_stream(struct http_request *req, const char *type, uint64_t len,
	const struct http_source *source, const struct http_header *extra)
{
	struct http_conn *c = req->conn;
	bool is_known = len != HTTP_LEN_UNKNOWN;
	bool is_head = strcmp(http_request_method(req), "HEAD") == 0;
	struct reply r = { .status = 200,
		.type = type,
		.len = is_known ? (size_t)len : 0,
		.extra = extra,
		.omit_body = true,
		.chunked = !is_known && req->head.minor > 0,
		.no_length = !is_known && req->head.minor == 0 };

	CHECK(c->req == req && c->phase == CONN_RUNNING);
	c->closing |= r.no_length;
	r.keep_alive = !c->closing;
	c->source = *source;
	c->source_left = len;
	c->chunked = r.chunked;
	if (!reply_encode(bufferevent_get_output(c->bev), &r))
		c->broken = true;
	if (is_head || c->broken || len == 0)
		reply_drop_source(c);
	c->req = NULL;
	request_destroy(req);
	conn_answered(c);
}
