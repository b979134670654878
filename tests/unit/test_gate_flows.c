/* Connections as the gate remembers them, and the record that it makes of them. */
#include "unit.h"

#include "base/check.h"
#include "base/clock.h"
#include "edge/gate/flows.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define BEGAN_NS (1000 * NS_PER_S)

static struct flows flows;
static uint64_t now_ns;

static int begin(void **state)
{
	(void)state;
	now_ns = BEGAN_NS;
	flows_init(&flows, BEGAN_NS);
	return 0;
}

static struct network_address address_of(const char *text)
{
	struct network_address a = { { [10] = 0xff, [11] = 0xff } };

	assert_int_equal(inet_pton(AF_INET, text, a.bytes + 12), 1);
	return a;
}

/* One from the cell to 203.0.113.7, with a payload of 100 bytes. */
static struct packet packet_of(enum packet_kind kind, uint16_t cell_port, uint16_t port)
{
	return (struct packet){ .kind = kind,
		.ipv4 = true,
		.source = address_of("198.18.0.2"),
		.target = address_of("203.0.113.7"),
		.source_port = cell_port,
		.target_port = port,
		.payload_len = 100 };
}

/* The same connection's in the other direction. */
static struct packet back_of(const struct packet *p)
{
	struct packet back = *p;

	back.source = p->target;
	back.target = p->source;
	back.source_port = p->target_port;
	back.target_port = p->source_port;
	return back;
}

static struct flow *begin_flow(const struct packet *p)
{
	struct flow *f = flows_begin(&flows, p, "", now_ns);

	assert_non_null(f);
	return f;
}

static void pass(struct flow *f, const struct packet *p, bool out, uint8_t flags)
{
	struct packet one = *p;

	one.flags = flags;
	flows_pass(&flows, f, &one, out, now_ns);
}

static const struct network_connection *line(uint32_t i)
{
	assert_true(i < flows.record.count);
	return &flows.record.lines[i];
}

/* ---- Which packet belongs to which ---- */

static void a_connection_is_found_from_both_sides(void **state)
{
	struct packet out = packet_of(PACKET_TCP, 40000, 443), in = back_of(&out);
	struct flow *f;

	(void)state;
	assert_null(flows_find(&flows, &out, true));
	f = begin_flow(&out);
	assert_ptr_equal(flows_find(&flows, &out, true), f);
	assert_ptr_equal(flows_find(&flows, &in, false), f);
	assert_null(flows_find(&flows, &out, false));
	assert_null(flows_find(&flows, &in, true));
}

/* Of so many there are some of which nothing but the comparison tells them apart. */
static void what_differs_in_anything_is_another_connection(void **state)
{
	(void)state;
	for (unsigned port = 0; port <= UINT16_MAX; port++) {
		struct packet one = packet_of(PACKET_TCP, (uint16_t)port, 443), p = one;
		struct flow *f = begin_flow(&one);

		p.kind = PACKET_UDP;
		assert_null(flows_find(&flows, &p, true));
		p.kind = PACKET_ECHO;
		assert_null(flows_find(&flows, &p, true));
		p = one;
		p.source_port ^= 1;
		assert_null(flows_find(&flows, &p, true));
		p = one;
		p.target_port = 444;
		assert_null(flows_find(&flows, &p, true));
		p = one;
		p.target = address_of("203.0.113.8");
		assert_null(flows_find(&flows, &p, true));
		flows_forget(&flows, f);
	}
}

