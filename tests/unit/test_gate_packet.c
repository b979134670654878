/* What the gate reads of a packet, what it refuses to read, and what it builds. */
#include "unit.h"

#include "base/check.h"
#include "edge/gate/packet.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum kind {
	TCP4,
	UDP4,
	ECHO4,
	TCP6,
	UDP6,
	ECHO6,
	KINDS
};

#define PAYLOAD     "ping"
#define PAYLOAD_LEN 4u
#define BYTES_MAX   (PACKET_MAX + 64)

static uint8_t bytes[BYTES_MAX];
static size_t bytes_len;
static struct packet p;

static bool is_ipv4(enum kind k)
{
	return k < TCP6;
}

static size_t head_of(enum kind k)
{
	return is_ipv4(k) ? 20 : 40;
}

static void put16(size_t at, size_t value)
{
	bytes[at] = (uint8_t)(value >> 8);
	bytes[at + 1] = (uint8_t)value;
}

static unsigned get16(const uint8_t *at)
{
	return at[0] * 256u + at[1];
}

/* IP from 198.18.0.2 or fd5c::2 to 203.0.113.7 or 2001:db8::7, for `len` bytes of `protocol`. */
static size_t put_ip(bool ipv4, uint8_t protocol, size_t len)
{
	memset(bytes, 0, sizeof(bytes));
	if (ipv4) {
		bytes[0] = 0x45;
		put16(2, 20 + len);
		bytes[8] = 64;
		bytes[9] = protocol;
		assert_int_equal(inet_pton(AF_INET, "198.18.0.2", bytes + 12), 1);
		assert_int_equal(inet_pton(AF_INET, "203.0.113.7", bytes + 16), 1);
	} else {
		bytes[0] = 0x60;
		put16(4, len);
		bytes[6] = protocol;
		bytes[7] = 64;
		assert_int_equal(inet_pton(AF_INET6, "fd5c::2", bytes + 8), 1);
		assert_int_equal(inet_pton(AF_INET6, "2001:db8::7", bytes + 24), 1);
	}
	bytes_len = (ipv4 ? 20 : 40) + len;
	return bytes_len - len;
}

/* A packet as programs send it, with PAYLOAD. */
static void make(enum kind k)
{
	static const uint8_t protocols[] = { IPPROTO_TCP, IPPROTO_UDP, IPPROTO_ICMP, IPPROTO_TCP,
		IPPROTO_UDP, IPPROTO_ICMPV6 };
	size_t head = k % 3 == TCP4 ? 20 : 8;
	size_t at = put_ip(is_ipv4(k), protocols[k], head + PAYLOAD_LEN);

	memcpy(bytes + at + head, PAYLOAD, PAYLOAD_LEN);
	if (k % 3 == ECHO4) {
		bytes[at] = is_ipv4(k) ? 8 : 128;
		put16(at + 4, 0x1234);
		return;
	}
	put16(at, 40000);
	put16(at + 2, 443);
	if (k % 3 == UDP4) {
		put16(at + 4, head + PAYLOAD_LEN);
		return;
	}
	memcpy(bytes + at + 4, (const uint8_t[]){ 0x89, 0xab, 0xcd, 0xef, 1, 2, 3, 4 }, 8);
	bytes[at + 12] = 5 << 4;
	bytes[at + 13] = PACKET_TCP_SYN | PACKET_TCP_ACK;
}

/* As packet_read(), from a block that ends where the packet does. */
static const char *read_len(size_t len)
{
	static uint8_t *block;

	free(block);
	block = malloc(len ? len : 1);
	assert_non_null(block);
	memcpy(block, bytes, len);
	return packet_read(block, len, &p);
}

static const char *read_it(void)
{
	return read_len(bytes_len);
}

static void assert_address(const struct network_address *a, const char *text)
{
	struct network_address expected = { { [10] = 0xff, [11] = 0xff } };

	if (inet_pton(AF_INET, text, expected.bytes + 12) != 1)
		assert_int_equal(inet_pton(AF_INET6, text, expected.bytes), 1);
	assert_memory_equal(a, &expected, sizeof(expected));
}

/* ---- What is read ---- */

