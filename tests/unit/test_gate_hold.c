/* Segments of connections that a name has opened: what goes on is what was judged. The cell and the stack
 * behind are the test. */
#include "unit.h"

#include "api/network.h"
#include "base/check.h"
#include "edge/gate/hold.h"
#include "hello_play.h"

#include <stdlib.h>
#include <string.h>

#define FIRST     0xfffffff0u /* the numbers of a connection's bytes come round */
#define WINDOW    30000u
#define SAID      0x1000u /* what the cell has received */
#define GET(host) "GET / HTTP/1.1\r\nHost: " host "\r\n\r\n"

static struct rules rules;
static struct flows flows;
static struct holds *holds;
static struct flow *flow;

static struct seen {
	uint8_t bytes[100000]; /* that the stack has had, in their order */
	size_t len;
	unsigned packets, fins, resets, urgent; /* ...and what packets */
	uint32_t next;                          /* the byte that it expects */
	struct packet last;
	unsigned answers; /* to the cell */
	struct packet answer;
} seen;

/* ---- Both sides ---- */

/* As the stack does: bytes count from where the last ones have ended. */
static void on_pass(void *ctx, struct flow *f, const struct packet *p)
{
	assert_ptr_equal(ctx, &seen);
	assert_ptr_equal(flows_find(&flows, p, true), f);
	seen.packets++;
	seen.resets += !!(p->flags & PACKET_TCP_RST);
	seen.fins += !!(p->flags & PACKET_TCP_FIN);
	seen.urgent += !!(p->flags & PACKET_TCP_URG);
	assert_int_equal(p->sequence, seen.next);
	memcpy(seen.bytes + seen.len, p->payload, p->payload_len);
	seen.len += p->payload_len;
	seen.next += (uint32_t)p->payload_len + !!(p->flags & PACKET_TCP_FIN);
	seen.last = *p;
	flows_pass(&flows, f, p, true, 1);
}

static void on_give(void *ctx, const uint8_t *packet, size_t len)
{
	assert_ptr_equal(ctx, &seen);
	assert_null(packet_read(packet, len, &seen.answer));
	assert_ptr_equal(flows_find(&flows, &seen.answer, false), flow);
	assert_int_equal(seen.answer.sequence, SAID);
	/* What the cell learns stands in the record first. */
	if (seen.answer.flags & PACKET_TCP_RST)
		assert_int_not_equal(flows.record.lines[flow->line].verdict, NETWORK_ALLOWED);
	seen.answers++;
}

static struct network_address four(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	return (struct network_address){ { [10] = 0xff, [11] = 0xff, a, b, c, d } };
}

static struct packet packet_of(uint16_t cell_port, uint8_t flags, uint32_t at, const char *text)
{
	return (struct packet){ .kind = PACKET_TCP,
		.ipv4 = true,
		.source = four(198, 18, 0, 2),
		.target = four(8, 8, 8, 8),
		.source_port = cell_port,
		.target_port = 80,
		.sequence = FIRST + at,
		.acknowledged = SAID,
		.flags = flags,
		.window = 1000,
		.payload = (const uint8_t *)text,
		.payload_len = strlen(text) };
}

static void see(uint32_t acknowledged, uint16_t window)
{
	struct packet p = packet_of(40000, PACKET_TCP_ACK, 0, "");

	p.acknowledged = FIRST + acknowledged;
	p.window = window;
	hold_see(holds, flow, &p);
}

static struct flow *begin_flow(uint16_t cell_port)
{
	struct packet p = packet_of(cell_port, PACKET_TCP_SYN, 0, "");

	flow = flows_begin(&flows, &p, "example.org", 1);
	assert_non_null(flow);
	hold_begin(holds, flow, &p);
	seen.next = FIRST + 1;
	seen.len = 0;
	see(1, WINDOW);
	return flow;
}

static void allow(const char *text)
{
	size_t at;
	struct network_policy *p = &rules.asked;

	assert_null(network_rule_parse(text, strlen(text), &p->allow[p->allow_count++], &at));
}

