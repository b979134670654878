#include "http_frames.h"

#include <stdio.h>
#include <string.h>

#define FNV_BASIS 2166136261u
#define FNV_PRIME 16777619u

static void begin_request(struct frames *f)
{
	http_head_init(&f->head);
	f->in_body = false;
	f->body_len = 0;
	f->hash = FNV_BASIS;
}

void frames_init(struct frames *f)
{
	*f = (struct frames){ .status = 0 };
	begin_request(f);
}

static void say(struct frames *f, const char *line)
{
	int n = snprintf(f->text + f->text_len, sizeof(f->text) - f->text_len, "%s\n", line);

	if (n > 0 && (size_t)n < sizeof(f->text) - f->text_len)
		f->text_len += (size_t)n;
	else
		f->text[f->text_len] = '\0'; /* a line that does not fit is left out whole */
}

static void request_done(struct frames *f)
{
	char line[320];

	(void)snprintf(line, sizeof(line), "%s %llu %08x", f->line, (unsigned long long)f->body_len,
		f->hash);
	say(f, line);
	f->taken = f->at;
	if (f->head.keep_alive)
		begin_request(f);
	else
		f->closed = true;
}

/* 1 to go on, 0 when more bytes are needed, minus the status. */
static int feed_head(struct frames *f, const char *bytes, size_t len)
{
	const struct http_head *h = &f->head;
	ssize_t r = http_head_parse(&f->head, bytes + f->at, len - f->at);

	if (r <= 0)
		return (int)r;
	(void)snprintf(f->line, sizeof(f->line), "%.*s %.*s", (int)h->method.len,
		bytes + f->at + h->method.at, (int)h->target.len, bytes + f->at + h->target.at);
	f->at += (size_t)r;
	if (h->framing == HTTP_LENGTH && h->content_length > FRAMES_BODY_MAX)
		return -413;
	f->left = h->content_length;
	http_chunked_init(&f->chunked, FRAMES_BODY_MAX);
	f->in_body = h->framing != HTTP_NO_BODY;
	if (!f->in_body)
		request_done(f);
	return 1;
}

static int feed_body(struct frames *f, const char *bytes, size_t len)
{
	size_t have = len - f->at;
	struct http_piece piece;
	int r;

	if (f->head.framing == HTTP_LENGTH) {
		size_t n = have < f->left ? have : (size_t)f->left;

		piece = (struct http_piece){ .used = n, .data = bytes + f->at, .len = n };
		f->left -= n;
		r = f->left == 0;
	} else {
		r = http_chunked_step(&f->chunked, bytes + f->at, have, &piece);
	}
	if (r < 0)
		return r;
	for (size_t i = 0; i < piece.len; i++)
		f->hash = (f->hash ^ (unsigned char)piece.data[i]) * FNV_PRIME;
	f->body_len += piece.len;
	f->at += piece.used;
	if (r > 0)
		request_done(f);
	return r > 0 || piece.used > 0;
}

void frames_feed(struct frames *f, const char *bytes, size_t len)
{
	while (!f->status && !f->closed && f->at < len) {
		int r = f->in_body ? feed_body(f, bytes, len) : feed_head(f, bytes, len);

		if (r < 0)
			f->status = -r;
		if (r == 0)
			break;
	}
}

void frames_end(struct frames *f, size_t len)
{
	char status[16];

	if (f->status)
		(void)snprintf(status, sizeof(status), "%d", f->status);
	say(f, f->status                    ? status
		: f->closed                 ? "closed"
		: f->in_body || f->at < len ? "more"
					    : "end");
}
