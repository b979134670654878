/* Signal state that a program must not inherit.
 *
 *   runs in    a cell's enter, and children of a zygote
 */
#pragma once

struct fault;

/* Every signal's action back to its default and none blocked. All 64 of them: those that
 * the C library keeps for itself (32, 33) and does not let anybody set can be ignored too,
 * when whoever started us went through posix_spawn(). */
int signals_reset(struct fault *f) __attribute__((nonnull));
