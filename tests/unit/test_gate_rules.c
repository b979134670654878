/* Which addresses are not of the public internet, and what a run may reach. */
#include "unit.h"

#include "api/network.h"
#include "base/check.h"
#include "edge/gate/rules.h"
#include "edge/gate/special.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

static struct network_address address_of(const char *text)
{
	struct network_address a = { { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, a.bytes + 12) != 1 && inet_pton(AF_INET6, text, a.bytes) != 1)
		fail_msg("%s is no address", text);
	return a;
}

/* ---- Addresses ---- */

/* The first and the last of each range, and what is next to it on both sides. */
static void an_address_is_what_the_registries_say(void **state)
{
	static const struct {
		const char *text;
		enum network_verdict is;
	} known[] = {
		{ "0.0.0.0", NETWORK_THIS_HOST },
		{ "0.255.255.255", NETWORK_THIS_HOST },
		{ "1.0.0.0", NETWORK_ALLOWED },
		{ "9.255.255.255", NETWORK_ALLOWED },
		{ "10.0.0.0", NETWORK_PRIVATE },
		{ "10.255.255.255", NETWORK_PRIVATE },
		{ "11.0.0.0", NETWORK_ALLOWED },
		{ "100.63.255.255", NETWORK_ALLOWED },
		{ "100.64.0.0", NETWORK_SHARED },
		{ "100.127.255.255", NETWORK_SHARED },
		{ "100.128.0.0", NETWORK_ALLOWED },
		{ "126.255.255.255", NETWORK_ALLOWED },
		{ "127.0.0.0", NETWORK_LOOPBACK },
		{ "127.255.255.255", NETWORK_LOOPBACK },
		{ "128.0.0.0", NETWORK_ALLOWED },
		{ "169.253.255.255", NETWORK_ALLOWED },
		{ "169.254.0.0", NETWORK_LINK_LOCAL },
		{ "169.254.255.255", NETWORK_LINK_LOCAL },
		{ "169.255.0.0", NETWORK_ALLOWED },
		{ "172.15.255.255", NETWORK_ALLOWED },
		{ "172.16.0.0", NETWORK_PRIVATE },
		{ "172.31.255.255", NETWORK_PRIVATE },
		{ "172.32.0.0", NETWORK_ALLOWED },
		{ "191.255.255.255", NETWORK_ALLOWED },
		{ "192.0.0.0", NETWORK_RESERVED },
		{ "192.0.0.255", NETWORK_RESERVED },
		{ "192.0.1.0", NETWORK_ALLOWED },
		{ "192.0.1.255", NETWORK_ALLOWED },
		{ "192.0.2.0", NETWORK_RESERVED },
		{ "192.0.2.255", NETWORK_RESERVED },
		{ "192.0.3.0", NETWORK_ALLOWED },
		{ "192.88.98.255", NETWORK_ALLOWED },
		{ "192.88.99.0", NETWORK_TRANSLATED },
		{ "192.88.99.255", NETWORK_TRANSLATED },
		{ "192.88.100.0", NETWORK_ALLOWED },
		{ "192.167.255.255", NETWORK_ALLOWED },
		{ "192.168.0.0", NETWORK_PRIVATE },
		{ "192.168.255.255", NETWORK_PRIVATE },
		{ "192.169.0.0", NETWORK_ALLOWED },
		{ "198.17.255.255", NETWORK_ALLOWED },
		{ "198.18.0.0", NETWORK_RESERVED },
		{ "198.19.255.255", NETWORK_RESERVED },
		{ "198.20.0.0", NETWORK_ALLOWED },
		{ "198.51.99.255", NETWORK_ALLOWED },
		{ "198.51.100.0", NETWORK_RESERVED },
		{ "198.51.100.255", NETWORK_RESERVED },
		{ "198.51.101.0", NETWORK_ALLOWED },
		{ "203.0.112.255", NETWORK_ALLOWED },
		{ "203.0.113.0", NETWORK_RESERVED },
		{ "203.0.113.255", NETWORK_RESERVED },
		{ "203.0.114.0", NETWORK_ALLOWED },
		{ "223.255.255.255", NETWORK_ALLOWED },
		{ "224.0.0.0", NETWORK_MULTICAST },
		{ "239.255.255.255", NETWORK_MULTICAST },
		{ "240.0.0.0", NETWORK_RESERVED },
		{ "255.255.255.254", NETWORK_RESERVED },
		{ "255.255.255.255", NETWORK_BROADCAST },

		{ "::", NETWORK_THIS_HOST },
		{ "::1", NETWORK_LOOPBACK },
		{ "1fff:ffff::1", NETWORK_RESERVED },
		{ "2000::", NETWORK_ALLOWED },
		{ "2000:ffff::1", NETWORK_ALLOWED },
		{ "2001:1::1", NETWORK_RESERVED },
		{ "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff", NETWORK_RESERVED },
		{ "2001:200::", NETWORK_ALLOWED },
		{ "2001:db7:ffff::1", NETWORK_ALLOWED },
		{ "2001:db8::", NETWORK_RESERVED },
		{ "2001:db8:ffff:ffff:ffff:ffff:ffff:ffff", NETWORK_RESERVED },
		{ "2001:db9::", NETWORK_ALLOWED },
		{ "2606:4700:4700::1111", NETWORK_ALLOWED },
		{ "3ffe:ffff::1", NETWORK_ALLOWED },
		{ "3fff::", NETWORK_RESERVED },
		{ "3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff", NETWORK_RESERVED },
		{ "3fff:1000::", NETWORK_ALLOWED },
		{ "3fff:ffff::1", NETWORK_ALLOWED },
		{ "4000::", NETWORK_RESERVED },
		{ "100::1", NETWORK_RESERVED },
		{ "5f00::1", NETWORK_RESERVED },
		{ "fbff:ffff::1", NETWORK_RESERVED },
		{ "fc00::", NETWORK_PRIVATE },
		{ "fdff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NETWORK_PRIVATE },
		{ "fe00::", NETWORK_RESERVED },
		{ "fe7f:ffff::1", NETWORK_RESERVED },
		{ "fe80::", NETWORK_LINK_LOCAL },
		{ "febf:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NETWORK_LINK_LOCAL },
		{ "fec0::", NETWORK_PRIVATE },
		{ "feff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NETWORK_PRIVATE },
		{ "ff00::", NETWORK_MULTICAST },
		{ "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", NETWORK_MULTICAST },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(known); i++) {
		struct network_address a = address_of(known[i].text);
		enum network_verdict v = network_special(&a);

		if (v != known[i].is)
			fail_msg("%s is %s", known[i].text, network_verdict_text(v));
	}
}

static void metadata_goes_before_the_range_that_it_is_in(void **state)
{
	static const struct {
		const char *text, *before, *behind;
		enum network_verdict around;
	} services[] = {
		{ "169.254.169.254", "169.254.169.253", "169.254.169.255", NETWORK_LINK_LOCAL },
		{ "169.254.170.2", "169.254.170.1", "169.254.170.3", NETWORK_LINK_LOCAL },
		{ "100.100.100.200", "100.100.100.199", "100.100.100.201", NETWORK_SHARED },
		{ "168.63.129.16", "168.63.129.15", "168.63.129.17", NETWORK_ALLOWED },
		{ "192.0.0.192", "192.0.0.191", "192.0.0.193", NETWORK_RESERVED },
		{ "fd00:ec2::254", "fd00:ec2::253", "fd00:ec2::255", NETWORK_PRIVATE },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(services); i++) {
		struct network_address a = address_of(services[i].text);
		struct network_address before = address_of(services[i].before);
		struct network_address behind = address_of(services[i].behind);

		assert_int_equal(network_special(&a), NETWORK_METADATA);
		assert_int_equal(network_special(&before), services[i].around);
		assert_int_equal(network_special(&behind), services[i].around);
	}
}

/* Whatever is inside: also what would be public. */
static void forms_that_hold_an_address_of_ipv4_are_no_way_around(void **state)
{
	static const char *const held[] = {
		"::a9fe:a9fe",
		"::127.0.0.1",
		"::8.8.8.8",
		"::ffff", /* "compatible" */
		"::ffff:0:a9fe:a9fe",
		"::ffff:0:8.8.8.8", /* SIIT */
		"64:ff9b::",
		"64:ff9b::10.0.0.1",
		"64:ff9b::ffff:ffff", /* NAT64 */
		"64:ff9b:1::",
		"64:ff9b:1:ffff:ffff:ffff:ffff:ffff", /* ...of one's own */
		"2001::",
		"2001:0:ffff:ffff:ffff:ffff:ffff:ffff", /* Teredo */
		"2002::",
		"2002:a9fe:a9fe::1",
		"2002:ffff:ffff::", /* 6to4 */
		"2606:4700::5efe:a00:1",
		"2606:4700::200:5efe:a9fe:a9fe", /* ISATAP */
		"2606:4700::300:5efe:808:808",
	};
	static const char *const beside[] = { "2003::1", "2606:4700::400:5efe:a00:1",
		"2606:4700::5eff:a00:1", "2606:4700::5efd:a00:1", "2606:4700::1:5efe:a00:1" };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(held); i++) {
		struct network_address a = address_of(held[i]);

		if (network_special(&a) != NETWORK_TRANSLATED)
			fail_msg("%s is %s", held[i], network_verdict_text(network_special(&a)));
	}
	for (unsigned i = 0; i < ARRAY_LEN(beside); i++) {
		struct network_address a = address_of(beside[i]);

		if (network_special(&a) != NETWORK_ALLOWED)
			fail_msg("%s is %s", beside[i], network_verdict_text(network_special(&a)));
	}
}

/* An IPv6 packet can have one as its target. */
static void a_mapped_address_is_what_it_maps(void **state)
{
	struct network_address a = address_of("::ffff:169.254.169.254");

	(void)state;
	assert_int_equal(network_special(&a), NETWORK_METADATA);
	a = address_of("::ffff:10.0.0.1");
	assert_int_equal(network_special(&a), NETWORK_PRIVATE);
	a = address_of("::ffff:8.8.8.8");
	assert_int_equal(network_special(&a), NETWORK_ALLOWED);
	a = address_of("::fffe:8.8.8.8");
	assert_int_equal(network_special(&a), NETWORK_RESERVED);
}

/* ---- Rules ---- */

static struct rules rules;

static struct network_rule rule_of(const char *text)
{
	struct network_rule r;
	size_t at;
	const char *why = network_rule_parse(text, strlen(text), &r, &at);

	if (why)
		fail_msg("%s: %s", text, why);
	return r;
}

static void allow(struct network_policy *p, const char *text)
{
	p->allow[p->allow_count++] = rule_of(text);
}

static void deny(struct network_policy *p, const char *text)
{
	p->deny[p->deny_count++] = rule_of(text);
}

/* An operator who allows the internet, and a request for nothing. */
static int begin(void **state)
{
	(void)state;
	memset(&rules, 0, sizeof(rules));
	allow(&rules.ceiling, "*");
	return 0;
}

static enum network_verdict judge(const char *address, uint16_t port)
{
	struct network_address a = address_of(address);
	const char *name;

	return rules_judge(&rules, &a, port, &name);
}

static const char *name_of(const char *address)
{
	struct network_address a = address_of(address);
	const char *name;

	(void)rules_judge(&rules, &a, 443, &name);
	return name;
}

static void pin(const char *name, const char *address)
{
	struct network_address a = address_of(address);

	rules_pin(&rules, name, &a);
}

static void what_nobody_allows_is_denied(void **state)
{
	(void)state;
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_NO_RULE);
	allow(&rules.asked, "8.8.8.0/24:443");
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_ALLOWED);
	assert_int_equal(judge("8.8.8.8", 444), NETWORK_NO_RULE);
	assert_int_equal(judge("8.8.8.8", 0), NETWORK_NO_RULE);
	assert_int_equal(judge("8.8.9.8", 443), NETWORK_NO_RULE);
	rules.ceiling.allow_count = 0;
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_OPERATOR);
}

