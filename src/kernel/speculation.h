/* Per-process kernel state that a program should not inherit: the session keyring, and
 * speculation that other programs could be attacked by.
 *
 *   runs in    a cell's enter
 */
#pragma once

struct fault;

/* Join a new, anonymous session keyring, and force indirect branch speculation off where
 * the CPU and kernel offer it per process. What a kernel does not have is no fault: there
 * is then nothing to inherit. */
int speculation_restrict(struct fault *f) __attribute__((nonnull));
