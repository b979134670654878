/* Control groups, whichever way the host has them: each controller is found where it
 * is (v2, or one of the v1 hierarchies), and one `struct cgroup` is a cell's leaf in
 * all of them at once.
 *
 * The v2 core (CLONE_INTO_CGROUP, cgroup.kill, cgroup.events) is always used: it works
 * without any controller, so on a hybrid host the leaf in the unified hierarchy serves
 * for killing and for "is it empty", and the v1 leaves only for limits and counters.
 *
 *   runs in    the supervisor and the probe (root, or owner of a delegated subtree)
 *   owns       the instance's group `glovebox.N` in every hierarchy and all below it
 *   threads    none
 *   kernel     5.14 (cgroup.kill); memory.peak 5.19
 */
#pragma once

#include "wire/verdict.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct fault;

enum cgroup_controller {
	CGROUP_MEMORY,
	CGROUP_CPU,
	CGROUP_CPUACCT, /* v1 only: usage may live in another hierarchy than quotas */
	CGROUP_PIDS,
	CGROUP_CONTROLLER_MAX
};

#define CGROUP_HIERARCHIES_MAX 5 /* unified and one for each controller above */

struct cgroup_hierarchy {
	int version;     /* 1 or 2 */
	int dir_fd;      /* the instance's group `glovebox.N` there */
	char mount[256]; /* where it is mounted */
	char base[256];  /* the group below which ours was made, from the hierarchy's root */
	unsigned made;   /* parts at the end of base that this instance made (--cgroup) */
};

/* Where the cells of this instance live. */
struct cgroup_tree {
	struct cgroup_hierarchy h[CGROUP_HIERARCHIES_MAX]; /* [0] is the unified one */
	unsigned count;
	int of[CGROUP_CONTROLLER_MAX]; /* index into h, or -1: not available */
	bool swap_accounting;          /* memory.swap.max or memory.memsw.* exist */
	bool moved;    /* this process left the base's group for `supervisor` below ours */
	char name[32]; /* "glovebox.3" */
};

struct cgroup_limits {
	uint64_t memory_bytes;
	uint32_t cpu_milli;
	uint32_t pids; /* all tasks of the leaf, init included */
};

/* The control files of a leaf that are read again and again; each stays open. */
enum cgroup_file {
	CGROUP_FILE_MEMORY_USED,
	CGROUP_FILE_MEMORY_PEAK,
	CGROUP_FILE_MEMORY_EVENTS, /* its key oom_kill */
	CGROUP_FILE_CPU_THROTTLED, /* cpu.stat */
	CGROUP_FILE_CPU_USED,      /* v2: cpu.stat, which has the next two as well */
	CGROUP_FILE_CPU_USER,
	CGROUP_FILE_CPU_SYSTEM,
	CGROUP_FILE_PIDS_NOW,
	CGROUP_FILE_PIDS_PEAK,
	CGROUP_FILE_PIDS_EVENTS, /* its key max */
	CGROUP_FILE_MAX
};

/* One cell's leaf. */
struct cgroup {
	int fd[CGROUP_HIERARCHIES_MAX]; /* directories, -1 where there is none */
	int file[CGROUP_FILE_MAX];      /* -1 where this host has no such file */
	int events_fd; /* cgroup.events of the unified leaf: EPOLLPRI when it changes */
	int oom_fd;    /* readable or EPOLLPRI when an OOM may have happened */
	bool oom_seen; /* an event of oom_fd was consumed */
	char name[24];
	uint64_t sampled_peak; /* largest memory.current seen, where there is no peak file */
	/* The limits as last written, in the units of struct cgroup_limits; 0: not known. */
	uint64_t in_force[CGROUP_CONTROLLER_MAX];
};

struct cgroup_usage {
	uint64_t cpu_us, user_us, system_us, throttled_us;
	uint64_t memory_peak_bytes;
	enum memory_counter memory_counter;
	uint32_t pids_peak; /* 0: unknown */
	uint64_t pids_refused;
	uint64_t oom_kills;
};

/* Must systemd be asked for a scope of our own before cgroup_tree_open() can succeed?
 * 1: start this program again by `systemd-run --scope -p Delegate=yes` (--user when not
 * root), as the only process of that scope. 0: no, or it would not help. Changes nothing. */
int cgroup_needs_scope(const char *path, struct fault *f) __attribute__((nonnull));

/* Find the hierarchies and a place for instance `number`, make its groups and move the
 * calling process into a leaf of its own where v2 demands that. `path` is --cgroup or "".
 * A missing controller is no fault here: its of[] is -1 and *ret says so to the caller,
 * who decides. Groups of that name left by a dead instance are emptied first, and what
 * runs in them is killed: the caller holds the lock that makes `number` its own.
 * A refusal says what the administrator can do. */
int cgroup_tree_open(struct cgroup_tree *ret, unsigned number, const char *path, struct fault *f)
	__attribute__((nonnull));

/* Kill and remove everything below the instance's groups, the groups, and those of `path`
 * that were made for it and are empty now. Bounded. */
void cgroup_tree_close(struct cgroup_tree *t) __attribute__((nonnull));

/* Kill what runs in, and remove, the groups of every dead instance; `is_dead(number)`
 * says which. Returns how many were swept. */
int cgroup_sweep(const struct cgroup_tree *t, bool (*is_dead)(unsigned number, void *ctx),
	void *ctx) __attribute__((nonnull(1, 2)));

/* A text by which another instance can find this one's groups, wherever in the hierarchies
 * it lives itself; at most CGROUP_RECORD_MAX bytes with its end. */