static int begin(void **state)
{
	static const struct network_rule all = { .port_max = UINT16_MAX };
	const struct network_address there = four(8, 8, 8, 8);

	(void)state;
	memset(&rules, 0, sizeof(rules));
	rules.ceiling.allow_count = 1;
	rules.ceiling.allow[0] = all;
	allow("example.org");
	rules_pin(&rules, "example.org", &there);
	flows_init(&flows, 0);
	memset(&seen, 0, sizeof(seen));
	holds = calloc(1, sizeof(*holds));
	assert_non_null(holds);
	holds->rules = &rules;
	holds->flows = &flows;
	holds->pass = on_pass;
	holds->give = on_give;
	holds->ctx = &seen;
	(void)begin_flow(40000);
	return 0;
}

static int end(void **state)
{
	(void)state;
	free(holds);
	return 0;
}

static bool take_flags(uint8_t flags, uint32_t at, const char *text)
{
	struct packet p = packet_of(flow->cell_port, flags, at, text);

	return hold_take(holds, flow, &p);
}

/* Byte number `at` of the stream, from 1, and those behind it. */
static void take(uint32_t at, const char *text)
{
	assert_true(take_flags(PACKET_TCP_ACK, at, text));
}

static void assert_passed(const char *text)
{
	assert_int_equal(seen.len, strlen(text));
	assert_memory_equal(seen.bytes, text, seen.len);
}

static void assert_answer(uint8_t flags, uint32_t at)
{
	assert_int_equal(seen.answer.flags, flags);
	assert_int_equal(seen.answer.acknowledged, FIRST + at);
}

static void assert_refused(enum network_verdict why, const char *name)
{
	const struct network_connection *line = &flows.record.lines[flow->line];

	assert_answer(PACKET_TCP_RST | PACKET_TCP_ACK, seen.answer.acknowledged - FIRST);
	assert_int_equal(seen.resets, 1);
	assert_true(flow->over);
	assert_int_equal(flows.open, 0);
	assert_int_equal(flows.record.refused, 1);
	assert_int_equal(line->verdict, why);
	assert_string_equal(line->name, name);
}

/* ---- Which connections ---- */

static void only_connections_that_a_name_has_opened_are_held(void **state)
{
	struct packet p = packet_of(40001, PACKET_TCP_SYN, 0, "");

	(void)state;
	allow("8.8.8.8:80");
	flow = flows_begin(&flows, &p, "", 1);
	hold_begin(holds, flow, &p);
	assert_false(take_flags(PACKET_TCP_ACK, 1, GET("other.org")));
	p.kind = PACKET_UDP;
	p.flags = 0;
	rules.asked.allow_count = 1;
	flow = flows_begin(&flows, &p, "", 1);
	hold_begin(holds, flow, &p);
	assert_false(hold_take(holds, flow, &p));
	assert_int_equal(seen.packets, 0);
}

static void a_beginning_passes_as_it_is(void **state)
{
	(void)state;
	assert_false(take_flags(PACKET_TCP_SYN, 0, ""));
	assert_false(take_flags(PACKET_TCP_SYN, 0, "")); /* once more */
	assert_int_equal(seen.packets, 0);
}

/* TCP's Fast Open: the kernel sends it again without. */
static void data_in_a_beginning_are_dropped(void **state)
{
	(void)state;
	assert_true(take_flags(PACKET_TCP_SYN, 0, GET("other.org")));
	assert_int_equal(seen.packets + seen.answers, 0);
}

/* ---- In order ---- */

static void what_is_judged_passes_in_one(void **state)
{
	(void)state;
	take(1, GET("example.org"));
	assert_passed(GET("example.org"));
	assert_int_equal(seen.packets, 1);
	assert_int_equal(seen.answers, 0); /* the stack's */
	assert_int_equal(seen.last.acknowledged, SAID);
	assert_int_equal(seen.last.window, 1000);
}