static void what_programs_send_is_read_in_both_families(void **state)
{
	static const enum packet_kind kinds[] = { PACKET_TCP, PACKET_UDP, PACKET_ECHO };

	(void)state;
	for (enum kind k = TCP4; k < KINDS; k++) {
		make(k);
		assert_null(read_it());
		assert_int_equal(p.kind, kinds[k % 3]);
		assert_int_equal(p.ipv4, is_ipv4(k));
		assert_address(&p.source, is_ipv4(k) ? "198.18.0.2" : "fd5c::2");
		assert_address(&p.target, is_ipv4(k) ? "203.0.113.7" : "2001:db8::7");
		assert_int_equal(p.source_port, k % 3 == ECHO4 ? 0x1234 : 40000);
		assert_int_equal(p.target_port, k % 3 == ECHO4 ? 0x1234 : 443);
		assert_int_equal(p.payload_len, PAYLOAD_LEN);
		assert_memory_equal(p.payload, PAYLOAD, PAYLOAD_LEN);
		assert_int_equal(p.len, bytes_len);
	}
}

static void tcp_has_its_numbers_flags_and_options(void **state)
{
	(void)state;
	make(TCP4);
	assert_null(read_it());
	assert_int_equal(p.sequence, 0x89abcdef);
	assert_int_equal(p.acknowledged, 0x01020304);
	assert_int_equal(p.flags, PACKET_TCP_SYN | PACKET_TCP_ACK);
	assert_int_equal(p.window, 0);
	put16(20 + 14, 0x5678);
	assert_null(read_it());
	assert_int_equal(p.window, 0x5678);
	bytes[20 + 12] = 6 << 4; /* an option in the place of the payload */
	assert_null(read_it());
	assert_int_equal(p.payload_len, 0);
}

static void echoes_and_their_answers_are_told_apart(void **state)
{
	(void)state;
	for (unsigned reply = 0; reply < 2; reply++) {
		make(ECHO4);
		bytes[20] = reply ? 0 : 8;
		put16(26, 0xabcd);
		assert_null(read_it());
		assert_int_equal(p.kind, PACKET_ECHO);
		assert_int_equal(p.is_reply, reply);
		assert_int_equal(p.sequence, 0xabcd);
		make(ECHO6);
		bytes[40] = (uint8_t)(128 + reply);
		assert_null(read_it());
		assert_int_equal(p.kind, PACKET_ECHO);
		assert_int_equal(p.is_reply, reply);
	}
}

static void bytes_behind_a_packet_are_not_of_it(void **state)
{
	(void)state;
	for (enum kind k = TCP4; k < KINDS; k++) {
		make(k);
		assert_null(read_len(bytes_len + 3));
		assert_int_equal(p.len, bytes_len);
		assert_int_equal(p.payload_len, PAYLOAD_LEN);
	}
}

static void an_mtu_is_taken_and_a_byte_more_is_not(void **state)
{
	(void)state;
	put_ip(true, IPPROTO_UDP, PACKET_MAX - 20);
	put16(24, PACKET_MAX - 20);
	assert_null(read_len(PACKET_MAX));
	assert_int_equal(p.payload_len, PACKET_MAX - 28);
	assert_string_equal(read_len(PACKET_MAX + 1), "a packet that is empty or too long");
	assert_string_equal(read_len(0), "a packet that is empty or too long");
}

/* ---- What is refused ---- */

static void assert_refused(const char *why, const char *expected, const char *what, unsigned value)
{
	if (!why || !strstr(why, expected))
		fail_msg("%s %u: %s instead of %s", what, value, why ? why : "taken", expected);
}

static void what_is_cut_anywhere_is_refused(void **state)
{
	(void)state;
	for (enum kind k = TCP4; k < KINDS; k++) {
		make(k);
		for (size_t len = 0; len < bytes_len; len++)
			assert_refused(read_len(len), "", "length", (unsigned)len);
	}
}

/* IP says the truth about what is there, but what is in it is not whole. */
static void a_head_that_is_not_whole_is_refused(void **state)
{
	static const char *const rules[] = { "a TCP header that is not whole",
		"a datagram of another length than it says", "an ICMP header that is not whole" };

	(void)state;
	for (enum kind k = TCP4; k < KINDS; k++) {
		size_t head = head_of(k), own = k % 3 == TCP4 ? 20 : 8;

		for (size_t len = 0; len < own; len++) {
			make(k);
			put16(is_ipv4(k) ? 2 : 4, is_ipv4(k) ? head + len : len);
			assert_refused(read_len(head + len), rules[k % 3], "bytes", (unsigned)len);
			/* No more is looked at when there is more. */
			assert_refused(read_it(), rules[k % 3], "bytes of more", (unsigned)len);
		}
	}
}

