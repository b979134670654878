/* Fuzz target: rules about the network as people write them, and policies and records that another
 * process has made. A text that is a rule makes a policy that can be obeyed, and says again what was
 * read from it; a policy that can be obeyed has no rule that no text would make; a record that can be
 * shown is shown as JSON.
 */
#include "api/network.h"
#include "api/network_record.h"
#include "api/writer.h"
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <jansson.h>
#include <stdbool.h>

static void check_rule(const struct network_rule *r)
{
	char text[NETWORK_RULE_TEXT_MAX + 1];
	struct network_rule again;
	size_t at;

	(void)network_rule_format(r, text);
	/* Port 0 alone, and a range from it, is what is not written; mapped addresses have no other
	 * form, and half a one has none at all. */
	if ((r->port_min == 0 && r->port_max < UINT16_MAX) ||
		(r->match == NETWORK_RANGE && r->prefix < NETWORK_MAPPED_BITS &&
			network_is_ipv4(&r->address)))
		return;
	CHECK(!network_rule_parse(text, strlen(text), &again, &at));
	CHECK(memcmp(&again, r, sizeof(again)) == 0);
}

static void ask_rule(const struct network_rule *r)
{
	struct network_address a = r->address;

	if (r->match != NETWORK_RANGE)
		CHECK(network_rule_has_address_somewhere(r, &a) == (r->match == NETWORK_ANY));
	else if (r->prefix >= NETWORK_MAPPED_BITS || !network_is_ipv4(&a))
		CHECK(network_rule_has_address(r, &a, r->port_min));
	CHECK(network_rule_has_name(r, r->name, r->port_max) ==
		(r->match == NETWORK_ANY || r->match == NETWORK_NAME));
}

static void try_rule(const uint8_t *bytes, size_t len)
{
	static struct network_policy p;
	struct network_rule r;
	char *text = fuzz_block(bytes, len);
	size_t at = SIZE_MAX;
	const char *why = network_rule_parse(text, len, &r, &at);

	CHECK(why ? at <= len : len <= NETWORK_RULE_TEXT_MAX);
	if (!why) {
		p.allow_count = 1;
		p.allow[0] = r;
		CHECK(!network_policy_fault(&p));
		CHECK(r.port_min <= r.port_max && (r.port_min > 0 || r.port_max == UINT16_MAX));
		check_rule(&r);
		ask_rule(&r);
	}
	free(text);
}

static void try_address(const uint8_t *bytes, size_t len)
{
	char *text = fuzz_block(bytes, len), plain[INET6_ADDRSTRLEN];
	struct network_address a, again;
	size_t at = SIZE_MAX;
	const char *why = network_address_parse(text, len, &a, &at);

	if (why) {
		CHECK(at <= len);
	} else {
		bool ipv4 = network_is_ipv4(&a);

		CHECK(inet_ntop(ipv4 ? AF_INET : AF_INET6, a.bytes + (ipv4 ? 12 : 0), plain,
			sizeof(plain)));
		CHECK(!network_address_parse(plain, strlen(plain), &again, &at));
		CHECK(network_same_bits(&a, &again, 128));
	}
	free(text);
}

/* Most of a rule is 0 in most inputs: bytes are taken where they are. */
static void fill_rule(struct fuzz *z, struct network_rule *r)
{
	size_t len;
	const uint8_t *name;

	memset(r, 0, sizeof(*r));
	r->match = fuzz_u8(z);
	r->prefix = fuzz_u8(z);
	fuzz_fill(z, &r->port_min, sizeof(r->port_min));
	fuzz_fill(z, &r->port_max, sizeof(r->port_max));
	if (fuzz_u8(z) % 2)
		fuzz_fill(z, &r->address, sizeof(r->address));
	name = fuzz_take(z, fuzz_u8(z), &len);
	if (len > 0)
		memcpy(r->name, name, len);
	r->name[sizeof(r->name) - 1] = (char)fuzz_u8(z);
}

static void try_policy(struct fuzz *z)
{
	static struct network_policy p;

	p.allow_count = fuzz_u8(z) % 96;
	p.deny_count = fuzz_u8(z) % 96;
	p.reserved = fuzz_u8(z);
	memset(p.allow, 0, sizeof(p.allow));
	memset(p.deny, 0, sizeof(p.deny));
	for (unsigned i = 0; i < NETWORK_RULES_MAX && z->len > 0; i++)
		fill_rule(z, i % 2 ? &p.deny[i / 2] : &p.allow[i / 2]);
	if (network_policy_fault(&p))
		return;
	CHECK(p.allow_count <= NETWORK_RULES_MAX && p.deny_count <= NETWORK_RULES_MAX);
	for (unsigned i = 0; i < p.allow_count + p.deny_count; i++) {
		const struct network_rule *r =
			i < p.allow_count ? &p.allow[i] : &p.deny[i - p.allow_count];

		check_rule(r);
		ask_rule(r);
	}
}

static void check_shown(const struct network_record *r)
{
	struct writer w = { 0 };
	json_t *all, *lines;
	char *text;

	writer_object(&w, NULL);
	api_network_put(&w, r);
	writer_close(&w);
	text = writer_take(&w, NULL);
	CHECK(text);
	all = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	lines = json_object_get(json_object_get(all, "network"), "connections");
	CHECK(json_array_size(lines) == r->count);
	json_decref(all);
	free(text);
}

static void try_record(struct fuzz *z)
{
	static struct network_record r;

	memset(&r, 0, sizeof(r));
	fuzz_fill(z, &r.magic, sizeof(r.magic));
	fuzz_fill(z, &r.count, sizeof(r.count));
	for (unsigned i = 0; i < NETWORK_RECORD_MAX && z->len > 0; i++) {
		struct network_connection *c = &r.lines[i];
		size_t len;
		const uint8_t *name;

		fuzz_fill(z, c, fuzz_u8(z) % offsetof(struct network_connection, name));
		c->protocol = fuzz_u8(z);
		c->verdict = fuzz_u8(z);
		name = fuzz_take(z, fuzz_u8(z), &len);
		if (len > 0)
			memcpy(c->name, name, len);
		c->name[sizeof(c->name) - 1] = (char)fuzz_u8(z);
	}
	if (!network_record_fault(&r))
		check_shown(&r);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz z = { bytes, len };

	switch (fuzz_u8(&z)) {
	case 'a':
		try_address(z.at, z.len);
		break;
	case 'p':
		try_policy(&z);
		break;
	case 'r':
		try_record(&z);
		break;
	default:
		try_rule(z.at, z.len);
		break;
	}
	return 0;
}
