#include "api/network.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

/* A text on its way through the parser. */
struct cursor {
	const char *text;
	size_t at, len;
	const char *why; /* the first thing that is wrong */
	size_t why_at;
};

static bool fail(struct cursor *c, size_t at, const char *why)
{
	c->why = why;
	c->why_at = at;
	return false;
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_end(const struct cursor *c)
{
	return c->at == c->len;
}

static bool next_is(const struct cursor *c, char byte)
{
	return c->at < c->len && c->text[c->at] == byte;
}

static bool skip(struct cursor *c, char byte)
{
	if (!next_is(c, byte))
		return false;
	c->at++;
	return true;
}

/* A whole number without a sign and without a zero in front of it. */
static bool read_number(struct cursor *c, unsigned max, unsigned *ret, const char *why)
{
	size_t begin = c->at;
	unsigned n = 0;

	while (c->at < c->len && is_digit(c->text[c->at]) && n <= max)
		n = 10 * n + (unsigned)(c->text[c->at++] - '0');
	if (c->at == begin || n > max || (c->text[begin] == '0' && c->at > begin + 1))
		return fail(c, begin, why);
	*ret = n;
	return true;
}

/* ---- Addresses ---- */

static bool read_ipv4(struct cursor *c, struct network_address *ret)
{
	static const char why[] = "is no IPv4 address: four numbers up to 255, without a zero in "
				  "front of them";
	struct network_address a = { { [10] = 0xff, [11] = 0xff } };

	for (unsigned i = 0; i < 4; i++) {
		unsigned n;

		if (i > 0 && !skip(c, '.'))
			return fail(c, c->at, why);
		if (!read_number(c, 255, &n, why))
			return false;
		a.bytes[12 + i] = (uint8_t)n;
	}
	if (next_is(c, '.'))
		return fail(c, c->at, why);
	*ret = a;
	return true;
}

static bool is_ipv6_byte(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' ||
	       c == '.';
}

/* Up to a byte that cannot be of one. The C library knows its forms; a zone ("%eth0") is not an
 * address's, and one of IPv4 in the form of IPv6 would be another rule than it looks like. */
static bool read_ipv6(struct cursor *c, struct network_address *ret)
{
	static const char why[] = "is no IPv6 address";
	char text[INET6_ADDRSTRLEN] = "";
	struct network_address a;
	size_t len = 0;

	while (len < c->len - c->at && is_ipv6_byte(c->text[c->at + len]))
		len++;
	if (len == 0 || len >= sizeof(text))
		return fail(c, c->at, why);
	memcpy(text, c->text + c->at, len);
	if (inet_pton(AF_INET6, text, a.bytes) != 1)
		return fail(c, c->at, why);
	if (network_is_ipv4(&a))
		return fail(c, c->at, "is an IPv4 address in the form of IPv6: write 192.0.2.1");
	c->at += len;
	*ret = a;
	return true;
}

/* "/24" behind an address, of which bits behind it have to be 0. `base`: the bits in front of
 * those that are counted. */
static bool read_prefix(struct cursor *c, size_t begin, unsigned base, struct network_rule *ret)
{
	unsigned n = 128 - base;

	if (skip(c, '/') && !read_number(c, 128 - base, &n,
				    base ? "has a prefix that is none: 0 to 32"
					 : "has a prefix that is none: 0 to 128"))
		return false;
	ret->match = NETWORK_RANGE;
	ret->prefix = base + n;
	for (unsigned bit = ret->prefix; bit < 128; bit++)
		if (ret->address.bytes[bit / 8] & (0x80u >> bit % 8))
			return fail(c, begin,
				"has bits behind its prefix: write the first address of the range, "
				"or leave the prefix out");
	return true;
}

static bool read_range(struct cursor *c, bool ipv6, struct network_rule *ret)
{
	size_t begin = c->at;
	bool read = ipv6 ? read_ipv6(c, &ret->address) : read_ipv4(c, &ret->address);

	return read && read_prefix(c, begin, ipv6 ? 0 : NETWORK_MAPPED_BITS, ret);
}

/* ---- Names ---- */

static bool read_name(struct cursor *c, struct network_rule *ret)
{
	const char *name = c->text + c->at, *colon = memchr(name, ':', c->len - c->at);
	size_t len = colon ? (size_t)(colon - name) : c->len - c->at, at;
	const char *rule;

	if (len > 0 && name[len - 1] == '.')
		return fail(c, c->at + len - 1, "ends with a dot: leave it out");
	rule = network_name_fault(name, len, &at);
	if (rule)
		return fail(c, c->at + at, rule);
	for (size_t i = 0; i < len; i++)
		ret->name[i] = (char)(name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]);
	c->at += len;
	return true;
}

/* ---- The whole ---- */

static bool read_ports(struct cursor *c, struct network_rule *ret)
{
	static const char why[] = "has a port that is none: 1 to 65535";
	size_t begin = c->at;
	unsigned first, last;

	if (!skip(c, ':'))
		return true;
	if (next_is(c, '0'))
		return fail(c, c->at, why);
	if (!read_number(c, 65535, &first, why))
		return false;
	last = first;
	if (skip(c, '-') && !read_number(c, 65535, &last, why))
		return false;
	if (last < first)
		return fail(c, begin + 1, "has ports that end before they begin");
	ret->port_min = (uint16_t)first;
	ret->port_max = (uint16_t)last;
	return true;
}