#define CGROUP_RECORD_MAX 4096
void cgroup_record(const struct cgroup_tree *t, char ret[CGROUP_RECORD_MAX])
	__attribute__((nonnull));

/* End what runs in the groups of a record, and remove them. `number` is the dead instance's:
 * nothing but groups of its name is touched, and the empty ones above that it had made.
 * 0 when none of them is left: until then the record must be kept. */
int cgroup_sweep_record(const char *text, unsigned number) __attribute__((nonnull));

/* Make leaf `name` with limits that let a cell be built (`lim`), swap off, whole-cell
 * OOM kill. On failure nothing is left behind. */
int cgroup_create(const struct cgroup_tree *t, const char *name, const struct cgroup_limits *lim,
	struct cgroup *ret, struct fault *f) __attribute__((nonnull));

/* Put the run's own limits in force; what is in force already is not written. -EDQUOT, which no
 * call says here, when the leaf already uses more memory than `lim` gives it: the run is out of
 * memory before it began. -ENOMEM is the host's. */
int cgroup_set_limits(const struct cgroup_tree *t, struct cgroup *cg,
	const struct cgroup_limits *lim, struct fault *f) __attribute__((nonnull));

/* Let the next cgroup_set_limits() write the CPU limit in any case: the period under way then
 * begins again, with nothing used of it. */
void cgroup_refill_cpu(struct cgroup *cg) __attribute__((nonnull));

/* Let an empty leaf, in which cgroup_kill() was never used, serve again: its peak of tasks begins anew, and that of memory with the
 * next cgroup_reset_peak(); counters that only grow go on, so that the reader has to know where they stood. It may hold up to
 * `memory_left` bytes that the kernel has not given back. -EBUSY: it holds more, or had an OOM;
 * -EOPNOTSUPP: a peak of this host's groups cannot begin anew. On failure it has to be
 * destroyed. */
int cgroup_renew(const struct cgroup_tree *t, struct cgroup *cg, uint64_t memory_left,
	struct fault *f) __attribute__((nonnull));

/* The file of v1 hierarchy `i` (1 to count - 1) through which a process of one thread moves
 * itself into the leaf, by writing "0". The caller owns the descriptor. */
int cgroup_open_tasks(const struct cgroup_tree *t, const struct cgroup *cg, unsigned i,
	struct fault *f) __attribute__((nonnull));

/* The descriptor for clone3()'s CLONE_INTO_CGROUP. */
int cgroup_clone_fd(const struct cgroup *cg) __attribute__((nonnull));

int cgroup_kill(const struct cgroup *cg) __attribute__((nonnull));

/* 1 populated, 0 empty, or a negative errno. */
int cgroup_populated(const struct cgroup *cg) __attribute__((nonnull));

/* Has the kernel told of an OOM in this leaf? Consumes a pending oom_fd event, and remembers
 * it. */
bool cgroup_oom_announced(const struct cgroup_tree *t, struct cgroup *cg) __attribute__((nonnull));

/* Did the kernel kill for memory in this leaf, as told or as counted? Consumes a pending oom_fd event, and
 * remembers it: on v1 it can come before the kernel's count, and without one when our
 * own kill was faster. */
bool cgroup_oom_happened(const struct cgroup_tree *t, struct cgroup *cg) __attribute__((nonnull));

/* CPU time used so far by the leaf, in microseconds. */
uint64_t cgroup_cpu_us(const struct cgroup_tree *t, const struct cgroup *cg)
	__attribute__((nonnull));

/* Memory charged to the leaf now, in bytes; 0 without the controller. */
uint64_t cgroup_memory_bytes(const struct cgroup *cg) __attribute__((nonnull));

/* Is more charged to it than that? True also if the kernel does not say. */
bool cgroup_holds_more(const struct cgroup *cg, uint64_t bytes) __attribute__((nonnull));

/* Tasks in the leaf, those that are dead but not reaped included. -ENOENT without the
 * controller. */
int cgroup_tasks(const struct cgroup *cg, uint64_t *ret) __attribute__((nonnull));

/* The most tasks that were in it at one time; 0 where the kernel does not say (6.1 does not). */
uint32_t cgroup_tasks_peak(const struct cgroup *cg) __attribute__((nonnull));

/* Let the peak begin again at what is in use now: v1, and v2 from 6.12 on. Where it cannot,
 * the peak stays what it was. */
void cgroup_reset_peak(const struct cgroup *cg) __attribute__((nonnull));

/* Remember the current memory use, where only sampling can tell a peak. */
void cgroup_sample(struct cgroup *cg) __attribute__((nonnull));

/* The counters in it that only grow: what cgroup_renew() leaves, and what a process has used
 * that was there before. The others are 0. */
void cgroup_read_counters(const struct cgroup_tree *t, const struct cgroup *cg,
	struct cgroup_usage *ret) __attribute__((nonnull));

void cgroup_read_usage(const struct cgroup_tree *t, const struct cgroup *cg,
	struct cgroup_usage *ret) __attribute__((nonnull));

/* Remove the leaf and close everything. 0, or -EBUSY when the kernel still holds it: call
 * again later. Accepts a leaf that was never made (all -1). */
int cgroup_destroy(const struct cgroup_tree *t, struct cgroup *cg) __attribute__((nonnull));

/* Close what is open without removing anything; for a leaf that cannot be removed. */
void cgroup_close(struct cgroup *cg) __attribute__((nonnull));

/* A leaf that owns nothing, for a struct that may be destroyed before it was made. */
void cgroup_clear(struct cgroup *cg) __attribute__((nonnull));
