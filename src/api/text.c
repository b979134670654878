#include "api/text.h"

#include <stdint.h>

/* What may follow a lead byte: how many bytes, and the range of the first of them (the
 * others are 80..BF). The narrow ranges keep out overlong forms, surrogates and what is
 * beyond U+10FFFF. more == 0: no lead byte. */
struct lead {
	unsigned more, low, high;
};

static struct lead lead_of(unsigned char c)
{
	if (c >= 0xc2 && c <= 0xdf)
		return (struct lead){ 1, 0x80, 0xbf };
	if (c == 0xe0)
		return (struct lead){ 2, 0xa0, 0xbf };
	if (c == 0xed)
		return (struct lead){ 2, 0x80, 0x9f };
	if (c >= 0xe1 && c <= 0xef)
		return (struct lead){ 2, 0x80, 0xbf };
	if (c == 0xf0)
		return (struct lead){ 3, 0x90, 0xbf };
	if (c >= 0xf1 && c <= 0xf3)
		return (struct lead){ 3, 0x80, 0xbf };
	if (c == 0xf4)
		return (struct lead){ 3, 0x80, 0x8f };
	return (struct lead){ 0, 0, 0 };
}

size_t utf8_next(const void *bytes, size_t len, bool *ret_ok)
{
	const unsigned char *p = bytes;
	struct lead l;
	size_t n = 1;

	*ret_ok = true;
	if (p[0] < 0x80)
		return 1;
	l = lead_of(p[0]);
	*ret_ok = false;
	if (l.more == 0)
		return 1;
	if (len < 2 || p[1] < l.low || p[1] > l.high)
		return 1;
	for (n = 2; n <= l.more; n++) {
		if (n >= len || (p[n] & 0xc0) != 0x80)
			return n;
	}
	*ret_ok = true;
	return n;
}

/* The number of bytes at the start that are ASCII; eight at a time, since most output
 * is nothing else. */
static size_t ascii_run(const unsigned char *p, size_t len)
{
	size_t i = 0;
	uint64_t word;

	for (; i + sizeof(word) <= len; i += sizeof(word)) {
		__builtin_memcpy(&word, p + i, sizeof(word));
		if (word & UINT64_C(0x8080808080808080))
			break;
	}
	while (i < len && p[i] < 0x80)
		i++;
	return i;
}

size_t utf8_valid(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t i = 0, n;
	bool ok;

	while (i < len) {
		i += ascii_run(p + i, len - i);
		if (i == len)
			break;
		n = utf8_next(p + i, len - i, &ok);
		if (!ok)
			break;
		i += n;
	}
	return i;
}

size_t utf8_count(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t i = 0, n = 0;
	bool ok;

	while (i < len) {
		i += utf8_next(p + i, len - i, &ok);
		n++;
	}
	return n;
}

size_t utf8_cut_end(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;

	/* Look back for a lead byte whose character does not end here. A sequence that is
	 * wrong anyway stays: it is no character that a cut could harm. */
	for (size_t back = 1; back <= 3 && back <= len; back++) {
		const unsigned char *at = p + len - back;
		bool ok;

		if ((*at & 0xc0) == 0x80)
			continue;
		if (back <= lead_of(*at).more && utf8_next(at, back, &ok) == back && !ok)
			return len - back;
		break;
	}
	return len;
}

size_t utf8_cut_start(const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t n = 0;

	while (n < 3 && n < len && (p[n] & 0xc0) == 0x80)
		n++;
	return n;
}

size_t base64_len(size_t len)
{
	return (len + 2) / 3 * 4;
}

/* What a digit stands for; -1: it is none. */
static int digit(char c)
{
	if (c >= 'A' && c <= 'Z')
		return c - 'A';
	if (c >= 'a' && c <= 'z')
		return c - 'a' + 26;
	if (c >= '0' && c <= '9')
		return c - '0' + 52;
	return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* How many "=" have to follow that many digits. */
static size_t pads_behind(size_t digits)
{
	return (4 - digits % 4) % 4;
}

bool base64_valid(const char *text, size_t len, size_t *ret)
{
	size_t digits = 0, pads, end;

	while (digits < len && digit(text[digits]) >= 0)
		digits++;
	pads = pads_behind(digits);
	*ret = digits;
	if (pads == 3) /* a digit that is left over holds no whole byte */
		return false;
	for (end = digits; end < digits + pads; end++) {
		*ret = end;
		if (end == len || text[end] != '=')
			return false;
	}
	*ret = end;
	if (end != len)
		return false;
	/* The bits of the last digit that belong to no byte are 0, so that each byte string has
	 * one text only. */
	*ret = digits - 1;
	if (pads > 0 && (digit(text[digits - 1]) & (pads == 1 ? 3 : 15)) != 0)
		return false;
	*ret = digits / 4 * 3 + (pads == 2 ? 1 : pads == 1 ? 2 : 0);
	return true;
}

void base64_decode(const char *text, size_t len, void *ret)
{
	unsigned char *at = ret;
	unsigned group = 0, bits = 0;

	for (size_t i = 0; i < len && text[i] != '='; i++) {
		group = group << 6 | (unsigned)digit(text[i]);
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			*at++ = (unsigned char)(group >> bits);
			group &= (1u << bits) - 1;
		}
	}
}
