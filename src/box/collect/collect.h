/* The collector: reads what a dead program has left, as that program's user and with nothing
 * but three descriptors.
 *
 *   runs in    the collector, a child of the supervisor
 *   blocks     until the client has read what it writes
 *   trusts     the supervisor
 */
#pragma once

/* Runs as `glovebox collect`; returns an exit status. */
int box_collect(void);