static void many_connections_are_told_apart(void **state)
{
	static struct flow *all[FLOWS_MAX];

	(void)state;
	for (unsigned i = 0; i < FLOWS_MAX; i++) {
		struct packet p = packet_of(PACKET_UDP, (uint16_t)(1024 + i), 53);

		all[i] = begin_flow(&p);
	}
	for (unsigned i = 0; i < FLOWS_MAX; i++) {
		struct packet p = packet_of(PACKET_UDP, (uint16_t)(1024 + i), 53);

		assert_ptr_equal(flows_find(&flows, &p, true), all[i]);
	}
	for (unsigned i = 0; i < FLOWS_MAX; i += 2)
		flows_forget(&flows, all[i]);
	for (unsigned i = 0; i < FLOWS_MAX; i++) {
		struct packet p = packet_of(PACKET_UDP, (uint16_t)(1024 + i), 53);

		assert_ptr_equal(flows_find(&flows, &p, true), i % 2 ? all[i] : NULL);
	}
	assert_int_equal(flows.open, FLOWS_MAX / 2);
	for (unsigned i = 0; i < FLOWS_MAX; i += 2) { /* each place serves again */
		struct packet p = packet_of(PACKET_TCP, (uint16_t)(1024 + i), 53);

		(void)begin_flow(&p);
	}
}

static void fill_table(enum packet_kind kind)
{
	for (unsigned i = 0; i < FLOWS_MAX; i++) {
		struct packet p = packet_of(kind, (uint16_t)(1024 + i), 53);

		(void)begin_flow(&p);
		now_ns++;
	}
}

static struct flow *flow_at(enum packet_kind kind, uint16_t cell_port)
{
	struct packet p = packet_of(kind, cell_port, 53);

	return flows_find(&flows, &p, true);
}

static void a_full_table_takes_no_more_until_one_is_forgotten(void **state)
{
	struct packet p = packet_of(PACKET_UDP, 1023, 53);
	struct flow *one;

	(void)state;
	fill_table(PACKET_UDP);
	assert_null(flows_begin(&flows, &p, "", now_ns));
	assert_null(flows_find(&flows, &p, true));
	assert_int_equal(flows.open, FLOWS_MAX);
	assert_int_equal(flows.record.connections, FLOWS_MAX);
	one = flow_at(PACKET_UDP, 1030);
	flows_forget(&flows, one);
	assert_int_equal(flows.open, FLOWS_MAX - 1);
	assert_ptr_equal(begin_flow(&p), one);
}

static void in_a_full_table_what_is_over_for_longest_gives_way(void **state)
{
	static const uint16_t ended[] = { 1500, 1200, 2000 };
	struct packet p;

	(void)state;
	fill_table(PACKET_UDP);
	for (unsigned i = 0; i < ARRAY_LEN(ended); i++)
		flows_end(&flows, flow_at(PACKET_UDP, ended[i]));
	p = packet_of(PACKET_TCP, 40000, 443);
	(void)begin_flow(&p);
	assert_null(flow_at(PACKET_UDP, 1200)); /* the first of the three to be quiet */
	assert_non_null(flow_at(PACKET_UDP, 1500));
	assert_non_null(flow_at(PACKET_UDP, 2000));
	assert_int_equal(flows.open, FLOWS_MAX - 2);
	p = packet_of(PACKET_TCP, 40001, 443);
	(void)begin_flow(&p);
	p = packet_of(PACKET_TCP, 40002, 443);
	(void)begin_flow(&p);
	p = packet_of(PACKET_TCP, 40003, 443);
	assert_null(flows_begin(&flows, &p, "", now_ns));
	assert_int_equal(flows.open, FLOWS_MAX);
}

/* ---- How they end ---- */

static void tcp_is_over_when_both_sides_have_ended_it(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);
	struct flow *f = begin_flow(&p);

	(void)state;
	pass(f, &p, true, PACKET_TCP_SYN);
	pass(f, &p, true, PACKET_TCP_FIN | PACKET_TCP_ACK);
	pass(f, &p, true, PACKET_TCP_FIN | PACKET_TCP_ACK); /* sent again */
	assert_false(f->over);
	assert_int_equal(flows.open, 1);
	pass(f, &p, false, PACKET_TCP_FIN);
	assert_true(f->over);
	assert_int_equal(flows.open, 0);
	pass(f, &p, true, PACKET_TCP_ACK); /* late */
	pass(f, &p, true, PACKET_TCP_RST);
	assert_int_equal(flows.open, 0);
	flows_forget(&flows, f);
	assert_int_equal(flows.open, 0);
}

