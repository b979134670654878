#include "api/scan.h"

#include "base/check.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_LEN_MAX 400 /* longer ones hold nothing that a double could; too big */

enum expect {
	EXPECT_VALUE,
	EXPECT_VALUE_OR_END, /* just behind '[' */
	EXPECT_KEY,
	EXPECT_KEY_OR_END, /* just behind '{' */
	EXPECT_COMMA_OR_END,
	EXPECT_NOTHING /* the text's value is complete */
};

struct scan {
	const char *text;
	size_t len, at;
	uint64_t objects; /* bit d: the container at depth d is an object */
	unsigned depth, depth_max;
	enum expect expect;
	size_t key_at, key_len;
	scan_odd_fn *on_odd;
	void *ctx;
	struct scan_fault *fault;
};

static void fail(struct scan *s, const char *error, size_t at)
{
	s->fault->error = error;
	s->fault->at = at;
}

static void odd(struct scan *s, enum scan_oddity what, size_t at, size_t len)
{
	struct scan_odd o = { what, s->depth, at, len, s->key_at, s->key_len };

	s->on_odd(&o, s->ctx);
}

/* The character at `i`, -1 behind the end. */
static int peek(const struct scan *s, size_t i)
{
	return i < s->len ? (unsigned char)s->text[i] : -1;
}

static bool is_digit(int c)
{
	return c >= '0' && c <= '9';
}

static void skip_space(struct scan *s)
{
	int c = peek(s, s->at);

	while (c == ' ' || c == '\t' || c == '\n' || c == '\r')
		c = peek(s, ++s->at);
}

/* The four hex digits at `i`, -1 when they are not that. */
static long hex4(const struct scan *s, size_t i)
{
	long value = 0;

	for (size_t end = i + 4; i < end; i++) {
		int c = peek(s, i);

		if (is_digit(c))
			value = value * 16 + c - '0';
		else if (c >= 'a' && c <= 'f')
			value = value * 16 + c - 'a' + 10;
		else if (c >= 'A' && c <= 'F')
			value = value * 16 + c - 'A' + 10;
		else
			return -1;
	}
	return value;
}

/* Step over the escape whose backslash is at s->at. */
static void escape(struct scan *s, size_t begin, bool *bad_unicode)
{
	int c = peek(s, s->at + 1);
	long unit, low;

	if (c < 0) {
		fail(s, "Unterminated string starting at", begin);
		return;
	}
	if (c != 'u') {
		if (!strchr("\"\\/bfnrt", c) || c == '\0')
			fail(s, "Invalid \\escape", s->at);
		s->at += 2;
		return;
	}
	unit = hex4(s, s->at + 2);
	if (unit < 0) {
		fail(s, "Invalid \\uXXXX escape", s->at + 1);
		return;
	}
	s->at += 6;
	if (unit < 0xd800 || unit > 0xdfff)
		return;
	low = peek(s, s->at) == '\\' && peek(s, s->at + 1) == 'u' ? hex4(s, s->at + 2) : -1;
	if (unit <= 0xdbff && low >= 0xdc00 && low <= 0xdfff)
		s->at += 6;
	else
		*bad_unicode = true;
}

/* A string, from its opening quote at s->at to behind its closing one. */
static void string(struct scan *s, bool *bad_unicode)
{
	size_t begin = s->at++;

	while (!s->fault->error) {
		int c = peek(s, s->at);

		if (c < 0)
			fail(s, "Unterminated string starting at", begin);
		else if (c == '\\')
			escape(s, begin, bad_unicode);
		else if (c < 0x20)
			fail(s, "Invalid control character at", s->at);
		else if (++s->at && c == '"')
			return;
	}
}

static bool too_big(const char *token, size_t len, bool integer)
{
	char text[NUMBER_LEN_MAX + 1];

	if (len > NUMBER_LEN_MAX)
		return true;
	memcpy(text, token, len);
	text[len] = '\0';
	errno = 0;
	if (integer) {
		(void)strtoll(text, NULL, 10);
		return errno == ERANGE;
	}
	return isinf(strtod(text, NULL));
}

static size_t digits(const struct scan *s, size_t i)
{
	while (is_digit(peek(s, i)))
		i++;
	return i;
}