static void lengths_that_lie_are_refused(void **state)
{
	static const char ip4[] = "an IPv4 packet of another length than it says";
	static const char ip6[] = "an IPv6 packet of another length than it says";
	static const char udp[] = "a datagram of another length than it says";
	static const char tcp[] = "a TCP header that is not whole";
	static const struct {
		enum kind kind;
		size_t at, value;
		const char *why;
	} lies[] = {
		{ UDP4, 2, 0, ip4 },
		{ UDP4, 2, 19, ip4 },
		{ UDP4, 2, 33, ip4 },
		{ UDP4, 2, 65535, ip4 },
		{ UDP6, 4, 0, udp }, /* a jumbogram says so */
		{ UDP6, 4, 13, ip6 },
		{ UDP6, 4, 65535, ip6 },
		{ UDP4, 24, 0, udp },
		{ UDP4, 24, 7, udp },
		{ UDP4, 24, 11, udp },
		{ UDP4, 24, 13, udp },
		{ UDP4, 24, 65535, udp },
		{ UDP6, 44, 0, udp },
		{ UDP6, 44, 13, udp },
		{ TCP4, 32, 0x0010, tcp },
		{ TCP4, 32, 0x4010, tcp },
		{ TCP4, 32, 0x7010, tcp },
		{ TCP4, 32, 0xf010, tcp },
		{ TCP6, 52, 0x4010, tcp },
		{ TCP6, 52, 0x7010, tcp },
	};

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(lies); i++) {
		make(lies[i].kind);
		put16(lies[i].at, lies[i].value);
		assert_refused(read_it(), lies[i].why, "lie", i);
	}
}

static void fragments_are_refused(void **state)
{
	static const uint16_t fields[] = { 0x2000, 0x2001, 0x0001, 0x1fff, 0x8000, 0xa000, 0x6000 };

	(void)state;
	for (unsigned i = 0; i < ARRAY_LEN(fields); i++) {
		make(UDP4);
		put16(6, fields[i]);
		assert_refused(read_it(), "a fragment", "field", fields[i]);
	}
	make(UDP4);
	put16(6, 0x4000); /* not to be fragmented */
	assert_null(read_it());
}

static void options_of_ipv4_are_refused(void **state)
{
	(void)state;
	for (unsigned words = 0; words < 16; words++) {
		make(UDP4);
		bytes[0] = (uint8_t)(0x40 | words);
		if (words != 5)
			assert_refused(read_it(), "options", "words", words);
	}
}

static void what_is_not_ip_is_refused(void **state)
{
	(void)state;
	for (unsigned version = 0; version < 16; version++) {
		make(UDP6);
		bytes[0] = (uint8_t)(version << 4);
		if (version != 4 && version != 6)
			assert_refused(read_it(), "not IP", "version", version);
	}
	make(UDP6);
	bytes[0] = 0x45; /* what was IPv6 is no IPv4, and the other way around */
	assert_refused(read_it(), "IPv4", "as", 4);
	make(UDP4);
	bytes[0] = 0x60;
	assert_refused(read_it(), "IPv6", "as", 6);
}

static void all_other_protocols_and_extension_headers_are_refused(void **state)
{
	static const char rule[] = "a protocol other than TCP, UDP and ICMP echo";

	(void)state;
	for (unsigned protocol = 0; protocol < 256; protocol++) {
		make(ECHO4);
		bytes[9] = (uint8_t)protocol;
		if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP && protocol != IPPROTO_ICMP)
			assert_refused(read_it(), rule, "IPv4 with", protocol);
		make(ECHO6);
		bytes[6] = (uint8_t)protocol;
		if (protocol != IPPROTO_TCP && protocol != IPPROTO_UDP &&
			protocol != IPPROTO_ICMPV6)
			assert_refused(read_it(), rule, "IPv6 with", protocol);
	}
}