static void tcp_is_over_when_either_side_resets_it(void **state)
{
	(void)state;
	for (unsigned out = 0; out < 2; out++) {
		struct packet p = packet_of(PACKET_TCP, (uint16_t)(40000 + out), 443);
		struct flow *f = begin_flow(&p);

		pass(f, &p, out, PACKET_TCP_RST);
		assert_true(f->over);
		assert_int_equal(flows.open, 0);
	}
}

static void flags_mean_nothing_where_there_is_no_tcp(void **state)
{
	struct packet p = packet_of(PACKET_UDP, 40000, 443);
	struct flow *f = begin_flow(&p);

	(void)state;
	pass(f, &p, true, PACKET_TCP_RST | PACKET_TCP_FIN);
	pass(f, &p, false, PACKET_TCP_RST | PACKET_TCP_FIN);
	assert_false(f->over);
	assert_int_equal(flows.open, 1);
}

/* Of all kinds: what the stack has told. */
static void what_has_ended_is_over_once_and_may_be_revived(void **state)
{
	struct packet p = packet_of(PACKET_UDP, 40000, 443), q = packet_of(PACKET_TCP, 40000, 443);
	struct flow *f = begin_flow(&p), *g = begin_flow(&q);

	(void)state;
	assert_int_equal(flows.open, 2);
	flows_end(&flows, f);
	flows_end(&flows, f);
	flows_end(&flows, g);
	pass(g, &q, false, PACKET_TCP_RST);
	assert_true(f->over && g->over);
	assert_int_equal(flows.open, 0);
	assert_ptr_equal(flows_find(&flows, &p, true), f); /* what comes late is its own */
	flows_revive(&flows, f);
	assert_false(f->over);
	assert_int_equal(flows.open, 1);
	assert_int_equal(flows.record.connections, 2);
}

static void echoes_count_as_no_open_connection(void **state)
{
	struct packet p = packet_of(PACKET_ECHO, 7, 7);
	struct flow *f = begin_flow(&p);

	(void)state;
	assert_int_equal(flows.open, 0);
	flows_end(&flows, f);
	flows_revive(&flows, f);
	assert_int_equal(flows.open, 0);
	flows_forget(&flows, f);
	assert_int_equal(flows.open, 0);
	assert_int_equal(flows.record.connections, 1);
}

static bool is_there(const struct packet *p, uint64_t at_ns)
{
	flows_sweep(&flows, at_ns);
	return flows_find(&flows, p, true) != NULL;
}

static void what_is_idle_is_forgotten_after_five_minutes(void **state)
{
	static const enum packet_kind kinds[] = { PACKET_UDP, PACKET_ECHO };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(kinds); i++) {
		struct packet p = packet_of(kinds[i], 40000, 443);
		struct flow *f;

		now_ns = BEGAN_NS;
		f = begin_flow(&p);
		flows_end(&flows, f); /* over or not: it may go on */
		assert_true(is_there(&p, BEGAN_NS + 300 * NS_PER_S));
		flows_revive(&flows, f);
		now_ns = BEGAN_NS + 200 * NS_PER_S;
		pass(f, &p, false, 0); /* either direction keeps it */
		assert_true(is_there(&p, BEGAN_NS + 500 * NS_PER_S));
		assert_false(is_there(&p, BEGAN_NS + 500 * NS_PER_S + 1));
		assert_int_equal(flows.open, 0);
	}
}

/* The stack keeps its socket, too, and would go on with it. */
static void tcp_is_kept_until_it_is_over_however_idle(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);
	struct flow *f = begin_flow(&p);

	(void)state;
	pass(f, &p, true, PACKET_TCP_FIN); /* one side: the other may still be sending */
	assert_true(is_there(&p, BEGAN_NS + 1000000 * NS_PER_S));
	assert_int_equal(flows.open, 1);
}

static void what_is_over_is_forgotten_after_ten_seconds(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);
	struct flow *f = begin_flow(&p);

	(void)state;
	pass(f, &p, false, PACKET_TCP_RST);
	assert_true(is_there(&p, BEGAN_NS + 10 * NS_PER_S));
	assert_false(is_there(&p, BEGAN_NS + 10 * NS_PER_S + 1));
	assert_int_equal(flows.open, 0);
}

