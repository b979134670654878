#include "edge/gate/special.h"

#include "base/check.h"
#include "base/own.h"

#define V4(a, b, c, d)                                                                           \
	{                                                                                        \
		{                                                                                \
			[10] = 0xff, [11] = 0xff, [12] = (a), [13] = (b), [14] = (c), [15] = (d) \
		}                                                                                \
	}
#define V6(a, b, c, d)                                                                        \
	{                                                                                     \
		{                                                                             \
			(a) >> 8, (a)&0xff, (b) >> 8, (b)&0xff, (c) >> 8, (c)&0xff, (d) >> 8, \
				(d)&0xff                                                      \
		}                                                                             \
	}

/* The first line that an address is in. IANA's special-purpose registries of IPv4 and IPv6 (RFC 6890
 * and what has been added to them), and of clouds what their own documents name. */
/* clang-format off */
static const struct {
	struct network_address address;
	uint8_t prefix; /* of IPv4: behind the 96 bits of the mapped form */
	bool ipv4;
	enum network_verdict is;
} ranges[] = {
	/* Metadata: most clouds; Amazon's for containers; Alibaba; Azure's WireServer, which is a
	 * public address; Oracle's; Amazon's of IPv6 */
	{ V4(169, 254, 169, 254), 32, true,  NETWORK_METADATA },
	{ V4(169, 254, 170, 2),   32, true,  NETWORK_METADATA },
	{ V4(100, 100, 100, 200), 32, true,  NETWORK_METADATA },
	{ V4(168, 63, 129, 16),   32, true,  NETWORK_METADATA },
	{ V4(192, 0, 0, 192),     32, true,  NETWORK_METADATA },
	{ { { 0xfd, 0x00, 0x0e, 0xc2, [14] = 0x02, [15] = 0x54 } }, 128, false, NETWORK_METADATA },

	{ V4(0, 0, 0, 0),         8,  true,  NETWORK_THIS_HOST },
	{ V4(10, 0, 0, 0),        8,  true,  NETWORK_PRIVATE },
	{ V4(100, 64, 0, 0),      10, true,  NETWORK_SHARED },
	{ V4(127, 0, 0, 0),       8,  true,  NETWORK_LOOPBACK },
	{ V4(169, 254, 0, 0),     16, true,  NETWORK_LINK_LOCAL },
	{ V4(172, 16, 0, 0),      12, true,  NETWORK_PRIVATE },
	{ V4(192, 0, 0, 0),       24, true,  NETWORK_RESERVED }, /* IETF protocols */
	{ V4(192, 0, 2, 0),       24, true,  NETWORK_RESERVED }, /* documentation */
	{ V4(192, 88, 99, 0),     24, true,  NETWORK_TRANSLATED }, /* relays of 6to4 */
	{ V4(192, 168, 0, 0),     16, true,  NETWORK_PRIVATE },
	{ V4(198, 18, 0, 0),      15, true,  NETWORK_RESERVED }, /* benchmarks */
	{ V4(198, 51, 100, 0),    24, true,  NETWORK_RESERVED }, /* documentation */
	{ V4(203, 0, 113, 0),     24, true,  NETWORK_RESERVED }, /* documentation */
	{ V4(224, 0, 0, 0),       4,  true,  NETWORK_MULTICAST },
	{ V4(255, 255, 255, 255), 32, true,  NETWORK_BROADCAST },
	{ V4(240, 0, 0, 0),       4,  true,  NETWORK_RESERVED },

	{ V6(0, 0, 0, 0),         128, false, NETWORK_THIS_HOST },
	{ { { [15] = 1 } },       128, false, NETWORK_LOOPBACK },
	{ V6(0, 0, 0, 0),         96,  false, NETWORK_TRANSLATED }, /* "compatible" ones */
	{ { { [8] = 0xff, [9] = 0xff } }, 96, false, NETWORK_TRANSLATED }, /* RFC 2765 */
	{ V6(0x0064, 0xff9b, 0, 0), 96, false, NETWORK_TRANSLATED }, /* NAT64 */
	{ V6(0x0064, 0xff9b, 1, 0), 48, false, NETWORK_TRANSLATED }, /* ...of one's own */
	{ V6(0x2001, 0, 0, 0),    32,  false, NETWORK_TRANSLATED }, /* Teredo */
	{ V6(0x2002, 0, 0, 0),    16,  false, NETWORK_TRANSLATED }, /* 6to4 */
	{ V6(0x2001, 0, 0, 0),    23,  false, NETWORK_RESERVED }, /* IETF protocols */
	{ V6(0x2001, 0x0db8, 0, 0), 32, false, NETWORK_RESERVED }, /* documentation */
	{ V6(0x3fff, 0, 0, 0),    20,  false, NETWORK_RESERVED }, /* documentation */
	{ V6(0xfc00, 0, 0, 0),    7,   false, NETWORK_PRIVATE },
	{ V6(0xfe80, 0, 0, 0),    10,  false, NETWORK_LINK_LOCAL },
	{ V6(0xfec0, 0, 0, 0),    10,  false, NETWORK_PRIVATE }, /* site-local */
	{ V6(0xff00, 0, 0, 0),    8,   false, NETWORK_MULTICAST },
};

/* What of IPv6 is given to hosts of the internet; all else is not in use. */
static const struct network_address global_unicast = V6(0x2000, 0, 0, 0);
#define GLOBAL_UNICAST_BITS 3u
/* clang-format on */

/* ISATAP (RFC 5214) has its address of IPv4 behind this, whatever network is in front. */
static bool is_isatap(const struct network_address *a)
{
	return (a->bytes[8] & 0xfc) == 0 && a->bytes[9] == 0 && a->bytes[10] == 0x5e &&
	       a->bytes[11] == 0xfe;
}

enum network_verdict network_special(const struct network_address *a)
{
	for (unsigned i = 0; i < ARRAY_LEN(ranges); i++) {
		unsigned bits = ranges[i].prefix + (ranges[i].ipv4 ? NETWORK_MAPPED_BITS : 0);

		if (network_same_bits(a, &ranges[i].address, bits))
			return ranges[i].is;
	}
	if (network_is_ipv4(a))
		return NETWORK_ALLOWED;
	if (is_isatap(a))
		return NETWORK_TRANSLATED;
	return network_same_bits(a, &global_unicast, GLOBAL_UNICAST_BITS) ? NETWORK_ALLOWED
									  : NETWORK_RESERVED;
}