static void deny_goes_before_allow(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	deny(&rules.asked, "8.8.8.0/24:443");
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_DENIED);
	assert_int_equal(judge("8.8.8.8", 80), NETWORK_ALLOWED);
	assert_int_equal(judge("8.8.4.4", 443), NETWORK_ALLOWED);
}

static void the_operator_goes_before_the_request(void **state)
{
	(void)state;
	allow(&rules.asked, "8.8.8.8");
	deny(&rules.ceiling, "8.8.8.0/24:25");
	assert_int_equal(judge("8.8.8.8", 25), NETWORK_OPERATOR);
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_ALLOWED);
	deny(&rules.asked, "8.8.8.8:25");
	assert_int_equal(judge("8.8.8.8", 25), NETWORK_OPERATOR);
	rules.ceiling.allow[0] = rule_of("8.8.4.0/24");
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_OPERATOR);
	assert_int_equal(judge("8.8.4.4", 443), NETWORK_NO_RULE);
}

static void what_is_not_public_is_denied_whatever_the_request_says(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	allow(&rules.asked, "10.0.0.0/8");
	allow(&rules.asked, "169.254.169.254");
	assert_int_equal(judge("10.0.0.1", 443), NETWORK_PRIVATE);
	assert_int_equal(judge("169.254.169.254", 80), NETWORK_METADATA);
	assert_int_equal(judge("127.0.0.1", 80), NETWORK_LOOPBACK);
	assert_int_equal(judge("::1", 80), NETWORK_LOOPBACK);
	assert_int_equal(judge("64:ff9b::a00:1", 80), NETWORK_TRANSLATED);
}

