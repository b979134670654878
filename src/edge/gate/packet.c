#include "edge/gate/packet.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/ip6.h>
#include <netinet/ip_icmp.h>
#include <string.h>

#define IPV4_HEAD 20u
#define IPV6_HEAD 40u
#define TCP_HEAD  20u
#define UDP_HEAD  8u
#define ICMP_HEAD 8u

#define MLD2_REPORT 143 /* RFC 3810: netinet/icmp6.h has no name for it */

static uint16_t get16(const uint8_t *at)
{
	return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t get32(const uint8_t *at)
{
	return (uint32_t)get16(at) << 16 | get16(at + 2);
}

static void put16(uint8_t *at, size_t value)
{
	at[0] = (uint8_t)(value >> 8);
	at[1] = (uint8_t)value;
}

static void put32(uint8_t *at, uint32_t value)
{
	put16(at, value >> 16);
	put16(at + 2, value);
}

static void map_ipv4(const uint8_t *from, struct network_address *ret)
{
	*ret = (struct network_address){ { [10] = 0xff, [11] = 0xff } };
	memcpy(ret->bytes + 12, from, 4);
}

/* ---- Reading ---- */

static const char *read_tcp(const uint8_t *at, size_t len, struct packet *p)
{
	size_t head = len < TCP_HEAD ? 0 : 4u * (at[12] >> 4);

	if (head < TCP_HEAD || head > len)
		return "a TCP header that is not whole";
	p->kind = PACKET_TCP;
	p->source_port = get16(at);
	p->target_port = get16(at + 2);
	p->sequence = get32(at + 4);
	p->acknowledged = get32(at + 8);
	p->flags = at[13];
	p->window = get16(at + 14);
	p->payload = at + head;
	p->payload_len = len - head;
	return NULL;
}

static const char *read_udp(const uint8_t *at, size_t len, struct packet *p)
{
	if (len < UDP_HEAD || get16(at + 4) != len)
		return "a datagram of another length than it says";
	p->kind = PACKET_UDP;
	p->source_port = get16(at);
	p->target_port = get16(at + 2);
	p->payload = at + UDP_HEAD;
	p->payload_len = len - UDP_HEAD;
	return NULL;
}

/* To none of them is there an answer. */
static bool is_icmp4_error(uint8_t type)
{
	return type == ICMP_DEST_UNREACH || type == ICMP_SOURCE_QUENCH || type == ICMP_REDIRECT ||
	       type == ICMP_TIME_EXCEEDED || type == ICMP_PARAMETERPROB;
}

static const char *read_icmp(const uint8_t *at, size_t len, struct packet *p)
{
	uint8_t request = p->ipv4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST;
	uint8_t reply = p->ipv4 ? ICMP_ECHOREPLY : ICMP6_ECHO_REPLY;

	if (len < ICMP_HEAD)
		return "an ICMP header that is not whole";
	if (!p->ipv4 && ((at[0] >= ND_ROUTER_SOLICIT && at[0] <= ND_NEIGHBOR_ADVERT) ||
				at[0] == MLD2_REPORT)) {
		p->kind = PACKET_NOISE;
		return NULL;
	}
	p->payload = at + ICMP_HEAD;
	p->payload_len = len - ICMP_HEAD;
	if (p->ipv4 ? is_icmp4_error(at[0]) : at[0] < ICMP6_INFOMSG_MASK) {
		p->kind = PACKET_ERROR;
		return NULL;
	}
	if ((at[0] != request && at[0] != reply) || at[1] != 0)
		return "ICMP that is no echo";
	p->kind = PACKET_ECHO;
	p->is_reply = at[0] == reply;
	p->source_port = p->target_port = get16(at + 4);
	p->sequence = get16(at + 6);
	return NULL;
}

static const char *read_transport(uint8_t protocol, const uint8_t *at, size_t len, struct packet *p)
{
	if (protocol == IPPROTO_TCP)
		return read_tcp(at, len, p);
	if (protocol == IPPROTO_UDP)
		return read_udp(at, len, p);
	if (protocol == (p->ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6))
		return read_icmp(at, len, p);
	return "a protocol other than TCP, UDP and ICMP echo";
}

static const char *read_ipv4(const uint8_t *at, size_t len, struct packet *p)
{
	static const char bad[] = "an IPv4 header that is not whole, or has options";
	size_t whole, head = len < IPV4_HEAD ? 0 : 4u * (at[0] & 0xf);

	if (head < IPV4_HEAD)
		return bad;
	whole = get16(at + 2);
	if (whole < head || whole > len)
		return head > IPV4_HEAD ? bad : "an IPv4 packet of another length than it says";
	p->ipv4 = true;
	p->bytes = at;
	map_ipv4(at + 12, &p->source);
	map_ipv4(at + 16, &p->target);
	/* RFC 1122, 3.2.2: what is refused of a datagram is told of its first fragment alone. */
	p->len = get16(at + 6) & IP_OFFMASK ? 0 : whole;
	if (head > IPV4_HEAD)
		return bad;
	if (get16(at + 6) & (IP_MF | IP_OFFMASK | IP_RF))
		return "a fragment";
	return read_transport(at[9], at + IPV4_HEAD, whole - IPV4_HEAD, p);
}

/* A report of groups has an option in front of it (RFC 3810, 5), and is the kernel's own. */
static const char *read_ipv6(const uint8_t *at, size_t len, struct packet *p)
{
	static const uint8_t router_alert[8] = { IPPROTO_ICMPV6, 0, 5, 2, 0, 0, 1, 0 };
	size_t payload;

	if (len < IPV6_HEAD || at[0] >> 4 != 6)
		return "an IPv6 header that is not whole";
	payload = get16(at + 4);
	if (payload > len - IPV6_HEAD)
		return "an IPv6 packet of another length than it says";
	p->bytes = at;
	p->len = IPV6_HEAD + payload;
	memcpy(p->source.bytes, at + 8, 16);
	memcpy(p->target.bytes, at + 24, 16);
	/* It would be taken for one of IPv4, by whoever judges its addresses. */
	if (network_is_ipv4(&p->source) || network_is_ipv4(&p->target))
		return "an IPv6 packet with an address of IPv4";
	at += IPV6_HEAD;
	if (p->bytes[6] == IPPROTO_HOPOPTS && payload > sizeof(router_alert) &&
		memcmp(at, router_alert, sizeof(router_alert)) == 0 &&
		at[sizeof(router_alert)] == MLD2_REPORT) {
		p->kind = PACKET_NOISE;
		return NULL;
	}
	return read_transport(p->bytes[6], at, payload, p);
}

const char *packet_read(const uint8_t *bytes, size_t len, struct packet *ret)
{
	*ret = (struct packet){ 0 };
	if (len == 0 || len > PACKET_MAX)
		return "a packet that is empty or too long";
	switch (bytes[0] >> 4) {
	case 4:
		return read_ipv4(bytes, len, ret);
	case 6:
		return read_ipv6(bytes, len, ret);
	default:
		return "a packet that is not IP";
	}
}

/* ---- What an error is about ---- */

/* Where the quoted packet's transport begins; NULL: there is nothing of it. The stack does not keep the
 * lengths of what it quotes. */
static const uint8_t *find_quoted(const struct packet *error, uint8_t *ret_protocol)
{
	const uint8_t *at = error->payload;
	size_t head;

	if (error->payload_len < IPV4_HEAD || at[0] >> 4 != (error->ipv4 ? 4 : 6))
		return NULL;
	head = error->ipv4 ? 4u * (at[0] & 0xf) : IPV6_HEAD;
	if (error->payload_len < head + 8)
		return NULL;
	*ret_protocol = at[error->ipv4 ? 9 : 6];
	return at + head;
}

bool packet_quoted(const struct packet *error, struct packet *ret)
{
	const uint8_t *icmp = error->payload - ICMP_HEAD, *at;
	uint8_t protocol;

	if (error->ipv4 ? icmp[0] == ICMP_DEST_UNREACH && icmp[1] == ICMP_FRAG_NEEDED
			: icmp[0] == ICMP6_PACKET_TOO_BIG)
		return false;
	at = find_quoted(error, &protocol);
	if (!at)
		return false;
	*ret = (struct packet){ .ipv4 = error->ipv4 };
	if (error->ipv4) {
		map_ipv4(error->payload + 12, &ret->source);
		map_ipv4(error->payload + 16, &ret->target);
	} else {
		memcpy(ret->source.bytes, error->payload + 8, 16);
		memcpy(ret->target.bytes, error->payload + 24, 16);
	}
	ret->source_port = get16(at);
	ret->target_port = get16(at + 2);
	ret->kind = protocol == IPPROTO_TCP ? PACKET_TCP : PACKET_UDP;
	if (protocol == IPPROTO_TCP || protocol == IPPROTO_UDP)
		return true;
	ret->kind = PACKET_ECHO;
	ret->source_port = ret->target_port = get16(at + 4);
	ret->sequence = get16(at + 6);
	return protocol == (error->ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6) &&
	       at[0] == (error->ipv4 ? ICMP_ECHO : ICMP6_ECHO_REQUEST);
}

/* ---- Building ---- */

/* The Internet's checksum (RFC 1071), begun with `sum`. */
static uint16_t checksum(uint32_t sum, const uint8_t *at, size_t len)
{
	for (; len > 1; at += 2, len -= 2)
		sum += get16(at);
	if (len)
		sum += (uint32_t)at[0] << 8;
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* Of the header that TCP, UDP and ICMPv6 count in and nobody sends. */
static uint32_t pseudo_sum(const struct packet *p, uint8_t protocol, size_t len)
{
	size_t skip = p->ipv4 ? 12 : 0;
	uint32_t sum = (uint32_t)(protocol + len);

	for (size_t i = skip; i < 16; i += 2)
		sum += (uint32_t)get16(p->source.bytes + i) + get16(p->target.bytes + i);
	return sum;
}

/* IP, from the target of `p` to its source, for `len` bytes behind them. Returns
 * where these go. */
static uint8_t *put_head(const struct packet *p, uint8_t protocol, size_t len, uint8_t *ip)
{
	if (p->ipv4) {
		memset(ip, 0, IPV4_HEAD);
		ip[0] = 0x45;
		put16(ip + 2, IPV4_HEAD + len);
		put16(ip + 6, IP_DF);
		ip[8] = IPDEFTTL;
		ip[9] = protocol;
		memcpy(ip + 12, p->target.bytes + 12, 4);
		memcpy(ip + 16, p->source.bytes + 12, 4);
		put16(ip + 10, checksum(0, ip, IPV4_HEAD));
		return ip + IPV4_HEAD;
	}
	memset(ip, 0, IPV6_HEAD);
	ip[0] = 0x60;
	put16(ip + 4, len);
	ip[6] = protocol;
	ip[7] = IPDEFTTL;
	memcpy(ip + 8, p->target.bytes, 16);
	memcpy(ip + 24, p->source.bytes, 16);
	return ip + IPV6_HEAD;
}

size_t packet_refusal(const struct packet *p, uint8_t *ret)
{
	uint8_t protocol = p->ipv4 ? IPPROTO_ICMP : IPPROTO_ICMPV6;
	/* RFC 1812, 4.3.2.3, and RFC 4443, 2.4: the beginning of what is refused, as much as has room. */
	size_t most = p->ipv4 ? 576 - IPV4_HEAD - ICMP_HEAD : 1280 - IPV6_HEAD - ICMP_HEAD;
	size_t quoted = p->len < most ? p->len : most, len = ICMP_HEAD + quoted;
	uint8_t *icmp = put_head(p, protocol, len, ret);

	memset(icmp, 0, ICMP_HEAD);
	icmp[0] = p->ipv4 ? ICMP_DEST_UNREACH : ICMP6_DST_UNREACH;
	icmp[1] = p->ipv4 ? ICMP_PKT_FILTERED : ICMP6_DST_UNREACH_ADMIN;
	memcpy(icmp + ICMP_HEAD, p->bytes, quoted);
	put16(icmp + 2, checksum(p->ipv4 ? 0 : pseudo_sum(p, protocol, len), icmp, len));
	return (size_t)(icmp - ret) + len;
}

size_t packet_datagram(const struct packet *p, const uint8_t *payload, size_t len, uint8_t *ret)
{
	size_t whole = UDP_HEAD + len;
	uint16_t sum;
	uint8_t *udp;

	CHECK(p->kind == PACKET_UDP && len <= PACKET_DATAGRAM_MAX);
	udp = put_head(p, IPPROTO_UDP, whole, ret);
	put16(udp, p->target_port);
	put16(udp + 2, p->source_port);
	put16(udp + 4, whole);
	put16(udp + 6, 0);
	memcpy(udp + UDP_HEAD, payload, len);
	sum = checksum(pseudo_sum(p, IPPROTO_UDP, whole), udp, whole);
	put16(udp + 6, sum ? sum : 0xffff); /* 0 would mean that there is none: RFC 768 */
	return (size_t)(udp - ret) + whole;
}

size_t packet_write_tcp(const struct packet *p, uint8_t *ret)
{
	const struct packet back = { .ipv4 = p->ipv4, .source = p->target, .target = p->source };
	size_t len = TCP_HEAD + p->payload_len;
	uint8_t *tcp = put_head(&back, IPPROTO_TCP, len, ret);

	CHECK(p->payload_len <= PACKET_SEGMENT_MAX);
	memset(tcp, 0, TCP_HEAD);
	put16(tcp, p->source_port);
	put16(tcp + 2, p->target_port);
	put32(tcp + 4, p->sequence);
	put32(tcp + 8, p->acknowledged);
	tcp[12] = TCP_HEAD / 4 << 4;
	tcp[13] = p->flags & (uint8_t)~PACKET_TCP_URG;
	put16(tcp + 14, p->window);
	if (p->payload_len > 0)
		memcpy(tcp + TCP_HEAD, p->payload, p->payload_len);
	put16(tcp + 16, checksum(pseudo_sum(p, IPPROTO_TCP, len), tcp, len));
	return (size_t)(tcp - ret) + len;
}

void packet_seal_icmp6(uint8_t *bytes)
{
	struct packet p = { .ipv4 = false };
	size_t len = get16(bytes + 4);
	uint8_t *icmp = bytes + IPV6_HEAD;

	memcpy(p.source.bytes, bytes + 8, 16);
	memcpy(p.target.bytes, bytes + 24, 16);
	put16(icmp + 2, 0);
	put16(icmp + 2, checksum(pseudo_sum(&p, IPPROTO_ICMPV6, len), icmp, len));
}
