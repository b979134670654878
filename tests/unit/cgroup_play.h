/* Real control groups, on whatever host this is, below a group of their own: what the tests of leaves
 * and those of trees share.
 *
 *   runs in    unit tests, as root
 */
#pragma once

#include "kernel/cgroup_internal.h"

#include <stdbool.h>
#include <sys/types.h>

#define MIB        (UINT64_C(1) << 20)
#define DEADLINE_S 60 /* emulated guests are slow; nothing waits this long when all is well */

extern const struct cgroup_limits small;

/* The tree that most tests share. */
extern struct cgroup_tree tree;
extern char base_path[64];
extern unsigned first_number;

/* It is made, and taken away: before and after all tests. */
int cgroup_play_begin(void **state);
int cgroup_play_end(void **state);

/* ---- Processes in a leaf ---- */

/* What a child does; it must not return before it is done. */
typedef void child_fn(int report_fd);

struct child {
	pid_t pid;
	int report_fd; /* reads what the child wrote */
};

void child_sleep(int report_fd);

/* Start `run` in the leaf, in every hierarchy before its first step. */
struct child start_in(struct cgroup_tree *t, const struct cgroup *cg, child_fn *run);
char await_report(const struct child *c);
/* The wait status, of which a killed process has WTERMSIG() == SIGKILL. */
int reap(struct child *c);

/* ---- Leaves ---- */

void await_empty(const struct cgroup *cg);
/* Ends when the kernel lets go; a leaf is busy while its last process is reaped. */
void destroy(const struct cgroup_tree *t, struct cgroup *cg);
struct cgroup create(const char *name, const struct cgroup_limits *lim);
void assert_limits(const struct cgroup *cg, const struct cgroup_limits *lim);

/* ---- Census ---- */

unsigned count_entries(int dir_fd, bool only_dirs);
unsigned count_fds(void);
/* Groups directly below every directory of the instance, or of its base. */
unsigned count_groups(const struct cgroup_tree *t, const char *from);
