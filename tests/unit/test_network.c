#include "unit.h"

#include "api/network.h"
#include "base/check.h"

#include <stdio.h>
#include <string.h>

static const char *parse(const char *text, struct network_rule *ret, size_t *ret_at)
{
	return network_rule_parse(text, strlen(text), ret, ret_at);
}

static struct network_rule rule_of(const char *text)
{
	struct network_rule r;
	size_t at;
	const char *why = parse(text, &r, &at);

	if (why)
		fail_msg("%s, byte %zu: %s", text, at, why);
	return r;
}

static struct network_address address_of(const char *text)
{
	struct network_address a;
	size_t at;

	assert_null(network_address_parse(text, strlen(text), &a, &at));
	return a;
}

static bool speaks_of(const char *rule, const char *address, uint16_t port)
{
	struct network_rule r = rule_of(rule);
	struct network_address a = address_of(address);

	return network_rule_has_address(&r, &a, port);
}

static bool speaks_of_name(const char *rule, const char *name, uint16_t port)
{
	struct network_rule r = rule_of(rule);

	return network_rule_has_name(&r, name, port);
}

static void a_rule_is_told_as_it_can_be_read(void **state)
{
	static const char *const rows[][2] = { { "*", "*" }, { "*:53", "*:53" },
		{ "Example.ORG", "example.org" }, { "*.example.org:80-81", "*.example.org:80-81" },
		{ "7-11", "7-11" }, /* a name: no number, for all its digits */
		{ "203.0.113.7/32", "203.0.113.7" }, { "0.0.0.0/0:1-65535", "0.0.0.0/0:1-65535" },
		{ "203.0.113.0/24:443", "203.0.113.0/24:443" }, { "::/0", "::/0" },
		{ "[2001:db8::1]", "2001:db8::1" }, { "[2001:DB8::/32]:53", "[2001:db8::/32]:53" },
		{ "[::]:1", "[::]:1" }, { "::/64", "::/64" } };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct network_rule r = rule_of(rows[i][0]), again;
		char text[NETWORK_RULE_TEXT_MAX + 1];

		assert_string_equal(network_rule_format(&r, text), rows[i][1]);
		again = rule_of(text);
		assert_memory_equal(&r, &again, sizeof(r));
	}
}

static void an_address_or_a_range_is_about_what_is_in_it(void **state)
{
	(void)state;
	assert_true(speaks_of("203.0.113.7", "203.0.113.7", 80));
	assert_false(speaks_of("203.0.113.7", "203.0.113.6", 80));
	assert_true(speaks_of("203.0.112.0/23", "203.0.113.255", 80));
	assert_false(speaks_of("203.0.112.0/23", "203.0.114.0", 80));
	assert_true(speaks_of("0.0.0.0/0", "255.255.255.255", 0));
	assert_false(speaks_of("0.0.0.0/0", "2001:db8::1", 0));
	assert_true(speaks_of("::/0", "2001:db8::1", 0));
	assert_false(speaks_of("::/0", "192.0.2.1", 0));
	assert_false(speaks_of("::/80", "192.0.2.1", 0));
	assert_true(speaks_of("2001:db8::/33", "2001:db8:7fff::1", 0));
	assert_false(speaks_of("2001:db8::/33", "2001:db8:8000::1", 0));
	assert_true(speaks_of("*", "2001:db8::1", 0));
	assert_true(speaks_of("*", "192.0.2.1", 65535));
}

static void ports_are_one_or_from_one_to_another_or_any(void **state)
{
	(void)state;
	assert_true(speaks_of("203.0.113.0/24:80", "203.0.113.1", 80));
	assert_false(speaks_of("203.0.113.0/24:80", "203.0.113.1", 81));
	assert_false(speaks_of("203.0.113.0/24:80", "203.0.113.1", 0));
	assert_true(speaks_of("[2001:db8::/32]:8000-8010", "2001:db8::1", 8000));
	assert_true(speaks_of("[2001:db8::/32]:8000-8010", "2001:db8::1", 8010));
	assert_false(speaks_of("[2001:db8::/32]:8000-8010", "2001:db8::1", 8011));
	assert_true(speaks_of("*:443", "203.0.113.1", 443));
	assert_false(speaks_of("*:443", "203.0.113.1", 80));
	assert_true(speaks_of("[2001:db8::1]", "2001:db8::1", 0));
}

