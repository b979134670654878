/* Which of the instances on this host this one is: a number whose lock file is held for
 * as long as the supervisor lives. The number names its cgroups (glovebox.N) and chooses
 * its block of host uids, so that a server and any number of `glovebox run` can work side
 * by side.
 *
 *   runs in    the supervisor and the probe
 *   owns       the lock and the text of its file; the kernel releases the lock when the
 *              process ends, however it ends
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct fault;

#define LEASE_DIR   "/run/glovebox"
#define LEASE_MAX   64u /* blocks of LEASE_UIDS in the 65,536 ids from uid-base on */
#define LEASE_UIDS  1024u
#define LEASE_CELLS 500u /* cells of one instance: two ids each, 16 for other processes */

struct lease {
	unsigned number;
	int fd; /* the locked file */
};

/* Take the lowest free number. -EBUSY when all are taken. */
int lease_take(struct lease *ret, struct fault *f) __attribute__((nonnull));

/* Is there no living instance of that number? For cgroup_sweep(); `ctx` is the own lease. */
bool lease_is_dead(unsigned number, void *ctx);

/* Write down what others must clean up when this instance dies; lease_sweep() reads it. */
#define LEASE_RECORD_MAX 16384
int lease_record(const struct lease *l, const char *text) __attribute__((nonnull));

/* Give `sweep` each line of the record of every dead instance, and of the one that this
 * number has already (from an earlier holder, or of groups that are gone by now). 0 of it
 * says that the line is clean, and it is forgotten. Returns how many records were cleared. */
typedef int lease_sweep_fn(const char *line, unsigned number);
unsigned lease_sweep(const struct lease *own, lease_sweep_fn *sweep) __attribute__((nonnull));

void lease_release(struct lease *l) __attribute__((nonnull));