static void what_is_not_whole_waits_and_is_acknowledged(void **state)
{
	static const char text[] = GET("example.org");
	const uint32_t len = sizeof(text) - 1;
	char byte[2] = "";

	(void)state;
	for (uint32_t i = 0; i < len; i++) {
		byte[0] = text[i];
		take(1 + i, byte);
		assert_int_equal(seen.len, i < 3 ? i + 1 : i < len - 1 ? 3 : len);
		assert_int_equal(seen.packets, i + 1); /* what the cell has got goes on */
		if (i >= 3 && i < len - 1) {
			assert_answer(PACKET_TCP_ACK, i + 2);
			assert_int_equal(seen.answer.window, WINDOW - i - 1);
			assert_int_equal(seen.answers, i - 2);
		}
	}
	assert_passed(text);
}

static void only_what_is_next_is_taken(void **state)
{
	(void)state;
	take(3, "T");
	assert_passed("");
	assert_answer(PACKET_TCP_ACK, 1);
	take(1, "GE");
	take(1, "GEX"); /* overlaps */
	take(2, "E");
	assert_answer(PACKET_TCP_ACK, 3);
	take(3, "T / HTTP/1.1\r\n");
	take(5, "X");
	take(17, "Host: example.org\r\n\r\n");
	assert_passed(GET("example.org"));
	take(17, "Host: other.org\r\n\r\n"); /* again, and otherwise */
	assert_answer(PACKET_TCP_ACK, 1 + strlen(GET("example.org")));
	assert_passed(GET("example.org"));
}

/* TCP's keepalive, and a kernel that waits for room: the byte before the next, and nothing of it. */
static void a_probe_is_answered(void **state)
{
	(void)state;
	take(1, GET("example.org"));
	take(1 + strlen(GET("example.org")), "");
	assert_int_equal(seen.answers, 0); /* an acknowledgement needs none */
	take(strlen(GET("example.org")), "");
	assert_int_equal(seen.answers, 1);
	assert_answer(PACKET_TCP_ACK, 1 + strlen(GET("example.org")));
	assert_int_equal(seen.packets, 3);
}

static void no_more_is_taken_than_the_stack_takes(void **state)
{
	(void)state;
	see(1, 20);
	assert_int_equal(
		holds->holds[flow - flows.flows].edge, FIRST + 1 + WINDOW); /* no way back */
	holds->holds[flow - flows.flows].edge = FIRST + 1 + 20;
	take(1, GET("example.org"));
	assert_passed("");
	assert_answer(PACKET_TCP_ACK, 1);
	assert_int_equal(seen.answer.window, 20);
	see(1, 500);
	take(1, GET("example.org"));
	assert_passed(GET("example.org"));
}

static void a_body_passes_as_it_comes(void **state)
{
	static char piece[1401];
	uint32_t at;

	(void)state;
	memset(piece, 'x', 1400);
	take(1, "POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 28000\r\n\r\n");
	at = 1 + (uint32_t)seen.len;
	for (unsigned i = 0; i < 20; i++) {
		take(at, piece);
		at += 1400;
		assert_int_equal(seen.len, at - 1);
		see(at, WINDOW);
	}
	assert_int_equal(seen.answers, 0);
	take(at, GET("example.org"));
	assert_int_equal(seen.len, at - 1 + strlen(GET("example.org")));
}

/* More than a packet takes. */
static void what_was_held_goes_in_packets_of_their_size(void **state)
{
	struct hello_play h = { .name = "example.org", .padding = 9000 };
	static uint8_t hello[HELLO_PLAY_MAX];
	size_t len = hello_play_make(&h, hello);
	struct packet p = packet_of(40000, PACKET_TCP_ACK, 1, "");

	(void)state;
	for (size_t at = 0; at < len; at += 1000) {
		p.sequence = FIRST + 1 + (uint32_t)at;
		p.payload = hello + at;
		p.payload_len = len - at < 1000 ? len - at : 1000;
		assert_int_equal(seen.len, 0);
		assert_true(hold_take(holds, flow, &p));
	}
	assert_int_equal(seen.len, len);
	assert_memory_equal(seen.bytes, hello, len);
	assert_int_equal(seen.packets, len / 1000 + 1); /* acknowledgements, and all of it in one */
}