/* A turn of the gate asks the clock once, and packets that pass in it ask again. */
static void a_packet_that_passed_after_the_sweeps_time_keeps_its_connection(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);

	(void)state;
	now_ns = BEGAN_NS + 6 * NS_PER_S + 1;
	(void)begin_flow(&p);
	assert_true(is_there(&p, BEGAN_NS + 6 * NS_PER_S));
	assert_int_equal(flows.open, 1);
}

/* ---- The record ---- */

static void a_connection_has_a_line_with_its_bytes(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);
	struct flow *f;

	(void)state;
	now_ns = BEGAN_NS + 1500 * NS_PER_US + 999;
	f = flows_begin(&flows, &p, "www.example.org", now_ns);
	assert_non_null(f);
	pass(f, &p, true, 0);
	pass(f, &p, true, 0);
	pass(f, &p, false, 0);
	assert_int_equal(flows.record.count, 1);
	assert_int_equal(line(0)->begin_us, 1500);
	assert_int_equal(line(0)->bytes_out, 200);
	assert_int_equal(line(0)->bytes_in, 100);
	assert_int_equal(line(0)->port, 443);
	assert_int_equal(line(0)->protocol, NETWORK_TCP);
	assert_int_equal(line(0)->verdict, NETWORK_ALLOWED);
	assert_int_equal(line(0)->times, 1);
	assert_string_equal(line(0)->name, "www.example.org");
	assert_memory_equal(&line(0)->address, &p.target, sizeof(p.target));
	assert_int_equal(flows.record.connections, 1);
	assert_int_equal(flows.record.refused, 0);
	assert_int_equal(flows.record.bytes_out, 200);
	assert_int_equal(flows.record.bytes_in, 100);
}

static void a_line_stays_when_its_connection_is_forgotten(void **state)
{
	struct packet p = packet_of(PACKET_UDP, 40000, 53);
	struct flow *f = begin_flow(&p);

	(void)state;
	pass(f, &p, true, 0);
	flows_forget(&flows, f);
	f = begin_flow(&p);
	pass(f, &p, true, 0);
	assert_int_equal(flows.record.count, 2);
	assert_int_equal(line(0)->bytes_out, 100);
	assert_int_equal(line(1)->bytes_out, 100);
}

static void an_echo_has_no_port(void **state)
{
	struct packet p = packet_of(PACKET_ECHO, 0x1234, 0x1234);

	(void)state;
	(void)begin_flow(&p);
	flows_refuse(&flows, &p, "", NETWORK_NO_RULE, now_ns);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(line(i)->protocol, NETWORK_ICMP);
		assert_int_equal(line(i)->port, 0);
	}
}

static void what_is_refused_again_is_counted_on_its_line(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);

	(void)state;
	now_ns = BEGAN_NS + NS_PER_MS;
	for (unsigned i = 0; i < 3; i++) {
		flows_refuse(&flows, &p, "", NETWORK_PRIVATE, now_ns);
		p.source_port++; /* is of no matter */
		now_ns += NS_PER_S;
	}
	assert_int_equal(flows.record.count, 1);
	assert_int_equal(line(0)->times, 3);
	assert_int_equal(line(0)->begin_us, 1000);
	assert_int_equal(line(0)->verdict, NETWORK_PRIVATE);
	assert_int_equal(flows.record.refused, 3);
	assert_int_equal(flows.record.connections, 0);
}

