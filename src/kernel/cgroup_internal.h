/* What the files of kernel/cgroup.h share: the parsers of kernel texts, the decision
 * where an instance lives, access to control files, and one table of operations for each
 * version of control groups.
 *
 *   cgroup_parse.c  texts to structs; no system calls
 *   cgroup_place.c  what this host has, and what follows from it
 *   cgroup_tree.c   the instance's groups: made, moved into, removed
 *   cgroup_record.c the same from a text that a dead instance left
 *   cgroup_sweep.c  ending and removing what is named glovebox.N, and nothing else
 *   cgroup.c        a cell's leaf
 *   cgroup_usage.c  what a leaf has used
 *   cgroup_v1.c, cgroup_v2.c  the files of a leaf
 *   cgroup_file.c   one control file at a time
 *
 *   runs in    as kernel/cgroup.h
 */
#pragma once

#include "base/clock.h"
#include "kernel/cgroup.h"

#include <stddef.h>

#define CGROUP_BIT(c)     (1u << (c))
#define CGROUP_PATH_MAX   256
#define CGROUP_MOUNTS_MAX 16
#define CGROUP_TEXT_MAX   4096 /* no control file that is read here comes near it */
#define CGROUP_PREFIX     "glovebox."
#define CGROUP_SUPERVISOR "supervisor" /* the leaf for our own process, beside the cells */
#define CGROUP_PERIOD_US  100000u
#define CGROUP_QUOTA_MIN  1000u /* the kernel's own floor, in us */

/* ---- cgroup_parse.c ---- */

struct cgroup_mount {
	int version;
	bool read_only;
	unsigned controllers;       /* CGROUP_BIT()s; v1 only */
	char root[CGROUP_PATH_MAX]; /* the group that is seen at `point` */
	char point[CGROUP_PATH_MAX];
};

struct cgroup_mounts {
	struct cgroup_mount m[CGROUP_MOUNTS_MAX];
	unsigned count;
};

/* The calling process's groups, "" where /proc/self/cgroup has no line. */
struct cgroup_own {
	char unified[CGROUP_PATH_MAX];
	char v1[CGROUP_CONTROLLER_MAX][CGROUP_PATH_MAX];
};

/* /proc/self/mountinfo. Mounts of other kinds, of named v1 hierarchies, and those with a
 * path too long for us are left out. -EINVAL for a line that is none. */
int cgroup_parse_mountinfo(const char *text, struct cgroup_mounts *ret) __attribute__((nonnull));

/* /proc/self/cgroup. -EINVAL for a line that is none, -ENAMETOOLONG. */
int cgroup_parse_own(const char *text, struct cgroup_own *ret) __attribute__((nonnull));

/* Names separated by white space or commas; those that are not ours do not count. */
unsigned cgroup_parse_controllers(const char *text) __attribute__((nonnull));

/* The number after `key` in lines of "key number". -ENOENT, or -EINVAL when what follows
 * the key is no number. */
int cgroup_parse_key(const char *text, const char *key, uint64_t *ret) __attribute__((nonnull));

/* 0 when no cell could be misplaced by `path` (--cgroup): absolute, no "", "." or "..". */
int cgroup_check_path(const char *path) __attribute__((nonnull));

/* `group`, as /proc/self/cgroup has it, seen from a mount whose root is `root`: a path
 * that begins with "/". False when it is not below. */
bool cgroup_relative(const char *root, const char *group, char ret[CGROUP_PATH_MAX])
	__attribute__((nonnull));

/* The number N of a name "glovebox.N"; false for any other name. */
bool cgroup_instance_number(const char *name, unsigned *ret) __attribute__((nonnull));

/* Cut "/glovebox.N/supervisor" off the end: where a process that a supervisor left behind
 * or re-executed lives is not where its instances belong. */
void cgroup_strip_instance(char *group) __attribute__((nonnull));

const char *cgroup_controller_name(enum cgroup_controller c);

/* ---- cgroup_place.c ---- */

/* All that decides where the unified groups go. */
struct cgroup_sight {
	const char *path; /* --cgroup or "" */
	bool systemd;     /* it is the host's init */
	bool is_root;
	bool own_is_top; /* the hierarchy's real root: processes and children may mix there */
	bool own_writable;
	bool own_delegated;       /* systemd marked it as ours */
	bool own_shared;          /* other processes are in it */
	bool top_is_real;         /* what is mounted is the hierarchy's real root */
	unsigned own_controllers; /* those it may hand on to children */
	unsigned wanted;          /* those that no v1 hierarchy has and the top has */
};

enum cgroup_place {
	CGROUP_PLACE_PATH,      /* where --cgroup says */
	CGROUP_PLACE_OWN,       /* below the own group, which may keep its processes */
	CGROUP_PLACE_LEAVE_OWN, /* below the own group, after moving into a leaf */
	CGROUP_PLACE_TOP,       /* below the hierarchy's root */
	CGROUP_PLACE_SCOPE,     /* systemd has to be asked for a delegated scope */
	CGROUP_PLACE_NONE
};

enum cgroup_place cgroup_decide(const struct cgroup_sight *s) __attribute__((nonnull));

/* This host, looked at. `unified_fd` is the root of the cgroup2 mount that was chosen:
 * the caller closes it. It is mounted for us alone when the host has no usable one. */
