#include "api/writer.h"

#include "api/text.h"

#include "base/check.h"
#include "base/own.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WRITER_FIRST_ROOM 1024

/* Make room for `more` bytes and a NUL. */
static bool reserve(struct writer *w, size_t more)
{
	size_t room = w->room ? w->room : WRITER_FIRST_ROOM;
	char *bytes;

	if (w->failed)
		return false;
	if (w->bytes && more < w->room - w->len)
		return true;
	while (room - w->len <= more) {
		if (room > SIZE_MAX / 2) {
			w->failed = true;
			return false;
		}
		room *= 2;
	}
	bytes = realloc(w->bytes, room);
	if (!bytes) {
		w->failed = true;
		return false;
	}
	w->bytes = bytes;
	w->room = room;
	return true;
}

static void put(struct writer *w, const void *bytes, size_t len)
{
	if (len == 0 || !reserve(w, len))
		return;
	memcpy(w->bytes + w->len, bytes, len);
	w->len += len;
}

static void put_text(struct writer *w, const char *text)
{
	put(w, text, strlen(text));
}

/* Bytes that stand in a JSON string as they are: printable ASCII but the two specials. */
static size_t plain_run(const unsigned char *p, size_t len)
{
	size_t i = 0;

	while (i < len && p[i] >= 0x20 && p[i] < 0x80 && p[i] != '"' && p[i] != '\\')
		i++;
	return i;
}

static void put_special(struct writer *w, unsigned char c)
{
	static const char *const names[] = { ['\b'] = "\\b",
		['\t'] = "\\t",
		['\n'] = "\\n",
		['\f'] = "\\f",
		['\r'] = "\\r",
		['"'] = "\\\"",
		['\\'] = "\\\\" };
	static const char digits[] = "0123456789abcdef";
	char text[] = "\\u0000";

	if (c < ARRAY_LEN(names) && names[c]) {
		put_text(w, names[c]);
		return;
	}
	/* By hand: a program can fill megabytes with these. */
	text[4] = digits[c >> 4];
	text[5] = digits[c & 15];
	put(w, text, sizeof(text) - 1);
}

void writer_text(struct writer *w, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t i = 0, n;
	bool ok;

	/* Nearly always enough, and one allocation instead of several. */
	(void)reserve(w, len + len / 16);
	while (i < len && !w->failed) {
		n = plain_run(p + i, len - i);
		put(w, p + i, n);
		i += n;
		if (i == len)
			break;
		if (p[i] < 0x80) {
			put_special(w, p[i++]);
			continue;
		}
		n = utf8_next(p + i, len - i, &ok);
		put(w, ok ? (const char *)p + i : "\xef\xbf\xbd", ok ? n : 3);
		i += n;
	}
}

size_t writer_text_len(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t sum = 0, n;
	bool ok;

	for (size_t i = 0; i < len; i += n) {
		n = 1;
		if (p[i] >= 0x80) {
			n = utf8_next(p + i, len - i, &ok);
			sum += ok ? n : 3;
		} else if (p[i] == '"' || p[i] == '\\' ||
			   (p[i] >= '\b' && p[i] <= '\r' && p[i] != '\v')) {
			sum += 2;
		} else {
			sum += p[i] < 0x20 ? 6 : 1;
		}
	}
	return sum;
}

/* What stands in front of any value: a comma and, in an object, the key. */
static void lead_in(struct writer *w, const char *key)
{
	bool in_object = w->depth > 0 && (w->objects >> (w->depth - 1) & 1);

	CHECK(in_object == (key != NULL));
	if (w->comma)
		put(w, ",", 1);
	w->comma = true;
	if (!key)
		return;
	put(w, "\"", 1);
	writer_text(w, key, strlen(key));
	put(w, "\":", 2);
}

static void open_container(struct writer *w, const char *key, bool object)
{
	lead_in(w, key);
	CHECK(w->depth < WRITER_DEPTH_MAX);
	w->objects &= ~(UINT64_C(1) << w->depth);
	w->objects |= (uint64_t)object << w->depth;
	w->depth++;
	w->comma = false;
	put(w, object ? "{" : "[", 1);
}

void writer_object(struct writer *w, const char *key)
{
	open_container(w, key, true);
}

void writer_array(struct writer *w, const char *key)
{
	open_container(w, key, false);
}

void writer_close(struct writer *w)
{
	CHECK(w->depth > 0);
	w->depth--;
	put(w, w->objects >> w->depth & 1 ? "}" : "]", 1);
	w->comma = true;
}

void writer_text_begin(struct writer *w, const char *key)
{
	lead_in(w, key);
	put(w, "\"", 1);
}

void writer_text_end(struct writer *w)
{
	put(w, "\"", 1);
}

void writer_string(struct writer *w, const char *key, const char *text)
{
	writer_text_begin(w, key);
	writer_text(w, text, strlen(text));
	writer_text_end(w);
}

