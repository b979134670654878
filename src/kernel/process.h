/* Making a process in somebody else's namespaces and cgroup, and waiting for it.
 *
 *   runs in    the supervisor and the probe: single-threaded, from the main thread
 *              (PDEATHSIG fires when the parent's *thread* ends)
 *   owns       descriptors go to the caller
 *   kernel     5.7 (CLONE_INTO_CGROUP), 5.3 (pidfd)
 */
#pragma once

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>

struct fault;

/* What a new process inherits: descriptor fds[i] becomes number 3 + i, 0 is /dev/null,
 * 1 and 2 are `out_fd` and `err_fd` (-1: /dev/null). Nothing else survives. */
#define PROCESS_FDS_MAX 8

struct process_plan {
	int image_fd;        /* sealed memfd, executed by descriptor */
	const char *argv[3]; /* argv[0], one argument, NULL */
	int fds[PROCESS_FDS_MAX];
	unsigned nfds;
	int out_fd, err_fd;
	uint64_t namespaces; /* CLONE_NEW… for clone3(), 0 for none */
	int pidns_of;    /* pidfd whose pid namespace the child is born into, -1: the caller's */
	pid_t number;    /* of the child in that namespace, which must be free; 0: the next one */
	int cgroup_fd;   /* v2 group the child is born into, -1: the caller's */
	int new_session; /* 1: away from the caller's terminal and its Ctrl-C */
	/* With CLONE_NEWUSER: who owns the new user namespace, 0 for the caller. What the kernel
	 * counts for each user (inotify instances, keys, pipes) is counted for the owner, too. */
	uint32_t owner_uid;
	int own_root; /* 1: become uid and gid 0 of the new user namespace before exec */
};

struct process {
	pid_t pid; /* in the caller's pid namespace; 0: none */
	int pidfd;
	int release_fd; /* until something is written here the child waits, before its exec */
};

/* Start the child, held before its exec. On success the caller owns *ret. */
int process_spawn(const struct process_plan *plan, struct process *ret, struct fault *f)
	__attribute__((nonnull, warn_unused_result));

/* From now on children may use these processors, whichever the caller keeps to itself, and
 * have this nice value, with the usual policy. */
void process_children_use(const cpu_set_t *cpus, int nice) __attribute__((nonnull));

/* Let it go on to its exec. */
int process_release(struct process *p, struct fault *f) __attribute__((nonnull));

/* Write the user namespace's maps of a child that is still held: `inside[i]` is
 * `outside[i]` for both uids and gids, one id each; setgroups is denied first. */
int process_map_ids(const struct process *p, const uint32_t *inside, const uint32_t *outside,
	unsigned count, struct fault *f) __attribute__((nonnull));

/* Raise the OOM killer's preference for it (0-1000). */
int process_oom_score(const struct process *p, int score, struct fault *f) __attribute__((nonnull));

/* Can a child be made with these CLONE_NEW… flags? 0 or clone3()'s negative errno. */
int process_try_namespaces(uint64_t namespaces);

/* Is `pidfd` a child of the caller, not reaped yet, which has number `pid` in the caller's pid
 * namespace? Anybody can open the pidfd of any process. */
bool process_is_child(pid_t pid, int pidfd);

void process_kill(const struct process *p) __attribute__((nonnull));

/* Reap without blocking: 1 reaped (*ret_status as waitpid(), *ret_usage), 0 still alive,
 * or a negative errno. After 1 `pid` is 0; the descriptors stay until process_close(). */
int process_reap(struct process *p, int *ret_status, struct rusage *ret_usage)
	__attribute__((nonnull));

/* Reap one dead child that `known` does not claim, if the first one found is such: 1, else 0.
 * A process that we started can make children of ours without asking (CLONE_PARENT), and an
 * unreaped one keeps the pid namespace that it died in. */
int process_reap_stranger(bool (*known)(pid_t pid, void *ctx), void *ctx)
	__attribute__((nonnull(1)));

void process_close(struct process *p) __attribute__((nonnull));

/* A struct that owns nothing. */
void process_clear(struct process *p) __attribute__((nonnull));

/* A sealed, executable memfd with these bytes, or with the running program's own. */
int process_image(const char *name, const void *bytes, size_t len, int *ret_fd, struct fault *f)
	__attribute__((nonnull, warn_unused_result));
int process_self_image(int *ret_fd, struct fault *f) __attribute__((nonnull, warn_unused_result));
