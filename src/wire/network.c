#include "wire/network.h"

#include "base/check.h"

#include <string.h>

bool network_same_bits(
	const struct network_address *a, const struct network_address *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;
	uint8_t mask = (uint8_t)(0xff00u >> rest);

	return memcmp(a->bytes, b->bytes, whole) == 0 &&
	       (rest == 0 || ((a->bytes[whole] ^ b->bytes[whole]) & mask) == 0);
}

bool network_is_ipv4(const struct network_address *a)
{
	static const struct network_address mapped = { { [10] = 0xff, [11] = 0xff } };

	return network_same_bits(a, &mapped, NETWORK_MAPPED_BITS);
}

static bool has_port(const struct network_rule *r, uint16_t port)
{
	return port >= r->port_min && port <= r->port_max;
}

bool network_rule_has_address_somewhere(
	const struct network_rule *r, const struct network_address *a)
{
	if (r->match == NETWORK_ANY)
		return true;
	/* ::/0 is all of IPv6, and mapped addresses are none of it. */
	if (r->match != NETWORK_RANGE || (r->prefix < NETWORK_MAPPED_BITS && network_is_ipv4(a)))
		return false;
	return network_same_bits(&r->address, a, r->prefix);
}

bool network_rule_has_address(
	const struct network_rule *r, const struct network_address *a, uint16_t port)
{
	return has_port(r, port) && network_rule_has_address_somewhere(r, a);
}

bool network_rule_has_name_somewhere(const struct network_rule *r, const char *name)
{
	size_t own = strlen(r->name), len = strlen(name);

	switch (r->match) {
	case NETWORK_ANY:
		return true;
	case NETWORK_NAME:
		return strcmp(r->name, name) == 0;
	case NETWORK_SUBNAME:
		return len > own + 1 && name[len - own - 1] == '.' &&
		       strcmp(name + len - own, r->name) == 0;
	default:
		return false;
	}
}

bool network_rule_has_name(const struct network_rule *r, const char *name, uint16_t port)
{
	return has_port(r, port) && network_rule_has_name_somewhere(r, name);
}

/* ---- Names ---- */

static bool is_label_byte(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_';
}

static bool is_number(const char *label, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (label[i] < '0' || label[i] > '9')
			return false;
	return true;
}

static const char *label_fault(const char *label, size_t len, size_t *ret_at)
{
	*ret_at = 0;
	if (len == 0)
		return "has an empty part between its dots";
	for (size_t i = 0; i < len; i++) {
		*ret_at = i;
		if ((unsigned char)label[i] >= 0x80)
			return "has a letter that is not ASCII: write its xn-- form";
		if (!is_label_byte(label[i]))
			return "may have letters, digits, \"-\", \"_\" and dots";
	}
	*ret_at = label[0] == '-' ? 0 : len - 1;
	if (label[0] == '-' || label[len - 1] == '-')
		return "has a \"-\" at an end of one of its parts";
	*ret_at = NETWORK_LABEL_MAX;
	return len > NETWORK_LABEL_MAX ? "has a part of more than 63 bytes" : NULL;
}

const char *network_name_fault(const char *name, size_t len, size_t *ret_at)
{
	size_t begin = 0;

	for (;;) {
		const char *dot = memchr(name + begin, '.', len - begin);
		size_t end = dot ? (size_t)(dot - name) : len;
		const char *rule = label_fault(name + begin, end - begin, ret_at);

		*ret_at += begin;
		if (rule)
			return rule;
		if (!dot) {
			*ret_at = begin;
			if (is_number(name + begin, end - begin))
				return "ends with a number, as no name does";
			*ret_at = NETWORK_NAME_MAX;
			return len > NETWORK_NAME_MAX ? "has more than 253 bytes" : NULL;
		}
		begin = end + 1;
	}
}

/* ---- What another process has made ---- */

static bool is_low(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (name[i] >= 'A' && name[i] <= 'Z')
			return false;
	return true;
}

static bool is_zero(const void *bytes, size_t len)
{
	const uint8_t *b = bytes;

	for (size_t i = 0; i < len; i++)
		if (b[i])
			return false;
	return true;
}