static void only_a_range_of_the_operators_names_what_is_not_public(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	allow(&rules.ceiling, "db.example.org");
	pin("db.example.org", "10.0.0.1");
	assert_int_equal(judge("10.0.0.1", 443), NETWORK_PRIVATE);
	allow(&rules.ceiling, "10.0.0.0/24");
	assert_int_equal(judge("10.0.0.1", 443), NETWORK_ALLOWED);
	assert_int_equal(judge("10.0.1.1", 443), NETWORK_PRIVATE);
	/* Then the rest of the rules hold as they do for any other. */
	deny(&rules.asked, "10.0.0.1");
	assert_int_equal(judge("10.0.0.1", 443), NETWORK_DENIED);
	deny(&rules.ceiling, "10.0.0.2");
	assert_int_equal(judge("10.0.0.2", 443), NETWORK_OPERATOR);
}

static void a_range_with_a_port_names_what_is_not_public_for_that_port(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	allow(&rules.ceiling, "10.0.0.0/24:5432");
	assert_int_equal(judge("10.0.0.1", 5432), NETWORK_ALLOWED);
	assert_int_equal(judge("10.0.0.1", 22), NETWORK_PRIVATE);
	assert_int_equal(judge("10.0.0.1", 0), NETWORK_PRIVATE);
}