/* Whoever judges addresses would take it for one of IPv4, which the stack would not. */
static void an_ipv6_packet_has_no_address_of_ipv4(void **state)
{
	static const char rule[] = "an IPv6 packet with an address of IPv4";
	static const size_t addresses[] = { 8, 24 };

	(void)state;
	for (enum kind k = TCP6; k < KINDS; k++)
		for (unsigned i = 0; i < ARRAY_LEN(addresses); i++) {
			make(k);
			assert_int_equal(
				inet_pton(AF_INET6, "::ffff:8.8.8.8", bytes + addresses[i]), 1);
			assert_refused(read_it(), rule, "kind", k);
		}
}

/* So far as there is somebody to tell it to. */
static void what_is_refused_may_be_answered(void **state)
{
	uint8_t packet[PACKET_MAX];
	struct packet back;
	size_t len;

	(void)state;
	for (unsigned i = 0; i < 5; i++) {
		enum kind k = i < 3 ? ECHO4 : ECHO6;
		size_t head = head_of(k);

		make(k);
		if (i == 0)
			bytes[9] = IPPROTO_SCTP;
		else if (i == 1)
			bytes[0] = 0x46; /* with an option */
		else if (i == 2)
			put16(6, 0x2000); /* the first fragment */
		else
			bytes[6] = i == 3 ? IPPROTO_SCTP : IPPROTO_FRAGMENT;
		assert_non_null(read_it());
		assert_int_equal(p.len, bytes_len);
		assert_address(&p.source, is_ipv4(k) ? "198.18.0.2" : "fd5c::2");
		len = packet_refusal(&p, packet);
		assert_null(packet_read(packet, len, &back));
		assert_int_equal(back.kind, PACKET_ERROR);
		assert_memory_equal(packet + head + 8, bytes, bytes_len);
	}
	make(UDP4);
	put16(6, 0x2001); /* the others: RFC 1122, 3.2.2 */
	assert_non_null(read_it());
	assert_int_equal(p.len, 0);
	assert_non_null(p.bytes);
	assert_address(&p.target, "203.0.113.7");
	make(UDP4);
	bytes[0] = 0x44;
	assert_non_null(read_it());
	assert_int_equal(p.len, 0);
	make(UDP4);
	put16(2, 2000);
	assert_non_null(read_it());
	assert_int_equal(p.len, 0);
	assert_null(p.bytes);
	make(UDP6);
	put16(4, 2000);
	assert_non_null(read_it());
	assert_int_equal(p.len, 0);
}

/* ---- ICMP ---- */

static void put_icmp(bool ipv4, uint8_t type, uint8_t code)
{
	size_t at = put_ip(ipv4, ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, 24);

	bytes[at] = type;
	bytes[at + 1] = code;
}

static const char *icmp_of(bool ipv4, unsigned type)
{
	put_icmp(ipv4, (uint8_t)type, 0);
	if (read_it())
		return "refused";
	return p.kind == PACKET_NOISE ? "noise" : p.kind == PACKET_ERROR ? "error" : "echo";
}

static void of_icmp_there_are_echoes_errors_and_noise(void **state)
{
	(void)state;
	for (unsigned type = 0; type < 256; type++) {
		const char *four = type == 0 || type == 8 ? "echo"
				   : type == 3 || type == 4 || type == 5 || type == 11 || type == 12
					   ? "error"
					   : "refused";
		const char *six = type == 128 || type == 129   ? "echo"
				  : type < 128                 ? "error"
				  : type >= 133 && type <= 136 ? "noise"
				  : type == 143                ? "noise"
							       : "refused";

		assert_string_equal(icmp_of(true, type), four);
		assert_string_equal(icmp_of(false, type), six);
	}
}

static void an_echo_with_a_code_is_none(void **state)
{
	(void)state;
	put_icmp(true, 8, 1);
	assert_refused(read_it(), "ICMP that is no echo", "code", 1);
	put_icmp(false, 128, 1);
	assert_refused(read_it(), "ICMP that is no echo", "code", 1);
}

/* ---- What an error is about ---- */

/* An error about what is in `bytes`, of which it quotes `len`. */
static void put_error(enum kind k, uint8_t type, uint8_t code, size_t len)
{
	static uint8_t quoted[BYTES_MAX];
	bool ipv4 = is_ipv4(k);
	size_t at;

	memcpy(quoted, bytes, len);
	at = put_ip(ipv4, ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6, 8 + len);
	bytes[at] = type;
	bytes[at + 1] = code;
	memcpy(bytes + at + 8, quoted, len);
}

