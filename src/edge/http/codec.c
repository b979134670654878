#include "edge/http/codec.h"

#include "base/check.h"

#include <string.h>
#include <strings.h>

_Static_assert(HTTP_HEAD_MAX <= UINT16_MAX, "spans hold 16-bit offsets");
_Static_assert(HTTP_REQUEST_LINE_MAX <= HTTP_HEAD_MAX, "a request line is part of the head");

/* 18 digits always fit 64 bits, so that no number can wrap into a small one. */
#define CONTENT_LENGTH_DIGITS_MAX 18u
#define CHUNK_SIZE_DIGITS_MAX     8u

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* What may stand in a line at all: no control byte but TAB. Bytes from 0x80 are obs-text,
 * allowed in field values only; names and the request line have tighter rules of their own. */
static bool is_text(char c)
{
	unsigned char u = (unsigned char)c;

	return u == '\t' || (u >= 0x20 && u != 0x7f);
}

static bool is_visible(char c)
{
	return c > 0x20 && c < 0x7f;
}

/* tchar of RFC 9110, 5.6.2. */
static bool is_token_char(char c)
{
	if (is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'))
		return true;
	return c != '\0' && strchr("!#$%&'*+-.^_`|~", c) != NULL;
}

static bool is_token(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!is_token_char(text[i]))
			return false;
	return len > 0;
}

static bool equals(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && strncasecmp(text, word, len) == 0;
}

static void trim(const char **text, size_t *len)
{
	while (*len > 0 && (**text == ' ' || **text == '\t')) {
		(*text)++;
		(*len)--;
	}
	while (*len > 0 && ((*text)[*len - 1] == ' ' || (*text)[*len - 1] == '\t'))
		(*len)--;
}

static struct http_span span(const char *bytes, const char *at, size_t len)
{
	return (struct http_span){ .at = (uint16_t)(at - bytes), .len = (uint16_t)len };
}

/* The version is looked at first: an HTTP/2 preface should hear 505, whatever its target. */
static int parse_version(struct http_head *h, const char *text, size_t len)
{
	if (len != 8 || memcmp(text, "HTTP/", 5) != 0 || !is_digit(text[5]) || text[6] != '.' ||
		!is_digit(text[7]))
		return -400;
	if (text[5] != '1' || text[7] > '1')
		return -505;
	h->minor = (unsigned)(text[7] - '0');
	return 0;
}

/* Exactly one space between the three parts, and nothing but the origin-form: an absolute
 * target would name a second host beside the Host header, `*` and CONNECT ask for what this
 * server does not do. */
static int parse_request_line(struct http_head *h, const char *bytes, size_t len)
{
	const char *end = bytes + len, *target, *version;
	int r;

	target = memchr(bytes, ' ', len);
	if (!target)
		return -400;
	version = memchr(target + 1, ' ', (size_t)(end - target - 1));
	if (!version)
		return -400;
	h->method = span(bytes, bytes, (size_t)(target - bytes));
	h->target = span(bytes, target + 1, (size_t)(version - target - 1));

	r = parse_version(h, version + 1, (size_t)(end - version - 1));
	if (r < 0)
		return r;
	if (!is_token(bytes, h->method.len) || equals(bytes, h->method.len, "CONNECT"))
		return -400;
	if (h->target.len == 0 || target[1] != '/')
		return -400;
	for (size_t i = 0; i < h->target.len; i++)
		if (!is_visible(target[1 + i]))
			return -400;
	return 0;
}

static int parse_host(struct http_head *h, const char *value, size_t len)
{
	if (h->has_host)
		return -400;
	h->has_host = true;
	for (size_t i = 0; i < len; i++)
		if (!is_visible(value[i]) || strchr(",/@?#\\", value[i]))
			return -400;
	return 0;
}

