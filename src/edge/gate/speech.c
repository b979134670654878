#include "edge/gate/speech.h"

#include "edge/gate/hello.h"

#include <string.h>
#include <strings.h>

#define RECORD_HEAD 5u
#define RECORD_MAX  (16384u + 2048u) /* RFC 5246, 6.2.3: encrypted */
#define HELLO_HEAD  6u /* its type, its length, the first half of its version, and one more */

enum record_type {
	RECORD_CHANGE_CIPHER_SPEC = 20,
	RECORD_ALERT,
	RECORD_HANDSHAKE,
	RECORD_APPLICATION_DATA,
	RECORD_HEARTBEAT
};

/* What is there to be heard. */
struct heard {
	const struct speech_place *where;
	const uint8_t *bytes;
	size_t len;
	bool end;
};

typedef enum network_verdict step_fn(
	struct speech *s, const struct heard *h, struct speech_found *ret);

/* ---- Names ---- */

static enum network_verdict judge_name(
	const struct heard *h, const char *name, struct speech_found *ret)
{
	memcpy(ret->name, name, strlen(name) + 1);
	return rules_allow_spoken(h->where->rules, &h->where->address, h->where->port, name)
		       ? NETWORK_ALLOWED
		       : NETWORK_OTHER_NAME;
}

/* ---- TLS ---- */

static enum network_verdict hear_hello(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	struct hello hello;
	ssize_t n = hello_read(h->bytes, h->len, &hello);

	if (n < 0 || (n == 0 && h->end))
		return NETWORK_NO_NAME;
	if (n == 0)
		return NETWORK_ALLOWED;
	/* Whoever has the key reads another name there, whatever the one outside is. One that is made up
	 * so that all hellos look alike (GREASE) cannot be told from that. */
	if (hello.hidden)
		return NETWORK_HIDDEN_NAME;
	if (!hello.name[0])
		return NETWORK_NO_NAME;
	ret->used = (size_t)n;
	s->phase = SPEECH_RECORD;
	s->greeted = true;
	s->early |= hello.early;
	return judge_name(h, hello.name, ret);
}

/* Is that the beginning of what somebody takes for a ClientHello, as far as it goes? Servers read long
 * ones (131,396 bytes), and any version from 3 up. Of encrypted messages, which are not, the first of a
 * handshake that is resumed comes here; one in some 2^14 looks like it, and costs its connection. */
static bool begins_hello(const uint8_t *at, size_t len)
{
	return (len < 1 || at[0] == 1) && (len < 2 || at[1] <= 2) && (len < 5 || at[4] >= 3);
}

/* Behind the first hello, a server may ask for another one (RFC 8446, 4.1.4), which can have another
 * name: until there is something that says that none will come. */
static enum network_verdict hear_handshake(
	struct speech *s, const struct heard *h, size_t in_record)
{
	size_t needed = in_record < HELLO_HEAD ? in_record : HELLO_HEAD;

	if (h->len < RECORD_HEAD + needed)
		return h->end ? NETWORK_NO_NAME : NETWORK_ALLOWED;
	s->phase = begins_hello(h->bytes + RECORD_HEAD, needed) ? SPEECH_HELLO : SPEECH_FREE;
	return NETWORK_ALLOWED;
}

static enum network_verdict hear_record(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	size_t in_record;

	if (h->len < RECORD_HEAD)
		return h->end ? NETWORK_NO_NAME : NETWORK_ALLOWED;
	in_record = (size_t)h->bytes[3] << 8 | h->bytes[4];
	if (h->bytes[1] != 3 || in_record > RECORD_MAX)
		return NETWORK_NO_NAME;
	switch (h->bytes[0]) {
	case RECORD_HANDSHAKE:
		if (s->greeted && in_record > 0)
			return hear_handshake(s, h, in_record);
		s->phase = SPEECH_HELLO;
		return NETWORK_ALLOWED;
	case RECORD_APPLICATION_DATA:
		if (!s->greeted)
			return NETWORK_NO_NAME;
		if (!s->early) {
			s->phase = SPEECH_FREE;
			return NETWORK_ALLOWED;
		}
		break;
	case RECORD_CHANGE_CIPHER_SPEC: /* comes before a second hello, too */
	case RECORD_ALERT:
		break;
	default:
		return NETWORK_NO_NAME;
	}
	s->phase = SPEECH_SKIP;
	s->left = in_record;
	ret->used = RECORD_HEAD;
	return NETWORK_ALLOWED;
}

/* ---- HTTP ---- */

/* "NAME" or "NAME:PORT". */
static enum network_verdict judge_host(
	const struct heard *h, const char *host, size_t len, struct speech_found *ret)
{
	const char *colon = memchr(host, ':', len);
	size_t name_len = colon ? (size_t)(colon - host) : len, at;
	char name[NETWORK_NAME_MAX + 3] = "";

	for (size_t i = name_len + 1; i < len; i++)
		if (host[i] < '0' || host[i] > '9')
			return NETWORK_NO_NAME;
	if (network_name_fault(host, name_len, &at))
		return NETWORK_NO_NAME;
	for (size_t i = 0; i < name_len; i++)
		name[i] = (char)(host[i] >= 'A' && host[i] <= 'Z' ? host[i] | 0x20 : host[i]);
	return judge_name(h, name, ret);
}