static const char *range_fault(const struct network_rule *r)
{
	if (r->prefix > 128)
		return "a prefix of more than 128 bits";
	for (unsigned bit = r->prefix; bit < 128; bit++)
		if (r->address.bytes[bit / 8] & (0x80u >> bit % 8))
			return "an address with bits behind its prefix";
	return is_zero(r->name, sizeof(r->name)) ? NULL : "a range with a name";
}

static const char *name_fault(const struct network_rule *r)
{
	const char *end = memchr(r->name, '\0', sizeof(r->name));
	size_t len = end ? (size_t)(end - r->name) : sizeof(r->name), at;
	const char *rule = network_name_fault(r->name, len, &at);

	if (rule)
		return rule;
	if (!is_low(r->name, len))
		return "a name with capital letters";
	if (!is_zero(end, (size_t)(r->name + sizeof(r->name) - end)))
		return "bytes behind a name";
	return r->prefix == 0 && is_zero(&r->address, sizeof(r->address)) ? NULL
									  : "a name with a range";
}

static const char *rule_fault(const struct network_rule *r)
{
	if (r->port_min > r->port_max)
		return "ports that end before they begin";
	switch (r->match) {
	case NETWORK_ANY:
		return r->prefix == 0 && is_zero(&r->address, sizeof(r->address)) &&
				       is_zero(r->name, sizeof(r->name))
			       ? NULL
			       : "a rule for all that names something";
	case NETWORK_RANGE:
		return range_fault(r);
	case NETWORK_NAME:
	case NETWORK_SUBNAME:
		return name_fault(r);
	default:
		return "a rule of no kind";
	}
}

const char *network_policy_fault(const struct network_policy *p)
{
	if (p->allow_count > NETWORK_RULES_MAX || p->deny_count > NETWORK_RULES_MAX)
		return "more rules than there is room for";
	if (p->reserved)
		return "a reserved field that is not 0";
	for (uint32_t i = 0; i < p->allow_count + p->deny_count; i++) {
		const struct network_rule *r =
			i < p->allow_count ? &p->allow[i] : &p->deny[i - p->allow_count];
		const char *rule = rule_fault(r);

		if (rule)
			return rule;
	}
	return NULL;
}

static const char *line_fault(const struct network_connection *c)
{
	const char *end = memchr(c->name, '\0', sizeof(c->name));
	size_t at;

	if (c->protocol >= NETWORK_PROTOCOL_MAX || c->verdict >= NETWORK_VERDICT_MAX)
		return "a line of no kind";
	if ((c->begin_us | c->bytes_in | c->bytes_out) > INT64_MAX)
		return "a number that nothing counts to";
	if (!end)
		return "a name without its end";
	if (end > c->name && network_name_fault(c->name, (size_t)(end - c->name), &at))
		return "a name that is none";
	return NULL;
}

/* Many readers of JSON take no number beyond INT64_MAX, and then nothing of its text. */
const char *network_record_fault(const struct network_record *r)
{
	if (r->magic != NETWORK_RECORD_MAGIC && r->magic != 0)
		return "it is none";
	if (r->count > NETWORK_RECORD_MAX)
		return "more lines than there is room for";
	if ((r->left_out | r->connections | r->refused | r->bytes_in | r->bytes_out) > INT64_MAX)
		return "a number that nothing counts to";
	for (uint32_t i = 0; i < r->count; i++) {
		const char *rule = line_fault(&r->lines[i]);

		if (rule)
			return rule;
	}
	return NULL;
}

const char *network_verdict_text(enum network_verdict v)
{
	static const char *const texts[] = {
#define X(name, text) text,
		NETWORK_VERDICTS(X)
#undef X
	};

	CHECK(v < NETWORK_VERDICT_MAX);
	return texts[v];
}

const char *network_protocol_name(enum network_protocol p)
{
	static const char *const names[] = { "tcp", "udp", "icmp", "dns", "other" };

	CHECK(p < NETWORK_PROTOCOL_MAX);
	return names[p];
}