static void what_is_more_than_a_packet_takes_goes_in_two(void **state)
{
	static char text[28001];
	static const char head[] =
		"POST / HTTP/1.1\r\nHost: example.org\r\nContent-Length: 16000\r\nX: ";

	(void)state;
	memset(text, 'x', 28000);
	memcpy(text, head, sizeof(head) - 1);
	text[12000] = '\0';
	take(1, text);
	text[12000] = '\r';
	memcpy(text + 12001, "\n\r\n", 3);
	take(12001, text + 12000);
	assert_int_equal(seen.len, 28000);
	assert_memory_equal(seen.bytes, text, 28000);
	assert_int_equal(seen.packets, 1 + 2); /* its first word, and the rest */
}

static void urgent_data_are_what_they_would_be_otherwise(void **state)
{
	(void)state;
	assert_true(take_flags(PACKET_TCP_ACK | PACKET_TCP_URG, 1, ""));
	assert_true(take_flags(PACKET_TCP_ACK | PACKET_TCP_URG, 1, GET("example.org")));
	assert_passed(GET("example.org"));
	assert_int_equal(seen.urgent, 0);
}

/* ---- What is free ---- */

static void what_has_no_names_passes_as_it_is_from_then_on(void **state)
{
	(void)state;
	take(1, "SSH-2.0-x\r\n");
	assert_passed("SSH-2.0-x\r\n");
	assert_false(take_flags(PACKET_TCP_ACK, 5, "anything"));
	assert_false(take_flags(PACKET_TCP_ACK | PACKET_TCP_URG, 50, "anything"));
}

/* ---- What is refused ---- */

static void what_is_for_another_name_resets_both_sides(void **state)
{
	(void)state;
	take(1, GET("other.org"));
	assert_passed("");
	assert_refused(NETWORK_OTHER_NAME, "other.org");
	assert_answer(PACKET_TCP_RST | PACKET_TCP_ACK, 1 + strlen(GET("other.org")));
}

static void a_second_request_for_another_name_does_so_too(void **state)
{
	(void)state;
	take(1, GET("example.org"));
	take(1 + strlen(GET("example.org")), GET("other.org"));
	assert_passed(GET("example.org"));
	assert_refused(NETWORK_OTHER_NAME, "other.org");
}

static void what_has_no_name_keeps_the_one_that_was_looked_up(void **state)
{
	(void)state;
	take(1, "GET / HTTP/1.0\r\n\r\n");
	assert_refused(NETWORK_NO_NAME, "example.org");
}

static void who_goes_on_is_told_again(void **state)
{
	(void)state;
	take(1, GET("other.org"));
	seen.answers = 0;
	take(1, GET("other.org"));
	take(1, GET("example.org"));
	assert_true(take_flags(PACKET_TCP_ACK | PACKET_TCP_FIN, 40, ""));
	assert_int_equal(seen.answers, 3);
	assert_int_equal(seen.answer.flags, PACKET_TCP_RST | PACKET_TCP_ACK);
	assert_true(take_flags(PACKET_TCP_RST, 40, "")); /* resets are not answered */
	assert_int_equal(seen.answers, 3);
	assert_passed("");
	assert_refused(NETWORK_OTHER_NAME, "other.org");
}

/* ---- The end ---- */

static void an_end_passes_behind_what_is_judged(void **state)
{
	(void)state;
	assert_true(take_flags(PACKET_TCP_ACK | PACKET_TCP_FIN, 1, GET("example.org")));
	assert_passed(GET("example.org"));
	assert_int_equal(seen.fins, 1);
	assert_true(take_flags(PACKET_TCP_ACK | PACKET_TCP_FIN, 1, GET("example.org"))); /* again */
	assert_answer(PACKET_TCP_ACK, 2 + strlen(GET("example.org")));
	take(2 + strlen(GET("example.org")), GET("example.org")); /* behind the end */
	assert_passed(GET("example.org"));
	assert_int_equal(seen.fins, 1);
	take(2 + strlen(GET("example.org")), "");
	assert_int_equal(seen.last.payload_len, 0);
}

