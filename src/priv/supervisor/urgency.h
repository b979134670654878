/* Who gets a processor first. A run is a chain of processes that wake each other: client,
 * front, supervisor, program, and back. Where the scheduler lets one of them wait for whoever
 * runs at that moment (a program that is being taken down, for half a millisecond), its run
 * waits; where it sends it to a processor that sleeps, that one has to wake.
 *
 * While no more than one run is going on, the supervisor has real-time priority, and the front
 * shares its processor. With more to do, both run as everybody else: there are always others
 * to go on with, and a real-time process that hardly sleeps keeps the kernel's own work from
 * its processor.
 *
 *   runs in    the supervisor of a server
 *   owns       nothing
 *   needs      CAP_SYS_NICE; without it nothing changes, and the log says so
 *   kernel     6.12 for the front's short time slice; older ones ignore it
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct urgency {
	bool wanted; /* false: nothing is ever changed */
	bool urgent; /* as above, at this moment */
	pid_t front; /* 0: there is none */
	int nice;    /* the supervisor's own */
	cpu_set_t cpus;
	uint64_t busy_ns; /* when there was more than one run */
	unsigned turns;   /* ticks since mark_ns, while urgent */
	uint64_t mark_ns;
	uint64_t said_ns; /* when the log heard that the loop did not sleep; 0: never */
};

/* `wanted`: the setting. */
void urgency_init(struct urgency *u, bool wanted) __attribute__((nonnull));

/* The front has been started, or (0) has ended. */
void urgency_front(struct urgency *u, pid_t front) __attribute__((nonnull));

/* Once for each turn of the supervisor's loop. `running` runs are going on at the time `now` of clock_ns(). Returns when it wants to be
 * called again, UINT64_MAX for never. */
uint64_t urgency_tick(struct urgency *u, unsigned running, uint64_t now) __attribute__((nonnull));