static int parse_content_length(struct http_head *h, const char *value, size_t len)
{
	uint64_t n = 0;

	if (h->has_length || h->has_encoding || len == 0 || len > CONTENT_LENGTH_DIGITS_MAX)
		return -400;
	for (size_t i = 0; i < len; i++) {
		if (!is_digit(value[i]))
			return -400;
		n = n * 10 + (uint64_t)(value[i] - '0');
	}
	h->has_length = true;
	h->content_length = n;
	if (n > 0)
		h->framing = HTTP_LENGTH;
	return 0;
}

/* HTTP/1.0 knows no transfer encodings: an old proxy would pass one on without reading it. */
static int parse_transfer_encoding(struct http_head *h, const char *value, size_t len)
{
	if (h->has_length || h->has_encoding || h->minor == 0)
		return -400;
	if (!equals(value, len, "chunked"))
		return -501;
	h->has_encoding = true;
	h->framing = HTTP_CHUNKED;
	return 0;
}

static int parse_expect(struct http_head *h, const char *value, size_t len)
{
	if (!equals(value, len, "100-continue"))
		return -417;
	h->expect_continue = h->minor > 0; /* RFC 9110, 10.1.1: not for 1.0 clients */
	return 0;
}

static int parse_connection(struct http_head *h, const char *value, size_t len)
{
	const char *end = value + len;

	for (;;) {
		const char *comma = memchr(value, ',', (size_t)(end - value));
		const char *word = value;
		size_t n = (size_t)((comma ? comma : end) - value);

		trim(&word, &n);
		if (equals(word, n, "close"))
			h->says_close = true;
		else if (equals(word, n, "keep-alive"))
			h->says_keep_alive = true;
		if (!comma)
			return 0;
		value = comma + 1;
	}
}

typedef int field_fn(struct http_head *h, const char *value, size_t len);

static const struct {
	const char *name;
	field_fn *parse;
} known_fields[] = {
	{ "host", parse_host },
	{ "content-length", parse_content_length },
	{ "transfer-encoding", parse_transfer_encoding },
	{ "expect", parse_expect },
	{ "connection", parse_connection },
};

/* The name must be a token directly followed by the colon. This refuses folded lines and
 * white space before the colon too, both of which have hidden a Transfer-Encoding before. */
static int parse_field(struct http_head *h, const char *bytes, const char *line, size_t len)
{
	const char *colon = memchr(line, ':', len), *value;
	size_t name_len, value_len;

	if (!colon)
		return -400;
	name_len = (size_t)(colon - line);
	if (!is_token(line, name_len))
		return -400;
	if (h->field_count == HTTP_FIELDS_MAX)
		return -431;

	value = colon + 1;
	value_len = len - name_len - 1;
	trim(&value, &value_len);
	h->fields[h->field_count++] = (struct http_field){
		.name = span(bytes, line, name_len),
		.value = span(bytes, value, value_len),
	};
	for (size_t i = 0; i < ARRAY_LEN(known_fields); i++)
		if (equals(line, name_len, known_fields[i].name))
			return known_fields[i].parse(h, value, value_len);
	return 0;
}

static int finish_head(struct http_head *h)
{
	if (h->minor > 0 && !h->has_host)
		return -400;
	h->keep_alive = !h->says_close && (h->minor > 0 || h->says_keep_alive);
	return 0;
}

/* Look for the CR LF that ends the current line. 1 when found, with its length in *ret_len
 * and h->scan behind it; 0 when `limit` comes first. A byte that no line may contain is
 * refused at once, so that junk (a TLS hello, say) never waits for a line end. */
static int scan_line(struct http_head *h, const char *bytes, size_t limit, size_t *ret_len)
{
	while (h->scan < limit) {
		char c = bytes[h->scan];

		if (h->scan > h->line && bytes[h->scan - 1] == '\r') {
			if (c != '\n')
				return -400;
			*ret_len = h->scan - 1 - h->line;
			h->scan++;
			return 1;
		}
		if (c != '\r' && !is_text(c))
			return -400;
		h->scan++;
	}
	return 0;
}

void http_head_init(struct http_head *h)
{
	*h = (struct http_head){ .framing = HTTP_NO_BODY };
}

