#include "edge/front/answer.h"

#include "api/request.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "edge/front/routes.h"
#include "edge/http/server.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static const char json_type[] = "application/json";

#define DETAIL_ROOM 512

static const char *or_dash(const char *text)
{
	return text ? text : "-";
}

static void log_request(struct http_request *req, const struct answer *a)
{
	uint64_t us = (clock_ns() - http_request_started_ns(req)) / NS_PER_US;

	log_info("request",
		"id=%s method=%s path=%s http=%d status=%s cause=%s ms=%" PRIu64 ".%03" PRIu64
		" peer=%s bytes=%zu",
		or_dash(a->id), LQ(http_request_method(req)), LQ(http_request_path(req)), a->status,
		or_dash(a->verdict), or_dash(a->cause), us / 1000, us % 1000,
		http_request_peer(req), a->len);
}

void answer_send(struct http_request *req, const struct answer *a)
{
	static const char no_memory[] = "{\"detail\":\"out of memory\"}";
	struct answer out = *a;
	struct http_header extra[4] = { 0 };
	char seconds[16];
	unsigned n = 0;

	if (!out.json) {
		out.status = 500;
		out.json = no_memory;
		out.len = sizeof(no_memory) - 1;
	}
	if (out.id)
		extra[n++] = (struct http_header){ "X-Glovebox-Id", out.id };
	if (out.allow)
		extra[n++] = (struct http_header){ "Allow", out.allow };
	if (out.retry_after_s > 0) {
		(void)snprintf(seconds, sizeof(seconds), "%" PRIu32, out.retry_after_s);
		extra[n++] = (struct http_header){ "Retry-After", seconds };
	}
	log_request(req, &out);
	http_reply(req, out.status, json_type, out.json, out.len, extra);
}

void answer_stream(struct http_request *req, const char *type, uint64_t len,
	const struct http_source *source, const struct http_header *extra)
{
	const struct answer a = { .status = 200, .len = len == HTTP_LEN_UNKNOWN ? 0 : (size_t)len };

	log_request(req, &a);
	http_reply_stream(req, type, len, source, extra);
}

void answer_detail(struct http_request *req, const struct answer *a, const char *fmt, ...)
{
	struct answer out = *a;
	char text[DETAIL_ROOM];
	cleanup_free char *json = NULL;
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json = api_detail(&out.len, "%s", text);
	out.json = json;
	answer_send(req, &out);
}

/* FastAPI's words where its users know them; ours where a hint helps more. */
static const char *refusal_text(int status)
{
	switch (status) {
	case 403:
		return "this server runs code and does not answer pages of other sites: "
		       "Origin and Host must name it";
	case 404:
		return "Not Found";
	case 405:
		return "Method Not Allowed";
	case 415:
		return "the body must be JSON: send it as Content-Type: application/json";
	default:
		return "the request was refused";
	}
}

void answer_refusal(struct http_request *req, int status)
{
	struct answer a = { .status = status };

	if (status == 405)
		a.allow = route_allow(route_by_path(http_request_path(req)));
	answer_detail(req, &a, "%s", refusal_text(status));
}

void answer_bad(const char *peer, int status)
{
	log_info("request", "id=- method=- path=- http=%d status=- cause=bad_http peer=%s", status,
		peer);
}

void answer_gone(struct http_request *req, const char *id)
{
	struct answer a = { .status = 0, .id = id, .cause = "client_gone" };

	log_request(req, &a);
}
