/* How the kernel's scheduler treats a process.
 *
 *   runs in    the supervisor
 *   needs      CAP_SYS_NICE for what is better than usual
 */
#pragma once

#include <stdint.h>
#include <sys/types.h>

/* The usual way (SCHED_OTHER), for process `pid`, 0 the caller. `slice_ns`: the time that it
 * asks for at a time, 0 for the kernel's choice; kernels before 6.12 ignore it. 0 or a negative
 * errno. */
int schedule_normal(pid_t pid, int nice, uint64_t slice_ns);

/* Real-time (SCHED_RR) for the caller, with `priority` from 1, the least, to 99. Its children
 * begin as usual. */
int schedule_real_time(unsigned priority);
