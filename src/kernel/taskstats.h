/* The kernel's word that a process has come to its end, before its memory is taken down: the
 * exit records of the taskstats family of generic netlink. wait4() and a pidfd speak only
 * after that, which for a small program is most of the time that its end takes.
 *
 * The kernel sends a record for every thread that exits on this host, to whoever has
 * registered. A filter in the kernel throws away all but those of the caller's own children,
 * so that the exits of others wake nobody and fill no buffer.
 *
 * A record is a hint that may be missing (the buffer was full, the family is not there):
 * everything has to work without any. One that comes is the kernel's: from port 0, which no
 * process has, and about a process of the caller's.
 *
 *   runs in    the supervisor and the probe, in the initial user, pid and network namespaces
 *   owns       one socket
 *   threads    none
 *   blocks     never
 *   trusts     the kernel; parsed strictly all the same
 *   kernel     5.19 (taskstats version 12: which thread is the last one). CAP_NET_ADMIN for
 *              taskstats_open() alone
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct fault;

struct taskstats_feed {
	int fd; /* readable when there is a record; -1: not open */
	uint16_t family;
	pid_t parent;      /* whose children are heard of: the caller */
	uint64_t empty_ns; /* what comes from now on was sent after this (CLOCK_MONOTONIC) */
	uint64_t heard;    /* records of children */
	uint64_t lost;     /* times that the kernel had no room for one */
};

/* The end of a process: its last thread was its main thread, and no thread of it returns to
 * user mode any more. */
struct taskstats_exit {
	pid_t pid;
	int status;                          /* as wait4() will give it */
	uint64_t minor_faults, major_faults; /* of the main thread, without children */
	bool told; /* it bore CELL_TOLD_NAME (wire/cell.h), which any program can give itself */
	bool had_threads; /* there have been others: the status may be theirs */
};

/* Open, register for all CPUs. A fault says why there will be no records. */
int taskstats_open(struct taskstats_feed *ret, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* The next end of a child: 1 and *ret; 0 when no more has come; -EAGAIN when there may be
 * more, but the caller should do something else in between; otherwise the socket is of no
 * use any more. */
int taskstats_next(struct taskstats_feed *t, struct taskstats_exit *ret) __attribute__((nonnull));

/* Add the faults of the children that it has awaited, which /proc tells as long as it was not
 * reaped. 0, or a negative errno: -EBUSY when it still has its memory. */
int taskstats_add_children(struct taskstats_exit *e) __attribute__((nonnull));

/* One message of the kernel: 1 and *ret when it is the end of a child of `parent`; 0 when it
 * is something else; -EBADMSG when it is not what the family's format says. Pure. */
int taskstats_parse(const void *bytes, size_t len, uint16_t family, pid_t parent,
	struct taskstats_exit *ret) __attribute__((nonnull));

void taskstats_close(struct taskstats_feed *t) __attribute__((nonnull));

/* A struct that owns nothing. */
void taskstats_clear(struct taskstats_feed *t) __attribute__((nonnull));