static void all_of_ipv6_names_none_of_ipv4(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	allow(&rules.ceiling, "::/0");
	assert_int_equal(judge("fd00::1", 443), NETWORK_ALLOWED);
	assert_int_equal(judge("10.0.0.1", 443), NETWORK_PRIVATE);
	assert_int_equal(judge("::ffff:169.254.169.254", 443), NETWORK_METADATA);
}

static struct rules_own own_of(const char *address, uint8_t bits)
{
	return (struct rules_own){ address_of(address), bits };
}

static void the_machines_own_addresses_are_not_public(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	assert_int_equal(judge("8.8.8.8", 22), NETWORK_ALLOWED);
	rules.own[0] = own_of("8.8.4.4", 128);
	rules.own[1] = own_of("8.8.8.8", 128);
	rules.own[2] = own_of("8.8.8.9", 128);
	rules.own_count = 2;
	assert_int_equal(judge("8.8.8.8", 22), NETWORK_OWN);
	assert_int_equal(judge("8.8.8.9", 22), NETWORK_ALLOWED);
	allow(&rules.ceiling, "8.8.8.8:22");
	assert_int_equal(judge("8.8.8.8", 22), NETWORK_ALLOWED);
	assert_int_equal(judge("8.8.8.8", 23), NETWORK_OWN);
}