static void an_end_out_of_order_does_not_pass(void **state)
{
	(void)state;
	assert_true(take_flags(PACKET_TCP_ACK | PACKET_TCP_FIN, 5, ""));
	assert_int_equal(seen.fins, 0);
	assert_answer(PACKET_TCP_ACK, 1);
}

static void an_end_in_the_midst_is_refused(void **state)
{
	(void)state;
	take(1, "GET / HTTP/1.1\r\nHost: other.org");
	assert_true(take_flags(PACKET_TCP_ACK | PACKET_TCP_FIN, 32, ""));
	assert_int_equal(seen.fins, 0);
	assert_passed("GET");
	assert_refused(NETWORK_NO_NAME, "example.org");
}

static void a_reset_ends_what_stands_there_and_what_was_held(void **state)
{
	(void)state;
	take(1, "GET / HTTP/1.1\r\n");
	assert_true(take_flags(PACKET_TCP_RST, 999, ""));
	assert_int_equal(seen.resets, 1);
	assert_true(flow->over);
	take(17, "Host: example.org\r\n\r\n");
	assert_passed("GET");
}

/* A port that serves anew: the beginning comes again, and finds no connection. */
static void another_beginning_resets_the_old_connection(void **state)
{
	(void)state;
	assert_true(take_flags(PACKET_TCP_SYN, 4711, ""));
	assert_int_equal(seen.resets, 1);
	assert_true(flow->over);
}

/* ---- Room ---- */

static void when_there_is_no_room_nothing_is_taken_until_there_is(void **state)
{
	struct flow *first = flow;

	(void)state;
	take(1, "GET / ");
	for (unsigned i = 1; i < HOLDS_MAX; i++) {
		(void)begin_flow((uint16_t)(40000 + i));
		take(1, "GET / ");
		assert_answer(PACKET_TCP_ACK, 7);
	}
	(void)begin_flow(50000);
	take(1, "GET / ");
	assert_answer(PACKET_TCP_ACK, 1);
	assert_int_equal(seen.len, 0);
	flows_forget(&flows, first);
	take(1, GET("example.org"));
	assert_passed(GET("example.org"));
	/* What one has used up serves the next. */
	(void)begin_flow(50001);
	take(1, GET("example.org"));
	assert_passed(GET("example.org"));
}

static void what_a_connection_has_left_behind_is_nobodys(void **state)
{
	(void)state;
	for (unsigned i = 1; i < 3 * HOLDS_MAX; i++) {
		take(1, "GET / HTTP/1.1\r\nHost: other.");
		flows_forget(&flows, flow);
		(void)begin_flow((uint16_t)(40000 + i));
	}
	take(1, GET("example.org"));
	assert_passed(GET("example.org"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
		CASE(only_connections_that_a_name_has_opened_are_held),
		CASE(a_beginning_passes_as_it_is),
		CASE(data_in_a_beginning_are_dropped),
		CASE(what_is_judged_passes_in_one),
		CASE(what_is_not_whole_waits_and_is_acknowledged),
		CASE(only_what_is_next_is_taken),
		CASE(a_probe_is_answered),
		CASE(no_more_is_taken_than_the_stack_takes),
		CASE(a_body_passes_as_it_comes),
		CASE(what_is_more_than_a_packet_takes_goes_in_two),
		CASE(what_was_held_goes_in_packets_of_their_size),
		CASE(urgent_data_are_what_they_would_be_otherwise),
		CASE(what_has_no_names_passes_as_it_is_from_then_on),
		CASE(what_is_for_another_name_resets_both_sides),
		CASE(a_second_request_for_another_name_does_so_too),
		CASE(what_has_no_name_keeps_the_one_that_was_looked_up),
		CASE(who_goes_on_is_told_again),
		CASE(an_end_passes_behind_what_is_judged),
		CASE(an_end_out_of_order_does_not_pass),
		CASE(an_end_in_the_midst_is_refused),
		CASE(a_reset_ends_what_stands_there_and_what_was_held),
		CASE(another_beginning_resets_the_old_connection),
		CASE(when_there_is_no_room_nothing_is_taken_until_there_is),
		CASE(what_a_connection_has_left_behind_is_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
