/* The network namespace's own loopback device.
 *
 *   runs in    a cell's init
 */
#pragma once

struct fault;

/* Bring `lo` up, so that programs can talk to servers of their own. */
int loopback_up(struct fault *f) __attribute__((nonnull));