static void for_any_port_a_rule_speaks_of_what_it_does_for_one(void **state)
{
	struct network_rule r = rule_of("203.0.113.0/24:80");
	struct network_address in = address_of("203.0.113.1"), out = address_of("203.0.114.1");

	(void)state;
	assert_true(network_rule_has_address_somewhere(&r, &in));
	assert_false(network_rule_has_address_somewhere(&r, &out));
	r = rule_of("example.org:80");
	assert_true(network_rule_has_name_somewhere(&r, "example.org"));
	assert_false(network_rule_has_name_somewhere(&r, "example.com"));
	assert_false(network_rule_has_address_somewhere(&r, &in));
}

static void a_name_is_itself_and_a_star_what_is_below_it(void **state)
{
	(void)state;
	assert_true(speaks_of_name("Example.ORG", "example.org", 1));
	assert_false(speaks_of_name("example.org", "www.example.org", 1));
	assert_true(speaks_of_name("*.example.org:443", "www.example.org", 443));
	assert_true(speaks_of_name("*.example.org:443", "a.b.example.org", 443));
	assert_false(speaks_of_name("*.example.org:443", "www.example.org", 80));
	assert_false(speaks_of_name("*.example.org", "example.org", 1));
	assert_false(speaks_of_name("*.example.org", "badexample.org", 1));
	assert_false(speaks_of_name("*.example.org", ".example.org", 1));
	assert_true(speaks_of_name("*", "anything", 1));
	assert_false(speaks_of_name("203.0.113.7", "203.0.113.7", 1));
	assert_false(speaks_of("example.org", "203.0.113.7", 1));
}

static void what_is_wrong_is_said_with_its_place(void **state)
{
	static const struct {
		const char *text;
		size_t at;
		const char *why;
	} wrong[] = {
		{ "", 0, "is empty" },
		{ "https://example.org/", 5, "is a URL" },
		{ "example.org:", 12, "port that is none" },
		{ "example.org:0", 12, "port that is none" },
		{ "example.org:65536", 12, "port that is none" },
		{ "example.org:080", 12, "port that is none" },
		{ "example.org:http", 12, "port that is none" },
		{ "example.org:90-80", 12, "end before they begin" },
		{ "example.org:80/x", 14, "more behind its end" },
		{ "example.org.", 11, "ends with a dot" },
		{ "exa mple.org", 3, "may have letters" },
		{ "example.org/path", 11, "may have letters" },
		{ "exämple.org", 2, "not ASCII" },
		{ "example..org", 8, "empty part" },
		{ ".example.org", 0, "empty part" },
		{ "*example.org", 1, "write *.example.org" },
		{ "www.*.org", 4, "may have letters" },
		{ "*.", 2, "empty part" },
		{ "-a.org", 0, "\"-\" at an end" },
		{ "a-.org", 1, "\"-\" at an end" },
		{ "example.123", 8, "ends with a number" },
		{ "1.2.3", 5, "no IPv4 address" },
		{ "1.2.3.4.5", 7, "no IPv4 address" },
		{ "1.2.3.256", 6, "no IPv4 address" },
		{ "1.2.3.04", 6, "no IPv4 address" },
		{ "10.0.0.0/33", 9, "0 to 32" },
		{ "10.0.0.1/8", 0, "bits behind its prefix" },
		{ "10.0.0.0/8 ", 10, "more behind its end" },
		{ "2001:db8::/129", 11, "0 to 128" },
		{ "2001:db8::1/32", 0, "bits behind its prefix" },
		{ "2001:db8:::1", 0, "no IPv6 address" },
		{ "[2001:db8::1", 12, "no \"]\"" },
		{ "[example.org]", 1, "no IPv6 address" },
		{ "::ffff:10.0.0.1", 0, "in the form of IPv6" },
		{ "fe80::1%eth0", 7, "more behind its address" },
	};
	struct network_rule r;
	size_t at;

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(wrong); i++) {
		const char *why = parse(wrong[i].text, &r, &at);

		if (!why || !strstr(why, wrong[i].why) || at != wrong[i].at)
			fail_msg("\"%s\": byte %zu, %s", wrong[i].text, at, why ? why : "taken");
	}
}

