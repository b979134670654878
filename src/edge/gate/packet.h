/* What a cell sends, an IP packet at a time: read strictly, so that the gate and the TCP/IP stack
 * behind it cannot see two different things in one. What a program has no need of (fragments,
 * options of IPv4, extension headers of IPv6) is refused as a whole. The cell's interface has no
 * Ethernet: there is nobody to pretend to be.
 *
 *   runs in    the gate
 *   owns       nothing; what is given out points into the packet
 *   trusts     no byte of a packet
 */
#pragma once

#include "wire/network.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PACKET_MAX 16384u /* the interface's MTU */

#define PACKET_TCP_FIN 0x01u
#define PACKET_TCP_SYN 0x02u
#define PACKET_TCP_RST 0x04u
#define PACKET_TCP_PSH 0x08u
#define PACKET_TCP_ACK 0x10u
#define PACKET_TCP_URG 0x20u

enum packet_kind {
	PACKET_NOISE, /* what a kernel sends by itself: solicitations, reports of groups */
	PACKET_ERROR, /* ICMP's word that something did not arrive, and why */
	PACKET_TCP,
	PACKET_UDP,
	PACKET_ECHO /* of ICMP or ICMPv6, or what answers it; both ports are its identifier */
};

struct packet {
	enum packet_kind kind;
	bool ipv4;
	bool is_reply; /* ECHO: the answer to one */
	struct network_address source, target;
	uint16_t source_port, target_port;
	uint32_t sequence, acknowledged; /* TCP's; an echo has the first */
	uint8_t flags;                   /* TCP's */
	uint16_t window;                 /* TCP's, as it stands there */
	const uint8_t *payload;
	size_t payload_len;
	const uint8_t *bytes; /* all of it */
	size_t len;
};

/* Read one. NULL: *ret is what it says. Otherwise why it is refused, as a constant text: then ret->bytes is
 * not NULL if its addresses could be read, and ret->len not 0 if whoever has sent it can be told besides,
 * for which packet_refusal() makes an answer. */
const char *packet_read(const uint8_t *bytes, size_t len, struct packet *ret)
	__attribute__((nonnull));

/* What an ERROR is about, as the cell has sent it: kind, addresses, ports, an echo's sequence. False: that
 * cannot be read, or it ends nothing, being about the size of a packet. */
bool packet_quoted(const struct packet *error, struct packet *ret) __attribute__((nonnull));

/* Build the packet that answers `p` in `ret`, of PACKET_MAX bytes. Both return its
 * length.
 *
 *   refusal    ICMP's "administratively prohibited", as from the address that was meant
 *   datagram   a datagram with `payload` (of at most PACKET_DATAGRAM_MAX bytes), from where `p`, which
 *              is one, was sent to
 */
#define PACKET_DATAGRAM_MAX (PACKET_MAX - 40u - 8u)
size_t packet_refusal(const struct packet *p, uint8_t *ret) __attribute__((nonnull));
size_t packet_datagram(const struct packet *p, const uint8_t *payload, size_t len, uint8_t *ret)
	__attribute__((nonnull));

/* Write the TCP packet that `p` describes, without options or urgent data, into `ret` of PACKET_MAX bytes:
 * packet_read() the other way round. Its payload has at most PACKET_SEGMENT_MAX bytes. Returns its
 * length. */
#define PACKET_SEGMENT_MAX (PACKET_MAX - 40u - 20u)
size_t packet_write_tcp(const struct packet *p, uint8_t *ret) __attribute__((nonnull));

/* Put the checksum into an ICMPv6 packet, behind an IPv6 header with nothing between them. */
void packet_seal_icmp6(uint8_t *bytes) __attribute__((nonnull));