/* A number by JSON's grammar; what cannot belong to it is left standing. */
static void number(struct scan *s)
{
	size_t begin = s->at, end = begin + (peek(s, begin) == '-'), i;
	bool integer = true;

	if (!is_digit(peek(s, end))) {
		fail(s, "Expecting value", begin);
		return;
	}
	end = peek(s, end) == '0' ? end + 1 : digits(s, end);
	if (peek(s, end) == '.' && is_digit(peek(s, end + 1))) {
		end = digits(s, end + 1);
		integer = false;
	}
	if (peek(s, end) == 'e' || peek(s, end) == 'E') {
		i = end + 1;
		if (peek(s, i) == '+' || peek(s, i) == '-')
			i++;
		if (is_digit(peek(s, i))) {
			end = digits(s, i);
			integer = false;
		}
	}
	/* Up to 18 digits always fit, and most numbers are shorter. */
	if ((!integer || end - begin > 18) && too_big(s->text + begin, end - begin, integer))
		odd(s, SCAN_TOO_BIG, begin, end - begin);
	s->at = end;
}

static bool word(struct scan *s, const char *w)
{
	size_t n = strlen(w);

	if (s->len - s->at < n || memcmp(s->text + s->at, w, n) != 0)
		return false;
	s->at += n;
	return true;
}

static void scalar(struct scan *s)
{
	size_t begin = s->at;
	bool bad_unicode = false;

	if (peek(s, s->at) == '"') {
		string(s, &bad_unicode);
		if (bad_unicode && !s->fault->error)
			odd(s, SCAN_BAD_UNICODE, begin, s->at - begin);
	} else if (word(s, "NaN") || word(s, "Infinity") || word(s, "-Infinity")) {
		odd(s, SCAN_NOT_FINITE, begin, s->at - begin);
	} else if (!word(s, "true") && !word(s, "false") && !word(s, "null")) {
		number(s);
	}
}

static bool in_object(const struct scan *s)
{
	return s->depth > 0 && (s->objects >> (s->depth - 1) & 1);
}

/* A value is complete. */
static void settle(struct scan *s)
{
	s->expect = s->depth == 0 ? EXPECT_NOTHING : EXPECT_COMMA_OR_END;
}

static void value(struct scan *s)
{
	int c = peek(s, s->at);

	if (c != '{' && c != '[') {
		scalar(s);
		settle(s);
		return;
	}
	if (s->depth == s->depth_max) {
		fail(s, "Nested too deeply", s->at);
		return;
	}
	s->objects &= ~(UINT64_C(1) << s->depth);
	s->objects |= (uint64_t)(c == '{') << s->depth;
	s->depth++;
	s->at++;
	s->expect = c == '{' ? EXPECT_KEY_OR_END : EXPECT_VALUE_OR_END;
}

static void key(struct scan *s)
{
	bool bad_unicode = false;
	size_t begin = s->at;

	if (peek(s, s->at) != '"') {
		fail(s, "Expecting property name enclosed in double quotes", s->at);
		return;
	}
	string(s, &bad_unicode);
	if (s->fault->error)
		return;
	if (bad_unicode) {
		fail(s, "Lone surrogate in a key", begin);
		return;
	}
	s->key_at = begin + 1;
	s->key_len = s->at - begin - 2;
	skip_space(s);
	if (peek(s, s->at) != ':') {
		fail(s, "Expecting ':' delimiter", s->at);
		return;
	}
	s->at++;
	s->expect = EXPECT_VALUE;
}

static void comma(struct scan *s)
{
	if (peek(s, s->at) != ',') {
		fail(s, "Expecting ',' delimiter", s->at);
		return;
	}
	s->at++;
	s->expect = in_object(s) ? EXPECT_KEY : EXPECT_VALUE;
}

/* Step over the end of the innermost container, if it stands here and may. */
static bool container_end(struct scan *s)
{
	if (s->depth == 0 || s->expect == EXPECT_VALUE || s->expect == EXPECT_KEY)
		return false;
	if (peek(s, s->at) != (in_object(s) ? '}' : ']'))
		return false;
	s->at++;
	s->depth--;
	settle(s);
	return true;
}

static void step(struct scan *s)
{
	if (container_end(s))
		return;
	switch (s->expect) {
	case EXPECT_VALUE:
	case EXPECT_VALUE_OR_END:
		value(s);
		break;
	case EXPECT_KEY:
	case EXPECT_KEY_OR_END:
		key(s);
		break;
	case EXPECT_COMMA_OR_END:
		comma(s);
		break;
	case EXPECT_NOTHING:
	default:
		fail(s, "Extra data", s->at);
	}
}

void json_scan(const char *text, size_t len, unsigned depth, scan_odd_fn *on_odd, void *ctx,
	struct scan_fault *ret)
{
	struct scan s = { .text = text,
		.len = len,
		.depth_max = depth,
		.on_odd = on_odd,
		.ctx = ctx,
		.fault = ret };

	CHECK(depth >= 1 && depth <= 64);
	*ret = (struct scan_fault){ 0 };
	skip_space(&s);
	while (!ret->error && !(s.expect == EXPECT_NOTHING && s.at == s.len)) {
		step(&s);
		skip_space(&s);
	}
}
