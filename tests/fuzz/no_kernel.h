/* A kernel that makes nothing, for the state machines of src/priv: processes are entries of a
 * table, groups are numbers, mounts are /dev/null, and the clock stands until it is told to go
 * on. It has the functions of src/kernel and src/priv/launch/view.h that a board calls, and it
 * checks what the real ones could not survive: a signal to a process that is not the board's,
 * something destroyed twice.
 *
 *   runs in    fuzz targets, in the place of src/kernel, src/priv/launch/view.c, base/clock.c
 *   owns       the table; the inner ends of channels belong to the target
 */
#pragma once

#include "kernel/cgroup.h"
#include "kernel/taskstats.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NO_PROCESSES 96
#define NO_BUILDS    512

/* One process that the board has started, or a zygote in its place. */
struct no_process {
	pid_t pid;      /* 0: a free place */
	ino_t identity; /* of its pidfd, which is the read end of a pipe */
	int life_fd;    /* the pipe's write end; -1: dead */
	int channel_fd; /* its end of the channel that it was born with; -1: closed */
	ino_t group;    /* of its leaf; 0: none */
	ino_t home;     /* of the init of its pid namespace; 0: none */
	int status;     /* as wait4() will say */
	bool zygote, init, gate, entered;
	bool ending; /* the kernel has told of its end; it is not to be reaped yet */
};

struct no_kernel {
	uint64_t now_ns;
	struct no_process processes[NO_PROCESSES];
	pid_t last_pid;
	unsigned groups;        /* that exist */
	bool builds[NO_BUILDS]; /* places for builds: those that exist */
	unsigned fail_in;       /* the call with this number fails; 0: none */
	int fail_code;
	bool stubborn;     /* who is killed goes on living */
	bool leaf_renews;  /* an emptied leaf can begin anew */
	bool cage_as_made; /* nothing in a cage has changed */
	bool counts_oom;   /* leaves have killed for memory */
	bool leaf_is_full; /* what a leaf holds is more than may stay */
	int leaf_stays;    /* a negative errno: no leaf can be removed; 0: they can */
	bool no_last_pid;  /* a kernel without checkpoints */
	int views_fail;    /* a negative errno: no view of a language can be made; 0: they can */
	int tasks_fail;    /* a negative errno: nobody can tell who is in a leaf; 0: they can */
	unsigned denied;   /* calls that wait for an answer */
	int records_fail;  /* a negative errno: no exit records can be had; 0: they can */
	unsigned records_count;
	struct taskstats_exit records[80];
};

extern struct no_kernel no;

/* Once, before anything else. */
void no_kernel_install(void);

/* As it was at first, with what is in it closed. */
void no_kernel_reset(void);

/* A process in the group of `group_fd` (-1: none) whose end of a channel is `channel_fd` (taken).
 * NULL: the table is full. *ret_pidfd belongs to the caller. */
struct no_process *no_process_make(int group_fd, int channel_fd, int *ret_pidfd);
/* Dead, to be reaped; with an init everybody in its pid namespace. */
void no_process_die(struct no_process *p, int status);

/* The number by which a descriptor is known again in its copies; 0 for -1. */
ino_t no_identity(int fd);
