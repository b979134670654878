/* The interface of a cell that has a network: a TUN device, whose other end is a descriptor. It has no
 * Ethernet and no neighbours, only packets.
 *
 *   runs in    the supervisor (opens it), a cell's init (makes and sets it up)
 *   owns       nothing; the descriptor goes to the caller
 *   kernel     5.8 (setns() by pidfd)
 */
#pragma once

struct fault;

/* Open /dev/net/tun in the network namespace of process `pidfd`: what it becomes is in there, and the
 * descriptor, non-blocking, works from anywhere. The caller is in that namespace for a moment; that it
 * cannot come back is no failure to go on with: it aborts. Needs CAP_SYS_ADMIN. */
int tun_open(int pidfd, int *ret_fd, struct fault *f) __attribute__((nonnull, warn_unused_result));

/* Is there a /dev/net/tun that can be opened? 0, or the reason. */
int tun_check(struct fault *f) __attribute__((nonnull));

/* Make it the interface of wire/interface.h in the caller's network namespace, which is the one that it
 * was opened in: addresses, a route to everywhere, up. IPv6 only where the kernel has it. Needs
 * CAP_NET_ADMIN over that namespace. */
int tun_set_up(int tun_fd, struct fault *f) __attribute__((nonnull, warn_unused_result));