static void what_is_refused_otherwise_has_a_line_of_its_own(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);

	(void)state;
	flows_refuse(&flows, &p, "", NETWORK_PRIVATE, now_ns);
	flows_refuse(&flows, &p, "", NETWORK_OWN, now_ns);
	flows_refuse(&flows, &p, "a.example.org", NETWORK_OWN, now_ns);
	p.target_port = 80;
	flows_refuse(&flows, &p, "", NETWORK_OWN, now_ns);
	p.kind = PACKET_UDP;
	flows_refuse(&flows, &p, "", NETWORK_OWN, now_ns);
	p.target = address_of("203.0.113.8");
	flows_refuse(&flows, &p, "", NETWORK_OWN, now_ns);
	flows_refuse(&flows, NULL, "", NETWORK_OWN, now_ns);
	assert_int_equal(flows.record.count, 7);
	for (uint32_t i = 0; i < 7; i++)
		assert_int_equal(line(i)->times, 1);
	assert_int_equal(line(6)->protocol, NETWORK_OTHER);
}

static void a_refusal_is_never_counted_as_a_connection(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);

	(void)state;
	(void)begin_flow(&p);
	flows_refuse(&flows, &p, "", NETWORK_BYTES, now_ns);
	assert_int_equal(flows.record.count, 2);
	assert_int_equal(line(0)->times, 1);
	assert_int_equal(line(0)->verdict, NETWORK_ALLOWED);
}

/* Its bytes stay where they are. */
static void a_connection_that_is_refused_in_its_midst_says_so_on_its_line(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);
	struct flow *f = flows_begin(&flows, &p, "example.org", now_ns);

	(void)state;
	assert_non_null(f);
	pass(f, &p, true, 0);
	flows_deny(&flows, f, "", NETWORK_NO_NAME);
	assert_int_equal(line(0)->verdict, NETWORK_NO_NAME);
	assert_string_equal(line(0)->name, "example.org");
	flows_deny(&flows, f, "other.org", NETWORK_OTHER_NAME);
	assert_int_equal(line(0)->verdict, NETWORK_OTHER_NAME);
	assert_string_equal(line(0)->name, "other.org");
	assert_int_equal(line(0)->bytes_out, 100);
	assert_int_equal(flows.record.count, 1);
	assert_int_equal(flows.record.refused, 2);
	assert_null(network_record_fault(&flows.record));
	f->line = FLOWS_NONE;
	flows_deny(&flows, f, "other.org", NETWORK_OTHER_NAME);
	assert_int_equal(flows.record.refused, 3);
}

static void look_ups_are_lines_without_an_address(void **state)
{
	static const struct network_address none;

	(void)state;
	flows_look_up(&flows, "example.org", NETWORK_ALLOWED, now_ns);
	flows_look_up(&flows, "example.org", NETWORK_ALLOWED, now_ns);
	flows_look_up(&flows, "example.org", NETWORK_UNANSWERED, now_ns);
	flows_look_up(&flows, "example.com", NETWORK_NO_RULE, now_ns);
	assert_int_equal(flows.record.count, 3);
	assert_int_equal(line(0)->times, 2);
	assert_int_equal(line(0)->protocol, NETWORK_DNS);
	assert_string_equal(line(0)->name, "example.org");
	assert_memory_equal(&line(0)->address, &none, sizeof(none));
	assert_int_equal(line(1)->verdict, NETWORK_UNANSWERED);
	assert_int_equal(line(2)->verdict, NETWORK_NO_RULE);
	assert_int_equal(flows.record.refused, 2);
	assert_int_equal(flows.record.connections, 0);
}

static void lines_that_have_no_room_are_counted_and_their_bytes_too(void **state)
{
	struct packet p;
	struct flow *f;

	(void)state;
	for (unsigned i = 0; i < NETWORK_RECORD_MAX; i++) {
		p = packet_of(PACKET_UDP, (uint16_t)(1024 + i), 53);
		(void)begin_flow(&p);
	}
	assert_int_equal(flows.record.left_out, 0);
	p = packet_of(PACKET_TCP, 40000, 443);
	f = begin_flow(&p);
	pass(f, &p, true, 0);
	flows_refuse(&flows, &p, "", NETWORK_PRIVATE, now_ns);
	flows_look_up(&flows, "example.org", NETWORK_ALLOWED, now_ns);
	assert_int_equal(flows.record.count, NETWORK_RECORD_MAX);
	assert_int_equal(flows.record.left_out, 3);
	assert_int_equal(flows.record.connections, NETWORK_RECORD_MAX + 1);
	assert_int_equal(flows.record.refused, 1);
	assert_int_equal(flows.record.bytes_out, 100);
	for (uint32_t i = 0; i < NETWORK_RECORD_MAX; i++)
		assert_int_equal(line(i)->bytes_out, 0);
}

