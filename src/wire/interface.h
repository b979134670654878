/* The interface of a run that has a network: what init gives it, and what the gate answers to. The
 * networks are ones that nobody reaches anything with: RFC 2544's for benchmarks, which is no one's on
 * the internet, and a unique local one (RFC 4193) of a number drawn once.
 *
 *   runs in    the box, which sets it up, and the gate
 */
#pragma once

#define INTERFACE_NAME "net0"
/* Fewer and larger packets than Ethernet's; several of them fit into the windows of the gate's stack. */
#define INTERFACE_MTU  16384

/* 198.18.0.0/24 */
#define INTERFACE_NET4      198, 18, 0, 0
#define INTERFACE_CELL4     198, 18, 0, 2
#define INTERFACE_GATE4     198, 18, 0, 1 /* the router: nothing listens there */
#define INTERFACE_RESOLVER4 198, 18, 0, 3
#define INTERFACE_BITS4     24
#define INTERFACE_MASK4     255, 255, 255, 0

/* fd5c:1b0e:93a7::/64 */
#define INTERFACE_NET6      0xfd, 0x5c, 0x1b, 0x0e, 0x93, 0xa7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
#define INTERFACE_CELL6     0xfd, 0x5c, 0x1b, 0x0e, 0x93, 0xa7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2
#define INTERFACE_GATE6     0xfd, 0x5c, 0x1b, 0x0e, 0x93, 0xa7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1
#define INTERFACE_RESOLVER6 0xfd, 0x5c, 0x1b, 0x0e, 0x93, 0xa7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3
#define INTERFACE_BITS6     64