static void the_longest_name_is_taken_and_one_byte_more_is_not(void **state)
{
	char name[NETWORK_NAME_MAX + 2];
	struct network_rule r;
	size_t at;

	(void)state;
	for (size_t i = 0; i < sizeof(name); i++)
		name[i] = i % (NETWORK_LABEL_MAX + 1) == NETWORK_LABEL_MAX ? '.' : 'a';
	assert_null(network_rule_parse(name, NETWORK_NAME_MAX, &r, &at));
	assert_string_equal(strrchr(r.name, '.') + 1,
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	name[NETWORK_NAME_MAX] = 'a';
	assert_string_equal(
		network_rule_parse(name, NETWORK_NAME_MAX + 1, &r, &at), "has more than 253 bytes");
	memset(name, 'a', NETWORK_LABEL_MAX + 1);
	assert_null(network_rule_parse(name, NETWORK_LABEL_MAX, &r, &at));
	assert_string_equal(network_rule_parse(name, NETWORK_LABEL_MAX + 1, &r, &at),
		"has a part of more than 63 bytes");
	assert_int_equal(at, NETWORK_LABEL_MAX);
}

static struct network_policy sound(void)
{
	static struct network_policy p;

	memset(&p, 0, sizeof(p));
	p.allow_count = 2;
	p.deny_count = 1;
	p.allow[0] = rule_of("*.example.org:443");
	p.allow[1] = rule_of("*");
	p.deny[0] = rule_of("10.0.0.0/8");
	return p;
}

static void a_policy_that_is_sound_can_be_obeyed(void **state)
{
	struct network_policy p = sound();

	(void)state;
	assert_null(network_policy_fault(&p));
	p.allow_count = NETWORK_RULES_MAX;
	p.deny_count = 0;
	for (unsigned i = 0; i < NETWORK_RULES_MAX; i++)
		p.allow[i] = rule_of("[2001:db8::]:1-2");
	assert_null(network_policy_fault(&p));
}

static void what_no_parser_would_make_is_refused(void **state)
{
	struct network_policy p;

	(void)state;
#define REFUSED(change, rule) \
	p = sound();          \
	change;               \
	assert_string_equal(network_policy_fault(&p), rule)
	REFUSED(p.allow_count = NETWORK_RULES_MAX + 1, "more rules than there is room for");
	REFUSED(p.deny_count = NETWORK_RULES_MAX + 1, "more rules than there is room for");
	REFUSED(p.reserved = 1, "a reserved field that is not 0");
	REFUSED(p.deny[0].match = NETWORK_MATCH_MAX, "a rule of no kind");
	REFUSED(p.allow[0].port_min = 444, "ports that end before they begin");
	REFUSED(p.deny[0].prefix = 129, "a prefix of more than 128 bits");
	REFUSED(p.deny[0].address.bytes[15] = 1, "an address with bits behind its prefix");
	REFUSED(p.deny[0].name[0] = 'a', "a range with a name");
	REFUSED(p.allow[1].name[0] = 'a', "a rule for all that names something");
	REFUSED(p.allow[1].prefix = 1, "a rule for all that names something");
	REFUSED(p.allow[1].address.bytes[0] = 1, "a rule for all that names something");
	REFUSED(p.allow[0].name[0] = 'E', "a name with capital letters");
	REFUSED(p.allow[0].name[0] = '\0', "has an empty part between its dots");
	REFUSED(p.allow[0].name[200] = 'x', "bytes behind a name");
	REFUSED(memset(p.allow[0].name, 'a', sizeof(p.allow[0].name)),
		"has a part of more than 63 bytes");
	REFUSED(p.allow[0].prefix = 1, "a name with a range");
	REFUSED(p.allow[0].address.bytes[0] = 1, "a name with a range");
#undef REFUSED
}

/* ---- Records ---- */

static struct network_record record;

/* A connection and a look-up, as a gate writes them. */
static void begin_record(void)
{
	memset(&record, 0, sizeof(record));
	record.magic = NETWORK_RECORD_MAGIC;
	record.count = 2;
	record.lines[0] = (struct network_connection){ .address = address_of("203.0.113.7"),
		.port = 443,
		.protocol = NETWORK_TCP,
		.times = 1,
		.name = "www.example.org" };
	record.lines[1] = (struct network_connection){ .protocol = NETWORK_DNS,
		.verdict = NETWORK_UNANSWERED,
		.times = 1,
		.name = "example.org" };
}

static void a_record_that_is_sound_can_be_shown(void **state)
{
	(void)state;
	begin_record();
	assert_null(network_record_fault(&record));
	record.lines[0].name[0] = '\0'; /* nothing was looked up for it */
	assert_null(network_record_fault(&record));
	record.count = 0;
	assert_null(network_record_fault(&record));
	memset(&record, 0, sizeof(record)); /* of a gate that did not come to stand */
	assert_null(network_record_fault(&record));
	begin_record();
	for (unsigned i = 2; i < NETWORK_RECORD_MAX; i++)
		record.lines[i] = record.lines[i % 2];
	record.count = NETWORK_RECORD_MAX;
	assert_null(network_record_fault(&record));
}

static void a_record_that_no_gate_would_write_is_refused(void **state)
{
	(void)state;
#define REFUSED(change, rule) \
	begin_record();       \
	change;               \
	assert_string_equal(network_record_fault(&record), rule)
	REFUSED(record.magic ^= 1, "it is none");
	REFUSED(record.count = NETWORK_RECORD_MAX + 1, "more lines than there is room for");
	REFUSED(record.count = UINT32_MAX, "more lines than there is room for");
	REFUSED(record.lines[1].protocol = NETWORK_PROTOCOL_MAX, "a line of no kind");
	REFUSED(record.lines[1].verdict = NETWORK_VERDICT_MAX, "a line of no kind");
	REFUSED(memset(record.lines[0].name, 'a', sizeof(record.lines[0].name)),
		"a name without its end");
	REFUSED(record.lines[0].begin_us = UINT64_MAX, "a number that nothing counts to");
	REFUSED(record.lines[0].bytes_in = UINT64_MAX, "a number that nothing counts to");
	REFUSED(record.lines[1].bytes_out = UINT64_C(1) << 63, "a number that nothing counts to");
	REFUSED(record.left_out = UINT64_MAX, "a number that nothing counts to");
	REFUSED(record.connections = UINT64_MAX, "a number that nothing counts to");
	REFUSED(record.refused = UINT64_MAX, "a number that nothing counts to");
	REFUSED(record.bytes_in = UINT64_MAX, "a number that nothing counts to");
	REFUSED(record.bytes_out = UINT64_C(1) << 63, "a number that nothing counts to");
	REFUSED(record.lines[0].name[3] = '\n', "a name that is none");
	REFUSED(record.lines[0].name[3] = (char)0xc3, "a name that is none");
	REFUSED(record.lines[1].name[0] = '.', "a name that is none");
#undef REFUSED
}

/* A line that the count leaves out is not looked at: it may be half written. */
static void lines_behind_the_count_are_nobodys(void **state)
{
	(void)state;
	begin_record();
	memset(&record.lines[1], 0xff, sizeof(record.lines[1]));
	assert_non_null(network_record_fault(&record));
	record.count = 1;
	assert_null(network_record_fault(&record));
}

static void each_verdict_and_protocol_has_its_words(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NETWORK_VERDICT_MAX; i++)
		for (unsigned k = 0; k < i; k++)
			assert_string_not_equal(network_verdict_text((enum network_verdict)i),
				network_verdict_text((enum network_verdict)k));
	assert_string_equal(network_verdict_text(NETWORK_ALLOWED), "allowed");
	assert_string_equal(network_verdict_text(NETWORK_UNANSWERED), "no resolver has answered");
	assert_string_equal(network_protocol_name(NETWORK_TCP), "tcp");
	assert_string_equal(network_protocol_name(NETWORK_UDP), "udp");
	assert_string_equal(network_protocol_name(NETWORK_ICMP), "icmp");
	assert_string_equal(network_protocol_name(NETWORK_DNS), "dns");
	assert_string_equal(network_protocol_name(NETWORK_OTHER), "other");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rule_is_told_as_it_can_be_read),
		cmocka_unit_test(an_address_or_a_range_is_about_what_is_in_it),
		cmocka_unit_test(ports_are_one_or_from_one_to_another_or_any),
		cmocka_unit_test(for_any_port_a_rule_speaks_of_what_it_does_for_one),
		cmocka_unit_test(a_name_is_itself_and_a_star_what_is_below_it),
		cmocka_unit_test(what_is_wrong_is_said_with_its_place),
		cmocka_unit_test(the_longest_name_is_taken_and_one_byte_more_is_not),
		cmocka_unit_test(a_policy_that_is_sound_can_be_obeyed),
		cmocka_unit_test(what_no_parser_would_make_is_refused),
		cmocka_unit_test(a_record_that_is_sound_can_be_shown),
		cmocka_unit_test(a_record_that_no_gate_would_write_is_refused),
		cmocka_unit_test(lines_behind_the_count_are_nobodys),
		cmocka_unit_test(each_verdict_and_protocol_has_its_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