/* The codec lets no second one through. */
static enum network_verdict judge_head(
	const struct heard *h, const struct http_head *head, struct speech_found *ret)
{
	const char *text = (const char *)h->bytes;

	for (unsigned i = 0; i < head->field_count; i++) {
		const struct http_field *f = &head->fields[i];

		if (f->name.len == 4 && strncasecmp(text + f->name.at, "host", 4) == 0)
			return judge_host(h, text + f->value.at, f->value.len, ret);
	}
	return NETWORK_NO_NAME;
}

static enum network_verdict hear_head(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	struct http_head head;
	ssize_t n;

	http_head_init(&head);
	n = http_head_parse(&head, (const char *)h->bytes, h->len);
	if (n < 0 || (n == 0 && h->end))
		return NETWORK_NO_NAME;
	if (n == 0)
		return NETWORK_ALLOWED;
	ret->used = (size_t)n;
	if (head.framing == HTTP_LENGTH)
		s->phase = SPEECH_BODY;
	if (head.framing == HTTP_CHUNKED)
		s->phase = SPEECH_CHUNKED;
	s->left = head.content_length;
	http_chunked_init(&s->chunked, UINT64_MAX);
	return judge_head(h, &head, ret);
}

static enum network_verdict hear_chunked(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	struct http_piece piece;
	int r = http_chunked_step(&s->chunked, (const char *)h->bytes, h->len, &piece);

	if (r < 0)
		return NETWORK_NO_NAME;
	ret->used = piece.used;
	if (r > 0)
		s->phase = SPEECH_HEAD;
	return NETWORK_ALLOWED;
}

/* ---- What it begins with ---- */

/* To the most lenient reader of a request line. */
static bool is_blank(uint8_t c)
{
	return c == ' ' || c == '\t' || c == '\v' || c == '\f' || (c >= 0x1c && c <= 0x1f) ||
	       c == 0x85 || c == 0xa0; /* Latin-1's, where a line is decoded as that */
}

static bool is_control(uint8_t c)
{
	return (c < ' ' && c != '\r' && !is_blank(c)) || c == 0x7f;
}

