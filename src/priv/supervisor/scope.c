#include "priv/supervisor/scope.h"

#include "base/check.h"
#include "base/child.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/cgroup.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define ANSWER_NS (5 * NS_PER_S) /* for busctl */
#define MOVE_NS   (5 * NS_PER_S) /* for systemd, after its answer: the move is a job of its own */
#define LOOK_MS   10

#define REMEDY                                                                              \
	"start it by \"systemd-run --scope -p Delegate=yes glovebox serve\", as a service " \
	"with Delegate=yes, or with --cgroup PATH"

/* Nothing that the caller's environment or settings say may change what is run here. */
static const char *const programs[] = { "/usr/bin/busctl", "/bin/busctl" };

struct request {
	char name[48], pid[16];
	const char *argv[32];
};

static void fill(struct request *q)
{
	const char *const argv[] = { "busctl", "--system", "--allow-interactive-authorization=no",
		"call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
		"org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))",
		q->name, "fail", "3", /* properties: */
		"PIDs", "au", "1", q->pid, "Delegate", "b", "true", "CollectMode", "s",
		"inactive-or-failed", "0" /* further units */ };

	_Static_assert(sizeof(argv) < sizeof(q->argv), "room for the end of the list");
	(void)snprintf(q->pid, sizeof(q->pid), "%d", (int)getpid());
	(void)snprintf(q->name, sizeof(q->name), "glovebox-%d.scope", (int)getpid());
	memset(q->argv, 0, sizeof(q->argv));
	memcpy(q->argv, argv, sizeof(argv));
}

static int spawn(const struct request *q, int err_fd, pid_t *ret_pid)
{
	char *const envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int r;

	CHECK(posix_spawn_file_actions_init(&actions) == 0);
	CHECK(posix_spawnattr_init(&attr) == 0);
	/* These functions return errnos, positive ones. */
	r = child_streams(&actions, err_fd);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(&actions, STDERR_FILENO + 1);
	if (r == 0)
		r = child_attributes(&attr);
	if (r == 0) {
		r = ENOENT;
		for (unsigned i = 0; r == ENOENT && i < ARRAY_LEN(programs); i++)
			r = posix_spawn(ret_pid, programs[i], &actions, &attr,
				(char *const *)(uintptr_t)q->argv, envp);
	}
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

/* Its wait status, or a negative errno; it is gone in any case. */
static int await_end(pid_t pid)
{
	cleanup_fd int pid_fd = sys.pidfd_open(pid, 0);
	uint64_t deadline_ns = clock_ns() + ANSWER_NS;
	struct pollfd p = { .fd = pid_fd, .events = POLLIN };
	int status = 0, r = pid_fd;

	while (r >= 0) {
		r = sys.poll(&p, 1, clock_ms_until(deadline_ns));
		if (r == -EINTR)
			r = 0;
		else if (r == 0)
			r = -ETIMEDOUT;
		else if (r > 0)
			break;
	}
	if (r < 0)
		(void)kill(pid, SIGKILL);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		continue;
	return r < 0 ? r : status;
}

/* What it said, in one line. */
static void read_words(int fd, char *text, size_t room)
{
	ssize_t n = sys.read(fd, text, room - 1);

	text[n < 0 ? 0 : n] = '\0';
	text[strcspn(text, "\n")] = '\0';
}

/* Ask, and await the answer. */
static int ask(const struct request *q, struct fault *f)
{
	cleanup_fd int said_fd = -1;
	char words[160];
	int pipe_fds[2], r;
	pid_t pid = 0;

	/* Never waited for: by the time that it is read, busctl has ended. */
	r = sys.pipe2(pipe_fds, O_CLOEXEC | O_NONBLOCK);
	if (r < 0)
		return fault_set(f, r, "pipe");
	said_fd = pipe_fds[0];
	r = spawn(q, pipe_fds[1], &pid);
	(void)close(pipe_fds[1]);
	if (r < 0)
		return fault_set(f, r, "run %s", programs[0]);
	r = await_end(pid);
	if (r < 0)
		return fault_set(f, r, "%s does not answer", programs[0]);
	if (r == 0)
		return 0;
	read_words(said_fd, words, sizeof(words));
	(void)fault_say(f, -EACCES, "%s", *words ? words : "busctl failed");
	return fault_launder(f);
}

/* Until the own group is one that systemd gave to us. */
static int await_move(const char *path, struct fault *f)
{
	uint64_t deadline_ns = clock_ns() + MOVE_NS;

	for (;;) {
		int r = cgroup_needs_scope(path, f);

		if (r <= 0)
			return r;
		if (clock_ns() >= deadline_ns)
			return fault_say(f, -ETIMEDOUT, "no delegated group came of it in 5 s");
		(void)sys.poll(NULL, 0, LOOK_MS);
	}
}

int scope_enter(const char *path, struct fault *f)
{
	struct request q;
	int r = cgroup_needs_scope(path, f);

	if (r < 0)
		return fault_wrap(f, "control groups");
	if (r == 0)
		return 0;
	fill(&q);
	r = ask(&q, f);
	if (r == 0)
		r = await_move(path, f);
	if (r < 0)
		return fault_wrap(f,
			"no limits can be set below a group that systemd did not delegate; " REMEDY
			"; systemd was asked for %s",
			q.name);
	log_info("scope", "name=%s", q.name);
	return 0;
}