static bool quotes(struct packet *ret)
{
	assert_null(read_it());
	assert_int_equal(p.kind, PACKET_ERROR);
	return packet_quoted(&p, ret);
}

static void an_error_is_about_what_it_quotes(void **state)
{
	struct packet asked, about;

	(void)state;
	for (enum kind k = TCP4; k < KINDS; k++) {
		bool ipv4 = is_ipv4(k);

		make(k);
		if (k % 3 == ECHO4)
			put16(head_of(k) + 6, 0xabcd);
		assert_null(read_it());
		asked = p;
		put_error(k, ipv4 ? 3 : 1, 0, head_of(k) + 8);
		assert_true(quotes(&about));
		assert_int_equal(about.kind, asked.kind);
		assert_int_equal(about.ipv4, ipv4);
		assert_memory_equal(&about.source, &asked.source, sizeof(about.source));
		assert_memory_equal(&about.target, &asked.target, sizeof(about.target));
		assert_int_equal(about.source_port, asked.source_port);
		assert_int_equal(about.target_port, asked.target_port);
		if (k % 3 == ECHO4)
			assert_int_equal(about.sequence, 0xabcd);
		for (size_t len = 0; len < head_of(k) + 8; len++) {
			make(k);
			put_error(k, ipv4 ? 3 : 1, 0, len);
			assert_false(quotes(&about));
		}
		/* The path takes less at a time: nothing has ended. */
		make(k);
		put_error(k, ipv4 ? 3 : 2, ipv4 ? 4 : 0, head_of(k) + 8);
		assert_false(quotes(&about));
	}
}

static void an_error_about_what_nobody_sends_is_about_nothing(void **state)
{
	struct packet about;

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		make(i == 3 ? ECHO6 : ECHO4);
		if (i == 0)
			bytes[9] = IPPROTO_SCTP;
		else if (i == 1)
			bytes[20] = 0; /* a reply */
		else if (i == 2)
			bytes[0] = 0x4f; /* a longer header than there is */
		else
			bytes[0] = 0x45;
		put_error(i == 3 ? ECHO6 : ECHO4, i == 3 ? 1 : 3, 0, i == 3 ? 48 : 28);
		assert_false(quotes(&about));
	}
}

/* RFC 3810: the one extension header that a kernel sends by itself. */
static void put_report(void)
{
	static const uint8_t router_alert[] = { IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0 };
	size_t at = put_ip(false, IPPROTO_HOPOPTS, 36);

	memcpy(bytes + at, router_alert, sizeof(router_alert));
	bytes[at + 8] = 143;
}

static void a_report_of_groups_is_noise_and_no_way_around(void **state)
{
	(void)state;
	put_report();
	assert_null(read_it());
	assert_int_equal(p.kind, PACKET_NOISE);
	for (size_t at = 40; at <= 48; at++) {
		put_report();
		bytes[at] ^= 1;
		assert_refused(read_it(), "a protocol other than", "byte", (unsigned)at);
	}
	put_report();
	put16(4, 8); /* the option alone */
	assert_refused(read_it(), "a protocol other than", "bytes", 8);
}

/* ---- What is built ---- */

/* The Internet's checksum of `len` bytes together with what a pseudo header adds: 0 when it holds. */
static unsigned sum_of(const uint8_t *packet, size_t head, size_t len, bool pseudo)
{
	static uint8_t all[BYTES_MAX];
	unsigned long sum = 0;
	size_t n = 0;

	memset(all, 0, sizeof(all));
	if (pseudo && head == 20) {
		memcpy(all, packet + 12, 8);
		all[9] = packet[9];
		all[10] = (uint8_t)(len >> 8);
		all[11] = (uint8_t)len;
		n = 12;
	} else if (pseudo) {
		memcpy(all, packet + 8, 32);
		all[34] = (uint8_t)(len >> 8);
		all[35] = (uint8_t)len;
		all[39] = packet[6];
		n = 40;
	}
	memcpy(all + n, packet + head, len);
	for (size_t i = 0; i < n + len; i += 2)
		sum += get16(all + i);
	while (sum > 0xffff)
		sum = sum % 0x10000 + sum / 0x10000;
	return 0xffff - (unsigned)sum;
}