static void nor_are_those_of_its_neighbours(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	rules.own[0] = own_of("8.8.8.8", 96 + 29); /* .8 to .15 */
	rules.own[1] = own_of("2600:1:2:3::7", 64);
	rules.own[2] = own_of("8.8.8.10", 128); /* its own in a neighbour's network */
	rules.own[3] = own_of("9.9.9.9", 128);  /* the end of a line: no neighbours */
	rules.own_count = 4;
	assert_int_equal(judge("8.8.8.7", 443), NETWORK_ALLOWED);
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_OWN);
	assert_int_equal(judge("8.8.8.9", 443), NETWORK_NEIGHBOUR);
	assert_int_equal(judge("8.8.8.10", 443), NETWORK_OWN);
	assert_int_equal(judge("8.8.8.15", 443), NETWORK_NEIGHBOUR);
	assert_int_equal(judge("8.8.8.16", 443), NETWORK_ALLOWED);
	assert_int_equal(judge("9.9.9.8", 443), NETWORK_ALLOWED);
	assert_int_equal(judge("2600:1:2:3::7", 443), NETWORK_OWN);
	assert_int_equal(judge("2600:1:2:3:ffff::", 443), NETWORK_NEIGHBOUR);
	assert_int_equal(judge("2600:1:2:4::7", 443), NETWORK_ALLOWED);
	pin("neighbour.example.org", "8.8.8.9");
	assert_int_equal(judge("8.8.8.9", 443), NETWORK_NEIGHBOUR);
	allow(&rules.ceiling, "8.8.8.8/29");
	assert_int_equal(judge("8.8.8.9", 443), NETWORK_ALLOWED);
}

/* What an interface has as its network is taken at its word: there is nothing behind a router then. */
static void a_network_without_bits_is_all_of_its_family(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	rules.own[0] = own_of("8.8.8.8", 96);
	rules.own_count = 1;
	assert_int_equal(judge("9.9.9.9", 443), NETWORK_NEIGHBOUR);
	assert_int_equal(judge("2600::1", 443), NETWORK_ALLOWED);
	rules.own[0] = own_of("2600::1", 0);
	assert_int_equal(judge("2a00::1", 443), NETWORK_NEIGHBOUR);
	assert_int_equal(judge("9.9.9.9", 443), NETWORK_ALLOWED);
}

/* ---- Names ---- */

static void no_range_of_the_operators_opens_what_is_the_machines_own(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	rules.own[0] = own_of("10.0.0.5", 96 + 24);
	rules.own[1] = own_of("fd00::5", 64);
	rules.own_count = 2;
	allow(&rules.ceiling, "10.0.0.0/8");
	allow(&rules.ceiling, "fd00::/8");
	allow(&rules.ceiling, "127.0.0.0/8");
	allow(&rules.ceiling, "0.0.0.0/0");
	allow(&rules.ceiling, "::/0");
	assert_int_equal(judge("10.0.0.6", 22), NETWORK_ALLOWED);
	assert_int_equal(judge("10.0.0.5", 22), NETWORK_OWN);
	assert_int_equal(judge("fd00::5", 22), NETWORK_OWN);
	assert_int_equal(judge("127.0.0.1", 22), NETWORK_LOOPBACK);
	assert_int_equal(judge("::1", 22), NETWORK_LOOPBACK);
	assert_int_equal(judge("0.0.0.0", 22), NETWORK_THIS_HOST);
	assert_int_equal(judge("::", 22), NETWORK_THIS_HOST);
	assert_int_equal(rules_judge_answer(&rules, &rules.own[0].address), NETWORK_OWN);
	allow(&rules.ceiling, "10.0.0.5/32:22");
	allow(&rules.ceiling, "[fd00::5/128]:22");
	assert_int_equal(judge("10.0.0.5", 22), NETWORK_ALLOWED);
	assert_int_equal(judge("10.0.0.5", 23), NETWORK_OWN);
	assert_int_equal(judge("fd00::5", 22), NETWORK_ALLOWED);
	assert_int_equal(rules_judge_answer(&rules, &rules.own[0].address), NETWORK_ALLOWED);
}

static void a_name_is_looked_up_when_both_allow_it_for_any_port(void **state)
{
	(void)state;
	assert_int_equal(rules_judge_name(&rules, "www.example.org"), NETWORK_NO_RULE);
	allow(&rules.asked, "8.8.8.8");
	assert_int_equal(rules_judge_name(&rules, "www.example.org"), NETWORK_NO_RULE);
	allow(&rules.asked, "*.example.org:443");
	assert_int_equal(rules_judge_name(&rules, "www.example.org"), NETWORK_ALLOWED);
	assert_int_equal(rules_judge_name(&rules, "example.org"), NETWORK_NO_RULE);
	rules.ceiling.allow[0] = rule_of("example.com");
	assert_int_equal(rules_judge_name(&rules, "www.example.org"), NETWORK_OPERATOR);
}