struct cgroup_host {
	struct cgroup_mounts mounts;
	struct cgroup_own own;
	struct cgroup_sight sight;
	int unified_fd;
	int unified;                    /* index into mounts, -1: mounted for us alone */
	char own_base[CGROUP_PATH_MAX]; /* the own unified group, from the mount's root */
};

int cgroup_look(const char *path, struct cgroup_host *ret, struct fault *f)
	__attribute__((nonnull));
void cgroup_host_done(struct cgroup_host *h) __attribute__((nonnull));

/* The mount of the v1 hierarchy that has controller `c`, or -1. */
int cgroup_find_v1(const struct cgroup_mounts *m, enum cgroup_controller c)
	__attribute__((nonnull));

/* ---- cgroup_sweep.c ---- */

#define CGROUP_SWEEP_NS (2 * NS_PER_S) /* how long anything here may wait in all */

/* End and remove all that is in an instance's group, but the leaf that we are in. */
int cgroup_empty_instance(int dir_fd, uint64_t deadline_ns);

/* The same, and remove the group `name` itself. */
int cgroup_remove_instance(int base_fd, const char *name, uint64_t deadline_ns)
	__attribute__((nonnull));

/* ---- cgroup_file.c: paths are relative to `dir_fd` ---- */

/* One write() of the whole text. */
int cgroup_write(int dir_fd, const char *file, const char *text) __attribute__((nonnull));
int cgroup_write_u64(int dir_fd, const char *file, uint64_t value) __attribute__((nonnull));
/* Terminated; at most `room` - 1 bytes, else -EFBIG. The length or a negative errno. */
ssize_t cgroup_read(int dir_fd, const char *file, char *text, size_t room) __attribute__((nonnull));
/* The same of a file of values, in one read(); 0 or a negative errno. */
int cgroup_read_values(int dir_fd, const char *file, char *text, size_t room)
	__attribute__((nonnull));
int cgroup_read_u64(int dir_fd, const char *file, uint64_t *ret) __attribute__((nonnull));
/* The same from the beginning of a file that is open, which also re-arms its poll(). */
int cgroup_reread(int fd, char *text, size_t room) __attribute__((nonnull));
int cgroup_reread_key(int fd, const char *key, uint64_t *ret) __attribute__((nonnull));
/* Is this process in the group, and are others? -EFBIG for a group of hundreds. */
int cgroup_read_procs(int dir_fd, bool *ret_us, bool *ret_others) __attribute__((nonnull));
bool cgroup_has(int dir_fd, const char *file) __attribute__((nonnull));
int cgroup_open_dir(int dir_fd, const char *path) __attribute__((nonnull, warn_unused_result));
/* A whole file of /proc; the caller frees it. NULL and *ret_code on failure. */
char *cgroup_slurp(const char *path, int *ret_code) __attribute__((nonnull, warn_unused_result));

/* ---- cgroup.c ---- */

/* The leaf's directory in the hierarchy of controller `c`, -1 where there is none. */
int cgroup_leaf_fd(const struct cgroup_tree *t, const struct cgroup *cg, enum cgroup_controller c)
	__attribute__((nonnull));

/* ---- cgroup_usage.c ---- */

#define CGROUP_ALL (CGROUP_BIT(CGROUP_CONTROLLER_MAX) - 1)

/* Open, anew where they are open, the files of `controllers` (CGROUP_BIT()s). One that this
 * kernel has not is left out. */
int cgroup_open_files(const struct cgroup_tree *t, struct cgroup *cg, unsigned controllers,
	struct fault *f) __attribute__((nonnull));

/* How often the kernel has killed for memory in this leaf. */
uint64_t cgroup_oom_kills(const struct cgroup *cg) __attribute__((nonnull));

/* ---- cgroup_v1.c, cgroup_v2.c: `fd` is a leaf that has the controller ---- */

struct cgroup_ops {
	const char *memory_file, *cpu_file, *pids_file; /* there when the controller is */
	const char *swap_file;                          /* there when swap is accounted */
	const char *files[CGROUP_FILE_MAX];             /* NULL: there is none */
	enum memory_counter peak_counter;               /* what the peak is to be called */
	const char *throttled_key;                      /* of cpu.stat */
	uint64_t throttled_per_us;                      /* its unit */
	/* `was`: what it was called with last; 0: not known. -EDQUOT when more is in use. */
	int (*limit_memory)(int fd, uint64_t was, uint64_t bytes, bool swap, struct fault *f);
	int (*begin_cpu)(int fd, struct fault *f); /* once for a leaf; NULL: nothing to do */
	int (*limit_cpu)(int fd, uint32_t milli, struct fault *f);
	int (*open_oom)(int fd, int *ret_fd, struct fault *f);
	bool (*oom_pending)(int oom_fd); /* consumes */
};

extern const struct cgroup_ops cgroup_v1_ops, cgroup_v2_ops;

const struct cgroup_ops *cgroup_ops_of(const struct cgroup_tree *t, enum cgroup_controller c)
	__attribute__((nonnull));

/* What `milli` thousandths of a CPU are of a period of CGROUP_PERIOD_US, in us. */
uint64_t cgroup_quota_us(uint32_t milli);
