/* Children that only have to be reaped, because they are nobody's any more:
 *
 *   strays     dying, known and handed over: an ended zygote, a child that was forked for a
 *              cell which is gone
 *   strangers  dead, and known to nobody: a zygote can make children of ours without asking
 *              (CLONE_PARENT), and one that is not reaped keeps its pid namespace, and with
 *              that a cell's init
 *
 *   runs in    the supervisor
 *   owns       the strays, until they are reaped
 *   threads    none
 *   blocks     never
 */
#pragma once

#include "kernel/process.h"

#include <stdbool.h>
#include <stdint.h>

#define REAPER_STRAYS_MAX 64

struct reaper {
	struct process strays[REAPER_STRAYS_MAX];
	uint64_t strangers_ns; /* when to look for them again */
};

void reaper_clear(struct reaper *r) __attribute__((nonnull));

/* Kill `dying` and take it over; it owns nothing afterwards. When there are too many it is
 * left to be reaped as a stranger. */
void reaper_keep(struct reaper *r, struct process *dying) __attribute__((nonnull));

/* Reap what has died: the strays, and now and then those of whom `is_ours(pid, ctx)` is false.
 * It has to claim the strays, too (reaper_knows()). */
void reaper_tick(struct reaper *r, uint64_t now_ns, bool (*is_ours)(pid_t pid, void *ctx),
	void *ctx) __attribute__((nonnull(1, 3)));

/* Is `pid` one of the strays? */
bool reaper_knows(const struct reaper *r, pid_t pid) __attribute__((nonnull));

/* Are there strays? Nothing tells of their end: they have to be looked at again. */
bool reaper_is_busy(const struct reaper *r) __attribute__((nonnull));