ssize_t http_head_parse(struct http_head *h, const char *bytes, size_t len)
{
	size_t max, line_len = 0;
	int r;

	for (;;) {
		const char *line = bytes + h->line;

		max = h->has_line ? HTTP_HEAD_MAX : HTTP_REQUEST_LINE_MAX;
		r = scan_line(h, bytes, len < max ? len : max, &line_len);
		if (r < 0)
			return r;
		if (r == 0 && len >= max)
			return h->has_line ? -431 : -414;
		if (r == 0)
			return 0;

		if (!h->has_line)
			r = parse_request_line(h, line, line_len);
		else if (line_len > 0)
			r = parse_field(h, bytes, line, line_len);
		else
			r = finish_head(h);
		if (r < 0)
			return r;
		if (h->has_line && line_len == 0)
			return (ssize_t)h->scan;
		h->has_line = true;
		h->line = h->scan;
	}
}

void http_chunked_init(struct http_chunked *c, uint64_t room)
{
	*c = (struct http_chunked){ .state = HTTP_CHUNKED_SIZE, .room = room };
}

static int hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

/* No extensions, no white space, no sign, no prefix: digits, then CR. */
static int size_byte(struct http_chunked *c, char byte)
{
	int digit = hex_digit(byte);

	if (digit < 0) {
		if (byte != '\r' || c->digits == 0)
			return -400;
		c->state = HTTP_CHUNKED_SIZE_LF;
		return 0;
	}
	if (c->digits == CHUNK_SIZE_DIGITS_MAX)
		return -400;
	c->digits++;
	c->left = (c->left << 4) | (uint32_t)digit;
	return 0;
}

static int size_done(struct http_chunked *c)
{
	if (c->left > c->room)
		return -413;
	c->room -= c->left;
	c->state = c->left > 0 ? HTTP_CHUNKED_DATA : HTTP_CHUNKED_END_CR;
	return 0;
}

/* One byte of the syntax around the data. Trailers are refused by END_CR accepting nothing
 * but the final CR LF. */
static int syntax_byte(struct http_chunked *c, char byte)
{
	switch (c->state) {
	case HTTP_CHUNKED_SIZE:
		return size_byte(c, byte);
	case HTTP_CHUNKED_SIZE_LF:
		return byte == '\n' ? size_done(c) : -400;
	case HTTP_CHUNKED_DATA_CR:
		c->state = HTTP_CHUNKED_DATA_LF;
		return byte == '\r' ? 0 : -400;
	case HTTP_CHUNKED_DATA_LF:
		c->state = HTTP_CHUNKED_SIZE;
		c->digits = 0;
		return byte == '\n' ? 0 : -400;
	case HTTP_CHUNKED_END_CR:
		c->state = HTTP_CHUNKED_END_LF;
		return byte == '\r' ? 0 : -400;
	case HTTP_CHUNKED_END_LF:
		c->state = HTTP_CHUNKED_DONE;
		return byte == '\n' ? 0 : -400;
	case HTTP_CHUNKED_DATA:
	case HTTP_CHUNKED_DONE:
		break;
	}
	return -400; /* a step after the end: the caller's loop never comes here */
}

int http_chunked_step(
	struct http_chunked *c, const char *bytes, size_t len, struct http_piece *ret_piece)
{
	size_t i = 0;
	int r;

	*ret_piece = (struct http_piece){ .used = 0 };
	while (c->state != HTTP_CHUNKED_DONE && c->state != HTTP_CHUNKED_DATA && i < len) {
		r = syntax_byte(c, bytes[i++]);
		if (r < 0)
			return r;
	}
	if (c->state == HTTP_CHUNKED_DATA && i < len) {
		ret_piece->data = bytes + i;
		ret_piece->len = len - i < c->left ? len - i : c->left;
		c->left -= (uint32_t)ret_piece->len;
		i += ret_piece->len;
		if (c->left == 0)
			c->state = HTTP_CHUNKED_DATA_CR;
	}
	ret_piece->used = i;
	return c->state == HTTP_CHUNKED_DONE;
}