static char *name_of(unsigned i)
{
	static char name[32];

	(void)snprintf(name, sizeof(name), "n%u.example.org", i);
	return name;
}

static void what_is_refused_takes_half_of_the_lines(void **state)
{
	struct packet p = packet_of(PACKET_TCP, 40000, 443);

	(void)state;
	for (unsigned i = 0; i < 500; i++)
		flows_refuse(&flows, &p, name_of(i), NETWORK_PRIVATE, now_ns);
	flows_look_up(&flows, name_of(0), NETWORK_OPERATOR, now_ns);
	flows_refuse(&flows, &p, name_of(0), NETWORK_PRIVATE, now_ns); /* has its line */
	assert_int_equal(flows.record.count, NETWORK_RECORD_MAX / 2);
	assert_int_equal(flows.record.left_out, 500 + 1 - NETWORK_RECORD_MAX / 2);
	assert_int_equal(flows.record.refused, 502);
	assert_int_equal(line(0)->times, 2);
}

static void names_take_a_quarter_and_connections_have_the_rest(void **state)
{
	struct packet p;

	(void)state;
	for (unsigned i = 0; i < 500; i++) {
		flows_look_up(&flows, name_of(i), NETWORK_ALLOWED, now_ns);
		flows_look_up(&flows, name_of(i), NETWORK_UNANSWERED, now_ns);
	}
	assert_int_equal(flows.record.count, NETWORK_RECORD_MAX * 3 / 4);
	for (unsigned i = 0; i < NETWORK_RECORD_MAX / 4; i++) {
		p = packet_of(PACKET_UDP, (uint16_t)(1024 + i), 53);
		assert_int_not_equal(begin_flow(&p)->line, FLOWS_NONE);
	}
	p = packet_of(PACKET_UDP, 40000, 53);
	assert_int_equal(begin_flow(&p)->line, FLOWS_NONE);
	assert_int_equal(flows.record.left_out, 1000 - NETWORK_RECORD_MAX * 3 / 4 + 1);
}

static void bytes_of_look_ups_count_in_the_whole(void **state)
{
	(void)state;
	flows_count(&flows, 30, true);
	flows_count(&flows, 500, false);
	assert_int_equal(flows.record.bytes_out, 30);
	assert_int_equal(flows.record.bytes_in, 500);
}

/* ---- What the client sees ---- */

static void what_has_changed_is_published_and_nothing_else_is_touched(void **state)
{
	static struct network_record shared;
	struct packet p = packet_of(PACKET_TCP, 40000, 443), q = packet_of(PACKET_TCP, 40001, 443);
	struct flow *f, *g;

	(void)state;
	memset(&shared, 0xee, sizeof(shared));
	flows_publish(&flows, &shared);
	assert_int_equal(shared.magic, NETWORK_RECORD_MAGIC);
	assert_int_equal(shared.count, 0);
	assert_int_equal(((uint8_t *)shared.lines)[0], 0xee);
	f = begin_flow(&p);
	g = begin_flow(&q);
	flows_publish(&flows, &shared);
	assert_int_equal(shared.count, 2);
	assert_null(network_record_fault(&shared));
	assert_memory_equal(shared.lines, flows.record.lines, 2 * sizeof(shared.lines[0]));
	assert_int_equal(((uint8_t *)&shared.lines[2])[0], 0xee);
	/* A line that has not changed is not written again. */
	shared.lines[0].times = 77;
	pass(g, &q, true, 0);
	flows_publish(&flows, &shared);
	assert_int_equal(shared.lines[0].times, 77);
	assert_int_equal(shared.lines[1].bytes_out, 100);
	assert_int_equal(shared.bytes_out, 100);
	/* One that has comes again, whatever order they changed in. */
	flows_publish(&flows, &shared);
	assert_int_equal(shared.lines[0].times, 77);
	pass(g, &q, true, 0);
	pass(f, &p, true, 0);
	flows_publish(&flows, &shared);
	assert_memory_equal(&shared, &flows.record,
		offsetof(struct network_record, lines) + 2 * sizeof(shared.lines[0]));
}

