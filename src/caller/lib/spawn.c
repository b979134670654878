#include "caller/lib/spawn.h"

#include "base/check.h"
#include "base/child.h"
#include "base/fault.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_FD 3
#define HIGH_FD  16 /* where descriptors wait that must not be in the way of 0…11 */

#define CLEANUP_ACTIONS CLEANUP(actions_done) posix_spawn_file_actions_t
#define CLEANUP_ATTR    CLEANUP(attr_done) posix_spawnattr_t

static void actions_done(posix_spawn_file_actions_t *a)
{
	(void)posix_spawn_file_actions_destroy(a);
}

static void attr_done(posix_spawnattr_t *a)
{
	(void)posix_spawnattr_destroy(a);
}

/* Is this very process the program, wherever it lies? */
static bool is_self(void)
{
	static const char name[] = "glovebox";
	char path[4096];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	const char *base;

	if (n <= 0)
		return false;
	path[n] = '\0';
	base = strrchr(path, '/');
	return base && strcmp(base + 1, name) == 0;
}

static const char *find_program(const char *wanted)
{
	const char *named = secure_getenv("GLOVEBOX_PROGRAM");

	if (wanted)
		return wanted;
	if (named && *named)
		return named;
	if (access(GLOVEBOX_PROGRAM, X_OK) < 0 && is_self())
		return "/proc/self/exe";
	return GLOVEBOX_PROGRAM;
}

/* Copies far above the numbers that they become, so that no dup2() of the child
 * overwrites one that is still needed. */
struct lifted {
	int fds[SPAWN_FDS_MAX + 1];
	unsigned count;
};

static void lifted_done(struct lifted *l)
{
	for (unsigned i = 0; i < l->count; i++)
		(void)close(l->fds[i]);
}

static int lift(struct lifted *l, int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);

	if (copy < 0)
		return -errno;
	l->fds[l->count++] = copy;
	return copy;
}

/* posix_spawn's functions return errnos, positive ones. */
static int plan_files(
	const struct spawn_plan *plan, struct lifted *l, posix_spawn_file_actions_t *a)
{
	int r, log = lift(l, plan->log_fd);

	if (log < 0 && log != -EBADF)
		return -log;
	/* EBADF: a daemon that has closed its stderr. */
	r = child_streams(a, log);
	for (unsigned i = 0; i < plan->nfds && r == 0; i++) {
		int fd = lift(l, plan->fds[i]);

		r = fd < 0 ? -fd : posix_spawn_file_actions_adddup2(a, fd, FIRST_FD + (int)i);
	}
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(a, FIRST_FD + (int)plan->nfds);
	return r;
}

int spawn_role(const struct spawn_plan *plan, pid_t *ret_pid, struct fault *f)
{
	/* posix_spawn() takes char *, for reasons of history; it does not write. */
	char name[] = "glovebox", role[32];
	char *const argv[] = { name, role, NULL }, *const envp[] = { NULL };
	const char *program = find_program(plan->program);
	CLEANUP(lifted_done) struct lifted l = { 0 };
	CLEANUP_ACTIONS actions;
	CLEANUP_ATTR attr;
	size_t len = strlen(plan->role);
	int r;

	CHECK(plan->nfds <= SPAWN_FDS_MAX && len < sizeof(role));
	memcpy(role, plan->role, len + 1);
	CHECK(posix_spawn_file_actions_init(&actions) == 0);
	CHECK(posix_spawnattr_init(&attr) == 0);

	r = plan_files(plan, &l, &actions);
	if (r == 0)
		r = child_attributes(&attr);
	if (r == 0)
		r = posix_spawn(ret_pid, program, &actions, &attr, argv, envp);
	if (r == ENOENT && !plan->program)
		return fault_say(f, -r,
			"start %.120s: there is no such program; GLOVEBOX_PROGRAM=PATH in the "
			"environment, or gbx_options.program, names another",
			program);
	return r == 0 ? 0 : fault_set(f, -r, "start %.120s", program);
}

int spawn_wait(pid_t pid)
{
	int status;
	pid_t r;

	do
		r = waitpid(pid, &status, 0);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -1 : status;
}