static void a_name_that_is_denied_for_all_ports_is_not_looked_up(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	deny(&rules.asked, "mail.example.org:25");
	assert_int_equal(rules_judge_name(&rules, "mail.example.org"), NETWORK_ALLOWED);
	deny(&rules.asked, "mail.example.org");
	assert_int_equal(rules_judge_name(&rules, "mail.example.org"), NETWORK_DENIED);
	deny(&rules.ceiling, "*.example.org");
	assert_int_equal(rules_judge_name(&rules, "mail.example.org"), NETWORK_OPERATOR);
	assert_int_equal(rules_judge_name(&rules, "example.org"), NETWORK_ALLOWED);
}

static void a_name_speaks_of_the_addresses_that_it_led_to(void **state)
{
	(void)state;
	allow(&rules.asked, "*.example.org:443");
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_NO_RULE);
	pin("www.example.org", "8.8.8.8");
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_ALLOWED);
	assert_int_equal(judge("8.8.8.8", 80), NETWORK_NO_RULE);
	assert_int_equal(judge("8.8.8.9", 443), NETWORK_NO_RULE);
	pin("example.com", "8.8.8.9");
	assert_int_equal(judge("8.8.8.9", 443), NETWORK_NO_RULE);
	rules.ceiling.allow[0] = rule_of("example.com");
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_OPERATOR);
}

static void a_name_that_is_denied_denies_its_addresses(void **state)
{
	(void)state;
	allow(&rules.asked, "*");
	deny(&rules.asked, "mail.example.org:25");
	pin("mail.example.org", "8.8.8.8");
	pin("www.example.org", "8.8.8.8");
	assert_int_equal(judge("8.8.8.8", 25), NETWORK_DENIED);
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_ALLOWED);
}

static void an_answer_may_not_lead_where_no_run_goes(void **state)
{
	struct network_address here = address_of("10.0.0.1"), there = address_of("8.8.8.8");

	(void)state;
	assert_int_equal(rules_judge_answer(&rules, &here), NETWORK_PRIVATE);
	assert_int_equal(rules_judge_answer(&rules, &there), NETWORK_ALLOWED);
	rules.own[0] = (struct rules_own){ there, 128 };
	rules.own_count = 1;
	assert_int_equal(rules_judge_answer(&rules, &there), NETWORK_OWN);
	allow(&rules.ceiling, "10.0.0.0/24:5432"); /* the port is not known yet */
	assert_int_equal(rules_judge_answer(&rules, &here), NETWORK_ALLOWED);
}

static void the_name_that_is_told_was_looked_up_last(void **state)
{
	(void)state;
	assert_string_equal(name_of("8.8.8.8"), "");
	pin("a.example.org", "8.8.8.8");
	pin("b.example.org", "8.8.8.8");
	pin("c.example.org", "8.8.4.4");
	assert_string_equal(name_of("8.8.8.8"), "b.example.org");
	pin("a.example.org", "8.8.8.8");
	assert_string_equal(name_of("8.8.8.8"), "a.example.org");
	assert_string_equal(name_of("10.0.0.1"), "");
}

static void the_name_that_was_not_looked_up_for_longest_is_forgotten(void **state)
{
	char name[64];

	(void)state;
	allow(&rules.asked, "*.example.org");
	pin("first.example.org", "8.8.8.8");
	pin("second.example.org", "8.8.4.4");
	for (unsigned i = 2; i < RULES_PINS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "n%u.example.org", i);
		pin(name, "9.9.9.9");
	}
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_ALLOWED);
	pin("first.example.org", "8.8.8.8"); /* takes no second place */
	assert_int_equal(judge("8.8.4.4", 443), NETWORK_ALLOWED);
	pin("last.example.org", "1.1.1.1");
	assert_int_equal(judge("8.8.4.4", 443), NETWORK_NO_RULE);
	assert_int_equal(judge("8.8.8.8", 443), NETWORK_ALLOWED);
	assert_int_equal(judge("1.1.1.1", 443), NETWORK_ALLOWED);
	assert_string_equal(name_of("8.8.4.4"), "");
}