static bool is_ipv4_like(const char *text, size_t len)
{
	size_t n = 0;

	while (n < len && (is_digit(text[n]) || text[n] == '.'))
		n++;
	return n > 0 && (n == len || text[n] == ':' || text[n] == '/');
}

static bool has_two_colons(const char *text, size_t len)
{
	const char *one = memchr(text, ':', len);

	return one && memchr(one + 1, ':', len - (size_t)(one + 1 - text));
}

static bool read_host(struct cursor *c, struct network_rule *ret)
{
	if (skip(c, '[')) {
		if (!read_range(c, true, ret))
			return false;
		return skip(c, ']') || fail(c, c->at, "has no \"]\" behind its IPv6 address");
	}
	if (skip(c, '*')) {
		if (is_end(c) || next_is(c, ':'))
			return true; /* NETWORK_ANY is 0 */
		if (!skip(c, '.'))
			return fail(c, c->at,
				"has a \"*\" that is not all of its first part: write "
				"*.example.org");
		ret->match = NETWORK_SUBNAME;
		return read_name(c, ret);
	}
	if (has_two_colons(c->text, c->len))
		return read_range(c, true, ret);
	if (is_ipv4_like(c->text, c->len))
		return read_range(c, false, ret);
	ret->match = NETWORK_NAME;
	return read_name(c, ret);
}

static bool read_rule(struct cursor *c, struct network_rule *ret)
{
	const char *scheme = memmem(c->text, c->len, "://", 3);

	if (c->len == 0)
		return fail(c, 0, "is empty");
	if (c->len > NETWORK_RULE_TEXT_MAX)
		return fail(c, NETWORK_RULE_TEXT_MAX, "is longer than any rule");
	if (scheme)
		return fail(c, (size_t)(scheme - c->text),
			"is a URL: write its host, and \":443\" for a port");
	if (!read_host(c, ret) || !read_ports(c, ret))
		return false;
	return is_end(c) || fail(c, c->at,
				    ret->match == NETWORK_RANGE && ret->prefix == 128
					    ? "has more behind its address"
					    : "has more behind its end");
}

const char *network_rule_parse(
	const char *text, size_t len, struct network_rule *ret, size_t *ret_at)
{
	struct cursor c = { .text = text, .len = len };

	memset(ret, 0, sizeof(*ret));
	ret->port_max = UINT16_MAX;
	if (read_rule(&c, ret))
		return NULL;
	*ret_at = c.why_at;
	return c.why;
}

static int format_range(const struct network_rule *r, bool brackets, char *room, size_t len)
{
	bool ipv4 = network_is_ipv4(&r->address) && r->prefix >= NETWORK_MAPPED_BITS;
	char address[INET6_ADDRSTRLEN], prefix[8] = "";

	(void)inet_ntop(ipv4 ? AF_INET : AF_INET6, r->address.bytes + (ipv4 ? 12 : 0), address,
		sizeof(address));
	if (r->prefix < 128)
		(void)snprintf(prefix, sizeof(prefix), "/%u",
			r->prefix - (ipv4 ? NETWORK_MAPPED_BITS : 0));
	return snprintf(room, len, brackets && !ipv4 ? "[%s%s]" : "%s%s", address, prefix);
}

const char *network_rule_format(
	const struct network_rule *r, char room[static NETWORK_RULE_TEXT_MAX + 1])
{
	const size_t len = NETWORK_RULE_TEXT_MAX + 1;
	bool all = r->port_min == 0 && r->port_max == UINT16_MAX;
	int n;

	if (r->match == NETWORK_RANGE)
		n = format_range(r, !all, room, len);
	else
		n = snprintf(room, len, "%s%s",
			r->match == NETWORK_ANY       ? "*"
			: r->match == NETWORK_SUBNAME ? "*."
						      : "",
			r->name);
	if (!all)
		n += snprintf(room + n, len - (size_t)n, ":%u", r->port_min);
	if (!all && r->port_max != r->port_min)
		(void)snprintf(room + n, len - (size_t)n, "-%u", r->port_max);
	return room;
}

#define SHOWN_MAX 64u

const char *network_rule_explain(const char *text, size_t len, const char *why, size_t at,
	char room[static NETWORK_RULE_WHY_MAX])
{
	size_t shown = len < SHOWN_MAX ? len : SHOWN_MAX;
	char clipped[SHOWN_MAX + 1];

	for (size_t i = 0; i < shown; i++)
		clipped[i] = text[i] >= ' ' && text[i] < 0x7f ? text[i] : '?';
	clipped[shown] = '\0';
	(void)snprintf(room, NETWORK_RULE_WHY_MAX,
		"\"%s%s\" %s (byte %zu); a rule is NAME, *.NAME, ADDRESS, ADDRESS/BITS or *, with "
		":PORT or :FIRST-LAST behind it if it is not about all ports",
		clipped, shown < len ? "..." : "", why, at + 1);
	return room;
}

const char *network_address_parse(
	const char *text, size_t len, struct network_address *ret, size_t *ret_at)
{
	struct cursor c = { .text = text, .len = len };
	bool read = memchr(text, ':', len) ? read_ipv6(&c, ret) : read_ipv4(&c, ret);

	if (read && is_end(&c))
		return NULL;
	*ret_at = read ? c.at : c.why_at;
	return read ? "has more behind its address" : c.why;
}