static void assert_ip(const uint8_t *packet, size_t len, bool ipv4, uint8_t protocol)
{
	if (ipv4) {
		assert_int_equal(packet[0], 0x45);
		assert_int_equal(get16(packet + 2), len);
		assert_int_equal(packet[9], protocol);
		assert_int_equal(sum_of(packet, 0, 20, false), 0);
		assert_memory_equal(packet + 12, bytes + 16, 4);
		assert_memory_equal(packet + 16, bytes + 12, 4);
		assert_true(packet[8] > 0);
		return;
	}
	assert_int_equal(get16(packet), 0x6000);
	assert_int_equal(get16(packet + 4), len - 40);
	assert_int_equal(packet[6], protocol);
	assert_memory_equal(packet + 8, bytes + 24, 16);
	assert_memory_equal(packet + 24, bytes + 8, 16);
	assert_true(packet[7] > 0);
}

static void a_refusal_comes_from_who_was_meant_and_quotes_the_packet(void **state)
{
	uint8_t packet[PACKET_MAX];
	struct packet back;

	(void)state;
	for (enum kind k = TCP4; k < KINDS; k++) {
		size_t head = head_of(k), len;
		bool ipv4 = is_ipv4(k);

		make(k);
		assert_null(read_it());
		len = packet_refusal(&p, packet);
		assert_int_equal(len, head + 8 + bytes_len);
		assert_ip(packet, len, ipv4, ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
		assert_int_equal(packet[head], ipv4 ? 3 : 1);
		assert_int_equal(packet[head + 1], ipv4 ? 13 : 1);
		assert_int_equal(sum_of(packet, head, len - head, !ipv4), 0);
		assert_memory_equal(packet + head + 8, bytes, bytes_len);
		assert_null(packet_read(packet, len, &back));
		assert_int_equal(back.kind, PACKET_ERROR);
	}
}

static void a_refusal_quotes_no_more_than_has_room(void **state)
{
	uint8_t packet[PACKET_MAX];

	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		bool ipv4 = i == 0;
		size_t head = ipv4 ? 20 : 40, at = put_ip(ipv4, IPPROTO_UDP, PACKET_MAX - head);
		size_t len;

		memset(bytes + at + 8, 'x', PACKET_MAX - head - 8);
		put16(at + 4, PACKET_MAX - head);
		assert_null(read_it());
		len = packet_refusal(&p, packet);
		assert_int_equal(len, ipv4 ? 576 : 1280);
		assert_ip(packet, len, ipv4, ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
		assert_int_equal(sum_of(packet, head, len - head, !ipv4), 0);
		assert_memory_equal(packet + head + 8, bytes, len - head - 8);
	}
}

/* Answer what is in `bytes`; returns the checksum. */
static unsigned assert_datagram(enum kind k, const uint8_t *payload, size_t payload_len)
{
	static uint8_t packet[PACKET_MAX];
	size_t head = head_of(k), len;
	struct packet back;

	make(k);
	assert_null(read_it());
	len = packet_datagram(&p, payload, payload_len, packet);
	assert_int_equal(len, head + 8 + payload_len);
	assert_ip(packet, len, is_ipv4(k), IPPROTO_UDP);
	assert_int_equal(get16(packet + head), 443);
	assert_int_equal(get16(packet + head + 2), 40000);
	assert_int_equal(sum_of(packet, head, len - head, true), 0);
	assert_null(packet_read(packet, len, &back));
	assert_int_equal(back.kind, PACKET_UDP);
	assert_int_equal(back.payload_len, payload_len);
	assert_memory_equal(back.payload, payload, payload_len);
	return get16(packet + head + 6);
}

static void a_datagram_goes_back_to_where_one_came_from(void **state)
{
	uint8_t payload[PACKET_DATAGRAM_MAX];

	(void)state;
	memset(payload, 0xa7, sizeof(payload));
	for (unsigned i = 0; i < 2; i++) {
		(void)assert_datagram(i ? UDP6 : UDP4, payload, 1);
		(void)assert_datagram(i ? UDP6 : UDP4, payload, 2);
		(void)assert_datagram(i ? UDP6 : UDP4, payload, 511);
		(void)assert_datagram(i ? UDP6 : UDP4, payload, PACKET_DATAGRAM_MAX);
	}
}

/* RFC 768: 0 would say that there is no checksum, which IPv6 does not allow. */
static void a_checksum_of_0_is_sent_as_ffff(void **state)
{
	(void)state;
	for (unsigned i = 0; i < 2; i++) {
		enum kind k = i ? UDP6 : UDP4;
		unsigned sum = assert_datagram(k, (const uint8_t[2]){ 0, 0 }, 2);
		uint8_t same[2] = { (uint8_t)(sum >> 8), (uint8_t)sum };

		assert_int_equal(assert_datagram(k, same, 2), 0xffff);
	}
}

static void an_icmpv6_packet_is_sealed_with_its_checksum(void **state)
{
	(void)state;
	put_icmp(false, 136, 0);
	put16(42, 0x5555); /* of before */
	packet_seal_icmp6(bytes);
	assert_int_equal(sum_of(bytes, 40, 24, true), 0);
	assert_int_not_equal(get16(bytes + 42), 0);
}

static void what_is_written_is_what_was_read_but_for_urgent_data(void **state)
{
	uint8_t packet[PACKET_MAX];

	(void)state;
	for (enum kind k = TCP4; k <= TCP6; k += TCP6) {
		size_t head = head_of(k), len, n;
		struct packet was;

		make(k);
		bytes[head + 13] = 0xff;
		put16(head + 14, 0x5678);
		put16(head + 18, 3);
		assert_null(read_it());
		was = p;
		for (n = 0; n <= PAYLOAD_LEN; n++) {
			was.payload_len = n;
			len = packet_write_tcp(&was, packet);
			assert_int_equal(len, head + 20 + n);
			assert_int_equal(sum_of(packet, head, len - head, true), 0);
			assert_null(packet_read(packet, len, &p));
			assert_int_equal(p.ipv4, is_ipv4(k));
			assert_memory_equal(&p.source, &was.source, sizeof(p.source));
			assert_memory_equal(&p.target, &was.target, sizeof(p.target));
			assert_int_equal(p.source_port, 40000);
			assert_int_equal(p.target_port, 443);
			assert_int_equal(p.sequence, 0x89abcdef);
			assert_int_equal(p.acknowledged, 0x01020304);
			assert_int_equal(p.window, 0x5678);
			assert_int_equal(p.flags, 0xff & ~PACKET_TCP_URG);
			assert_int_equal(get16(packet + head + 18), 0);
			assert_int_equal(p.payload_len, n);
			assert_memory_equal(p.payload, PAYLOAD, n);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_programs_send_is_read_in_both_families),
		cmocka_unit_test(tcp_has_its_numbers_flags_and_options),
		cmocka_unit_test(echoes_and_their_answers_are_told_apart),
		cmocka_unit_test(bytes_behind_a_packet_are_not_of_it),
		cmocka_unit_test(an_mtu_is_taken_and_a_byte_more_is_not),
		cmocka_unit_test(what_is_cut_anywhere_is_refused),
		cmocka_unit_test(a_head_that_is_not_whole_is_refused),
		cmocka_unit_test(lengths_that_lie_are_refused),
		cmocka_unit_test(fragments_are_refused),
		cmocka_unit_test(options_of_ipv4_are_refused),
		cmocka_unit_test(what_is_not_ip_is_refused),
		cmocka_unit_test(all_other_protocols_and_extension_headers_are_refused),
		cmocka_unit_test(an_ipv6_packet_has_no_address_of_ipv4),
		cmocka_unit_test(what_is_refused_may_be_answered),
		cmocka_unit_test(of_icmp_there_are_echoes_errors_and_noise),
		cmocka_unit_test(an_echo_with_a_code_is_none),
		cmocka_unit_test(an_error_is_about_what_it_quotes),
		cmocka_unit_test(an_error_about_what_nobody_sends_is_about_nothing),
		cmocka_unit_test(a_report_of_groups_is_noise_and_no_way_around),
		cmocka_unit_test(a_refusal_comes_from_who_was_meant_and_quotes_the_packet),
		cmocka_unit_test(a_refusal_quotes_no_more_than_has_room),
		cmocka_unit_test(a_datagram_goes_back_to_where_one_came_from),
		cmocka_unit_test(a_checksum_of_0_is_sent_as_ffff),
		cmocka_unit_test(an_icmpv6_packet_is_sealed_with_its_checksum),
		cmocka_unit_test(what_is_written_is_what_was_read_but_for_urgent_data),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