/* ---- Names that are spoken ---- */

static bool needs_name(const char *address, uint16_t port)
{
	struct network_address a = address_of(address);

	return rules_need_name(&rules, &a, port);
}

static bool allows_spoken(const char *name)
{
	struct network_address a = address_of("8.8.8.8");

	return rules_allow_spoken(&rules, &a, 443, name);
}

static void a_name_is_needed_where_no_rule_allows_the_address(void **state)
{
	(void)state;
	allow(&rules.asked, "example.org");
	assert_true(needs_name("8.8.8.8", 443));
	allow(&rules.asked, "8.8.8.0/24:443");
	assert_false(needs_name("8.8.8.8", 443));
	assert_true(needs_name("8.8.8.8", 80));
	assert_true(needs_name("8.8.4.4", 443));
	rules.ceiling.allow[0] = rule_of("example.org");
	assert_true(needs_name("8.8.8.8", 443));
	allow(&rules.ceiling, "8.8.8.8");
	assert_false(needs_name("8.8.8.8", 443));
}

static void a_name_is_spoken_where_both_allow_it(void **state)
{
	(void)state;
	allow(&rules.asked, "*.example.org:443");
	allow(&rules.asked, "example.com:80");
	assert_true(allows_spoken("www.example.org"));
	assert_false(allows_spoken("example.org"));
	assert_false(allows_spoken("example.com"));
	deny(&rules.asked, "bad.example.org:443");
	assert_false(allows_spoken("bad.example.org"));
	rules.ceiling.allow[0] = rule_of("a.example.org");
	assert_true(allows_spoken("a.example.org"));
	assert_false(allows_spoken("www.example.org"));
	allow(&rules.ceiling, "8.8.8.8"); /* whatever it is called there */
	assert_true(allows_spoken("www.example.org"));
	deny(&rules.ceiling, "www.example.org");
	assert_false(allows_spoken("www.example.org"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_address_is_what_the_registries_say),
		cmocka_unit_test(metadata_goes_before_the_range_that_it_is_in),
		cmocka_unit_test(forms_that_hold_an_address_of_ipv4_are_no_way_around),
		cmocka_unit_test(a_mapped_address_is_what_it_maps),
		cmocka_unit_test_setup(what_nobody_allows_is_denied, begin),
		cmocka_unit_test_setup(deny_goes_before_allow, begin),
		cmocka_unit_test_setup(the_operator_goes_before_the_request, begin),
		cmocka_unit_test_setup(
			what_is_not_public_is_denied_whatever_the_request_says, begin),
		cmocka_unit_test_setup(
			only_a_range_of_the_operators_names_what_is_not_public, begin),
		cmocka_unit_test_setup(
			a_range_with_a_port_names_what_is_not_public_for_that_port, begin),
		cmocka_unit_test_setup(all_of_ipv6_names_none_of_ipv4, begin),
		cmocka_unit_test_setup(the_machines_own_addresses_are_not_public, begin),
		cmocka_unit_test_setup(nor_are_those_of_its_neighbours, begin),
		cmocka_unit_test_setup(a_network_without_bits_is_all_of_its_family, begin),
		cmocka_unit_test_setup(
			no_range_of_the_operators_opens_what_is_the_machines_own, begin),
		cmocka_unit_test_setup(a_name_is_looked_up_when_both_allow_it_for_any_port, begin),
		cmocka_unit_test_setup(a_name_that_is_denied_for_all_ports_is_not_looked_up, begin),
		cmocka_unit_test_setup(a_name_speaks_of_the_addresses_that_it_led_to, begin),
		cmocka_unit_test_setup(a_name_that_is_denied_denies_its_addresses, begin),
		cmocka_unit_test_setup(an_answer_may_not_lead_where_no_run_goes, begin),
		cmocka_unit_test_setup(the_name_that_is_told_was_looked_up_last, begin),
		cmocka_unit_test_setup(
			the_name_that_was_not_looked_up_for_longest_is_forgotten, begin),
		cmocka_unit_test_setup(a_name_is_needed_where_no_rule_allows_the_address, begin),
		cmocka_unit_test_setup(a_name_is_spoken_where_both_allow_it, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