/* tchar of RFC 9110, 5.6.2: what a method can have. */
static bool begins_word(uint8_t c)
{
	return (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') ||
	       (c != '\0' && strchr("!#$%&'*+-.^_`|~", c));
}

/* Would anybody take this line for a request: with a version of HTTP, or a path? */
static bool is_request_line(const uint8_t *line, size_t len)
{
	const char *text = (const char *)line;
	size_t at = 0;

	for (size_t i = 0; i + 5 <= len; i++)
		if (strncasecmp(text + i, "http/", 5) == 0)
			return true;
	while (at < len && is_blank(line[at]))
		at++;
	while (at < len && !is_blank(line[at]))
		at++;
	while (at < len && is_blank(line[at]))
		at++;
	return (at < len && line[at] == '/') ||
	       (len - at >= 5 && strncasecmp(text + at, "http:", 5) == 0) ||
	       (len - at >= 6 && strncasecmp(text + at, "https:", 6) == 0);
}

/* A line of text, which can be a request with any method. Its first word may go at once: many a small
 * protocol begins with one and waits, and a word alone asks nobody for anything. */
static enum network_verdict hear_line(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	bool in_word = true, blank = true; /* nothing else so far */

	for (size_t i = 0; i < h->len; i++) {
		uint8_t c = h->bytes[i];

		if (c == '\n') {
			s->phase = is_request_line(h->bytes, i) ? SPEECH_HEAD : SPEECH_FREE;
			return NETWORK_ALLOWED;
		}
		if (i >= SPEECH_WAIT_MAX)
			return NETWORK_NO_NAME;
		/* No method has one; in what follows a method some servers take it for part of the path. */
		if (is_control(c)) {
			if (!in_word && !blank)
				return NETWORK_NO_NAME;
			s->phase = SPEECH_FREE;
			return NETWORK_ALLOWED;
		}
		blank = blank && is_blank(c);
		in_word = in_word && c != '\r' && !is_blank(c);
		if (in_word)
			ret->pass = i + 1;
	}
	if (h->end)
		s->phase = is_request_line(h->bytes, h->len) ? SPEECH_HEAD : SPEECH_FREE;
	return NETWORK_ALLOWED;
}

/* Does it begin with this, as far as it goes? */
static bool begins_with(const struct heard *h, const uint8_t *words, size_t len)
{
	return memcmp(h->bytes, words, h->len < len ? h->len : len) == 0;
}

/* PostgreSQL's clients ask whether there is TLS, or GSSAPI, before they begin with it. */
static enum network_verdict hear_postgres(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	static const uint8_t tls[8] = { 0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f };
	static const uint8_t gss[8] = { 0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x30 };

	if (!begins_with(h, tls, 8) && !begins_with(h, gss, 8))
		s->phase = SPEECH_FREE;
	else if (h->len >= 8)
		ret->used = 8;
	else if (h->end)
		s->phase = SPEECH_FREE;
	return NETWORK_ALLOWED;
}

/* The hello of SSL 2, which servers of today still read (RFC 5246, E.2), has no name. */
static enum network_verdict hear_old_hello(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	const uint8_t *b = h->bytes;
	size_t n = h->len;

	if ((n > 2 && b[2] != 1) || (n > 3 && b[3] != 3 && b[3] != 0) ||
		(n > 4 && b[3] == 0 && b[4] != 2) || (n < 5 && h->end)) {
		if (is_blank(b[0]))
			return hear_line(s, h, ret);
		s->phase = SPEECH_FREE;
		return NETWORK_ALLOWED;
	}
	return n < 5 ? NETWORK_ALLOWED : NETWORK_NO_NAME;
}

static enum network_verdict hear_begin(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	uint8_t c = h->bytes[0];

	if (c == '\r' || c == '\n') { /* servers pass over empty lines */
		ret->used = 1;
		return NETWORK_ALLOWED;
	}
	if (c == 0)
		return hear_postgres(s, h, ret);
	if (c >= 0x80 && c < 0xc0)
		return hear_old_hello(s, h, ret);
	if (is_blank(c) || begins_word(c))
		return hear_line(s, h, ret);
	/* A record, whatever its version: servers look past that of the first one (RFC 8446, 5.1). */
	if (c < RECORD_CHANGE_CIPHER_SPEC || c > RECORD_HEARTBEAT ||
		(h->len > 1 ? h->bytes[1] >= 0x10 : h->end))
		s->phase = SPEECH_FREE;
	else if (h->len > 1)
		s->phase = SPEECH_RECORD;
	return NETWORK_ALLOWED;
}

/* ---- All of it ---- */

static enum network_verdict hear_counted(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	ret->used = h->len < s->left ? h->len : (size_t)s->left;
	s->left -= ret->used;
	if (s->left == 0)
		s->phase = s->phase == SPEECH_BODY ? SPEECH_HEAD : SPEECH_RECORD;
	return NETWORK_ALLOWED;
}

static enum network_verdict hear_free(
	struct speech *s, const struct heard *h, struct speech_found *ret)
{
	(void)s;
	ret->used = h->len;
	return NETWORK_ALLOWED;
}

static step_fn *const steps[] = {
	[SPEECH_BEGIN] = hear_begin,
	[SPEECH_RECORD] = hear_record,
	[SPEECH_HELLO] = hear_hello,
	[SPEECH_SKIP] = hear_counted,
	[SPEECH_HEAD] = hear_head,
	[SPEECH_BODY] = hear_counted,
	[SPEECH_CHUNKED] = hear_chunked,
	[SPEECH_FREE] = hear_free,
};

void speech_hear(struct speech *s, const struct speech_place *where, const uint8_t *bytes,
	size_t len, bool end, struct speech_found *ret)
{
	*ret = (struct speech_found){ .verdict = NETWORK_ALLOWED };
	while (ret->used < len) {
		struct heard h = { where, bytes + ret->used, len - ret->used, end };
		struct speech_found one = { .verdict = NETWORK_ALLOWED };
		enum speech_phase before = s->phase;

		one.verdict = steps[before](s, &h, &one);
		if (one.verdict != NETWORK_ALLOWED) {
			ret->verdict = one.verdict;
			ret->pass = ret->used;
			memcpy(ret->name, one.name, sizeof(ret->name));
			return;
		}
		one.pass = one.pass > one.used ? one.pass : one.used;
		ret->pass = ret->used + one.pass > ret->pass ? ret->used + one.pass : ret->pass;
		ret->used += one.used;
		if (one.used == 0 && s->phase == before)
			break; /* more is needed */
	}
	if (len - ret->used > SPEECH_WAIT_MAX) {
		ret->verdict = NETWORK_NO_NAME;
		ret->pass = ret->used;
	}
}

/* ---- Datagrams ---- */

/* RFC 9000, 14.1 and 17.2: a client begins with at least 1,200 bytes, of which the first have a bit that
 * says "long header", and a version. The bit behind it need not be set (RFC 9287). */
bool speech_is_quic(const struct rules *r, const struct packet *p)
{
	static const uint8_t no_version[4];
	const char *name;

	return p->kind == PACKET_UDP && p->payload_len >= 1200 && p->payload[0] >= 0x80 &&
	       memcmp(p->payload + 1, no_version, 4) != 0 &&
	       rules_need_name(r, &p->target, p->target_port) &&
	       rules_judge(r, &p->target, p->target_port, &name) == NETWORK_ALLOWED;
}
