/* What a network namespace remembers of what was done in it: its counters, its lists, its
 * sockets. While that is what it was at first, nothing has left a trace there that a program
 * could see.
 *
 *   runs in    the supervisor
 *   owns       the files through which it looks, from netstate_open() to netstate_close()
 *   blocks     never
 *   trusts     the kernel's own files
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fault;

#define NETSTATE_FILES    8
#define NETSTATE_TEXT_MAX 32768 /* Linux 6.18 with IPv6: 9.1 KB */

struct netstate {
	int fd[NETSTATE_FILES]; /* -1: this kernel has no such file, or nothing is open */
	size_t len;             /* of what they said at first; 0: nothing is open */
	uint64_t unrouted;      /* ...of packets without a route */
	char text[NETSTATE_TEXT_MAX];
};

/* Look for the first time at the namespace that process `pid` is in; the caller knows that it
 * lives. Files that this kernel does not have are left out. -EFBIG: the kernel says more than
 * there is room for. On failure nothing is open. */
int netstate_open(pid_t pid, struct netstate *ret, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* Is everything as it was at first, with no socket open and no connection that has not been
 * forgotten? False also for one that is not open, or cannot be read. */
bool netstate_is_as_made(const struct netstate *n) __attribute__((nonnull));

/* Packets, connections and addresses of datagrams since then for which there was no route, of
 * IPv4 and IPv6: what a program in a namespace without a network tries in vain. 0 also for one
 * that is not open. Two reads, each of some 10 us of CPU. */
uint64_t netstate_unrouted(const struct netstate *n) __attribute__((nonnull));

/* The number below `column` in the lines of protocol `name` ("Ip:") of /proc/net/snmp, which
 * are its heading and its numbers; or behind `name` in /proc/net/snmp6, which has a line for
 * each. 0, -ENOENT, or -EINVAL for what is no number. */
int netstate_parse_snmp(const char *text, const char *name, const char *column, uint64_t *ret)
	__attribute__((nonnull));
int netstate_parse_snmp6(const char *text, const char *name, uint64_t *ret)
	__attribute__((nonnull));
/* What the kernel may hold for the sockets and the connections that are not forgotten yet, in
 * bytes: so many times what one takes at most. A connection that nobody has accepted is charged to
 * no control group, because its socket was made where no process is known. 0 for one that is not
 * open, or cannot be read. */
uint64_t netstate_socket_bytes(const struct netstate *n) __attribute__((nonnull));

/* Harmless if it is not open; a struct of zeros must be cleared first. */
void netstate_close(struct netstate *n) __attribute__((nonnull));
void netstate_clear(struct netstate *n) __attribute__((nonnull));
