/* Which system calls this program cannot do without, tried before anything is made with them:
 * whoever starts it on an older kernel, or under a filter, learns which one is missing and
 * what it is for, in the place of an error from the middle of some step.
 *
 *   runs in    the supervisor and the probe, once, at the start
 *   threads    none
 *   kernel     is what it asks
 */
#pragma once

struct fault;

/* 0, or -ENOSYS with a text that names the first that is missing, since when Linux has it,
 * what for, and the remedy. Nothing is made, changed or left open. Wants CAP_SYS_ADMIN. */
int needs_check(struct fault *f) __attribute__((nonnull, warn_unused_result));
