/* A kernel that fails on demand: every entry of the system-call table counts, and the
 * call whose turn it is returns an error without being made.
 *
 *     for (n = 0;; n++) {
 *             flaky_arm(n, EIO);
 *             r = cgroup_create(...);
 *             if (!flaky_disarm())
 *                     break;          (fewer than n calls: all of them were tried)
 *             assert_int_equal(r, -EIO);
 *     }
 *
 * close() counts, but is always made: the kernel frees the descriptor whatever it answers.
 */
#pragma once

#include <stdbool.h>

/* From now on the call number `n` (from 0) fails with `code` (a positive errno), once. */
void flaky_arm(unsigned n, int code);

/* Restore the table. True when the armed call was reached. */
bool flaky_disarm(void);

/* The name of the call that failed last, "" for none. */
const char *flaky_name(void);

/* From now on, for good: `turn` is asked before each call whether it fails, and with which
 * positive errno. It is asked in children, too, and makes no calls of the table itself. */
void flaky_ask(int (*turn)(const char *name));