void writer_format(struct writer *w, const char *key, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;
	int r;

	va_start(ap, fmt);
	r = vasprintf(&text, fmt, ap);
	va_end(ap);
	if (r < 0) {
		text = NULL; /* vasprintf() leaves it undefined */
		w->failed = true;
		return;
	}
	writer_string(w, key, text);
}

/* The digits of `value` by hand, up to `end`: a reply has thirty numbers, and printf() is
 * most of what they cost. Returns the first. */
static char *digits_before(char *end, uint64_t value)
{
	do
		*--end = (char)('0' + value % 10);
	while ((value /= 10) > 0);
	return end;
}

void writer_u64(struct writer *w, const char *key, uint64_t value)
{
	char text[24], *end = text + sizeof(text) - 1;

	*end = '\0';
	writer_raw(w, key, digits_before(end, value));
}

void writer_i64(struct writer *w, const char *key, int64_t value)
{
	char text[24], *end = text + sizeof(text) - 1, *first;

	*end = '\0';
	first = digits_before(end, value < 0 ? -(uint64_t)value : (uint64_t)value);
	if (value < 0)
		*--first = '-';
	writer_raw(w, key, first);
}

void writer_thousandths(struct writer *w, const char *key, uint64_t value)
{
	char text[32], *end = text + sizeof(text) - 1, *first = end;
	unsigned fraction = (unsigned)(value % 1000), left = 3;

	for (; left > 0 && fraction % 10 == 0; left--)
		fraction /= 10;
	*end = '\0';
	if (left > 0) {
		for (; left > 0; left--, fraction /= 10)
			*--first = (char)('0' + fraction % 10);
		*--first = '.';
	}
	writer_raw(w, key, digits_before(first, value / 1000));
}

void writer_bool(struct writer *w, const char *key, bool value)
{
	writer_raw(w, key, value ? "true" : "false");
}

void writer_null(struct writer *w, const char *key)
{
	writer_raw(w, key, "null");
}

void writer_number(struct writer *w, const char *key, double value)
{
	char text[32];

	CHECK(isfinite(value));
	/* What nearly all are; %.15g would print the same. */
	if (value >= 1 && value < 1e15 && (double)(uint64_t)value == value) {
		writer_u64(w, key, (uint64_t)value);
		return;
	}
	(void)snprintf(text, sizeof(text), "%.15g", value);
	if (strtod(text, NULL) != value)
		(void)snprintf(text, sizeof(text), "%.17g", value);
	writer_raw(w, key, text);
}

void writer_fixed(struct writer *w, const char *key, double value, int decimals)
{
	char text[340]; /* room for the largest double */
	size_t len;

	CHECK(isfinite(value) && decimals >= 0 && decimals <= 9);
	(void)snprintf(text, sizeof(text), "%.*f", decimals, value);
	len = strlen(text);
	while (decimals > 0 && text[len - 1] == '0')
		text[--len] = '\0';
	if (text[len - 1] == '.')
		text[--len] = '\0';
	writer_raw(w, key, text);
}

void writer_raw(struct writer *w, const char *key, const char *json)
{
	lead_in(w, key);
	put_text(w, json);
}

static unsigned char at(
	const unsigned char *head, size_t head_len, const unsigned char *tail, size_t i)
{
	return i < head_len ? head[i] : tail[i - head_len];
}

void writer_base64(struct writer *w, const char *key, const void *head, size_t head_len,
	const void *tail, size_t tail_len)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t len = head_len + tail_len;

	writer_text_begin(w, key);
	(void)reserve(w, base64_len(len));
	for (size_t i = 0; i < len && !w->failed; i += 3) {
		uint32_t group = (uint32_t)at(head, head_len, tail, i) << 16;
		char out[4];

		if (i + 1 < len)
			group |= (uint32_t)at(head, head_len, tail, i + 1) << 8;
		if (i + 2 < len)
			group |= at(head, head_len, tail, i + 2);
		out[0] = digits[group >> 18];
		out[1] = digits[group >> 12 & 63];
		out[2] = '=';
		out[3] = '=';
		if (i + 1 < len)
			out[2] = digits[group >> 6 & 63];
		if (i + 2 < len)
			out[3] = digits[group & 63];
		put(w, out, sizeof(out));
	}
	writer_text_end(w);
}

void writer_json_text(struct writer *w, const char *key, const char *text, size_t len)
{
	lead_in(w, key);
	put(w, text, len);
}

char *writer_take(struct writer *w, size_t *ret_len)
{
	CHECK(w->failed || w->depth == 0);
	if (!reserve(w, 0)) {
		writer_drop(w);
		return NULL;
	}
	w->bytes[w->len] = '\0';
	if (ret_len)
		*ret_len = w->len;
	w->len = w->room = 0;
	w->comma = false;
	return take_ptr(w->bytes);
}

void writer_drop(struct writer *w)
{
	free(w->bytes);
	*w = (struct writer){ 0 };
}