/* Its client can write there what it likes. */
static void what_the_client_writes_is_never_read(void **state)
{
	struct network_record *shared = mmap(
		NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct packet p = packet_of(PACKET_TCP, 40000, 443);
	struct flow *f = begin_flow(&p);

	(void)state;
	assert_ptr_not_equal(shared, MAP_FAILED);
	for (unsigned i = 0; i < 3; i++) {
		memset(shared, 0xff, sizeof(*shared)); /* counts, line numbers, all of it */
		pass(f, &p, true, 0);
		flows_refuse(&flows, &p, "", NETWORK_BYTES, now_ns);
		flows_publish(&flows, shared);
		assert_int_equal(shared->count, 2);
		assert_int_equal(shared->refused, i + 1);
		assert_int_equal(shared->lines[0].bytes_out, 100 * (i + 1));
		assert_int_equal(shared->lines[1].times, i + 1);
	}
	assert_int_equal(munmap(shared, sizeof(*shared)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_connection_is_found_from_both_sides, begin),
		cmocka_unit_test_setup(what_differs_in_anything_is_another_connection, begin),
		cmocka_unit_test_setup(many_connections_are_told_apart, begin),
		cmocka_unit_test_setup(a_full_table_takes_no_more_until_one_is_forgotten, begin),
		cmocka_unit_test_setup(in_a_full_table_what_is_over_for_longest_gives_way, begin),
		cmocka_unit_test_setup(tcp_is_over_when_both_sides_have_ended_it, begin),
		cmocka_unit_test_setup(tcp_is_over_when_either_side_resets_it, begin),
		cmocka_unit_test_setup(flags_mean_nothing_where_there_is_no_tcp, begin),
		cmocka_unit_test_setup(what_has_ended_is_over_once_and_may_be_revived, begin),
		cmocka_unit_test_setup(echoes_count_as_no_open_connection, begin),
		cmocka_unit_test_setup(what_is_idle_is_forgotten_after_five_minutes, begin),
		cmocka_unit_test_setup(tcp_is_kept_until_it_is_over_however_idle, begin),
		cmocka_unit_test_setup(what_is_over_is_forgotten_after_ten_seconds, begin),
		cmocka_unit_test_setup(
			a_packet_that_passed_after_the_sweeps_time_keeps_its_connection, begin),
		cmocka_unit_test_setup(a_connection_has_a_line_with_its_bytes, begin),
		cmocka_unit_test_setup(a_line_stays_when_its_connection_is_forgotten, begin),
		cmocka_unit_test_setup(an_echo_has_no_port, begin),
		cmocka_unit_test_setup(what_is_refused_again_is_counted_on_its_line, begin),
		cmocka_unit_test_setup(what_is_refused_otherwise_has_a_line_of_its_own, begin),
		cmocka_unit_test_setup(a_refusal_is_never_counted_as_a_connection, begin),
		cmocka_unit_test_setup(
			a_connection_that_is_refused_in_its_midst_says_so_on_its_line, begin),
		cmocka_unit_test_setup(look_ups_are_lines_without_an_address, begin),
		cmocka_unit_test_setup(
			lines_that_have_no_room_are_counted_and_their_bytes_too, begin),
		cmocka_unit_test_setup(what_is_refused_takes_half_of_the_lines, begin),
		cmocka_unit_test_setup(names_take_a_quarter_and_connections_have_the_rest, begin),
		cmocka_unit_test_setup(bytes_of_look_ups_count_in_the_whole, begin),
		cmocka_unit_test_setup(
			what_has_changed_is_published_and_nothing_else_is_touched, begin),
		cmocka_unit_test_setup(what_the_client_writes_is_never_read, begin),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
