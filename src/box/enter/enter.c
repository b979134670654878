#include "box/enter/enter.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "box/box.h"
#include "box/enter/steps.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <unistd.h>

/* The limits that only the run knows. */
static int apply_run_limits(const struct msg_start *start, struct fault *f)
{
	const struct {
		int resource;
		rlim_t soft, hard;
		const char *name;
	} limits[] = {
		{ RLIMIT_FSIZE, start->file_bytes, start->file_bytes, "fsize" },
		/* Soft SIGXCPU, hard SIGKILL one second later. */
		{ RLIMIT_CPU, start->cpu_seconds, start->cpu_seconds + 1, "cpu" },
		{ RLIMIT_NPROC, start->tasks, start->tasks, "nproc" },
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		struct rlimit set = { limits[i].soft, limits[i].hard }, now;
		int r = sys.prlimit(0, limits[i].resource, NULL, &now);

		if (r == 0 && set.rlim_max > now.rlim_max)
			set.rlim_max = now.rlim_max;
		if (r == 0 && set.rlim_cur > set.rlim_max)
			set.rlim_cur = set.rlim_max;
		if (r == 0)
			r = sys.prlimit(0, limits[i].resource, &set, NULL);
		if (r < 0)
			return fault_set(f, r, "rlimit %s", limits[i].name);
	}
	return 0;
}

/* Write the program into the fresh workspace, as its own user. */
static int write_program(const struct runtime *rt, int code_fd, uint64_t len, struct fault *f)
{
	cleanup_fd int fd = sys.openat(AT_FDCWD, rt->main_file,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
	off_t at = 0;

	if (fd < 0)
		return fault_set(f, fd, "create %s", rt->main_file);
	while ((uint64_t)at < len) {
		ssize_t n = sendfile(fd, code_fd, &at, len - (uint64_t)at);

		if (n < 0)
			return fault_set(f, -errno, "write %s", rt->main_file);
		if (n == 0)
			return fault_set(f, -EIO, "the code is shorter than announced");
	}
	return 0;
}

static int place_stdio(const int *stdio, struct fault *f)
{
	for (int i = 0; i < 3; i++) {
		int r = sys.dup3(stdio[i], i, 0);

		if (r < 0)
			return fault_set(f, r, "stdio %d", i);
	}
	/* The channel stays until the exec closes it, to report a failed exec. */
	return 0;
}

static int become(struct runtime *rt, struct fault *f)
{
	char *argv[RUNTIME_ARGV_MAX + 1] = { NULL }, *envp[RUNTIME_ENV_MAX + 1] = { NULL };
	int r;

	for (unsigned i = 0; i < RUNTIME_ARGV_MAX && rt->argv[i][0]; i++)
		argv[i] = rt->argv[i];
	for (unsigned i = 0; i < RUNTIME_ENV_MAX && rt->env[i][0]; i++)
		envp[i] = rt->env[i];
	r = sys.close_range(BOX_CHANNEL_FD + 1, ~0u, 0);
	if (r < 0)
		return fault_set(f, r, "close_range");
	r = sys.fcntl(BOX_CHANNEL_FD, F_SETFD, FD_CLOEXEC);
	if (r < 0)
		return fault_set(f, r, "close-on-exec");
	r = seccomp_install(SECCOMP_PROGRAM, f);
	if (r < 0)
		return r;
	r = sys.execveat(AT_FDCWD, argv[0], argv, envp, 0);
	return fault_set(f, r, "exec %s", argv[0]);
}

int box_enter(void)
{
	static struct enter_state s; /* static: a runtime is too large for a careful stack */
	static struct msg m;
	struct msg_entered entered = { 0 };
	struct fault f = { 0 };
	int r;

	s.init_pidfd = -1;
	for (unsigned i = 0; i < enter_steps_count; i++) {
		if (enter_steps[i].run(&s, &f) < 0) {
			(void)fault_wrap(&f, "%s", enter_steps[i].name);
			box_fail(&f, "enter");
		}
	}
	if (channel_send(BOX_CHANNEL_FD, MSG_ENTERED, &entered, NULL) < 0)
		return BOX_FAILED_STATUS;
	r = box_expect(MSG_START, &m, &f);
	if (r == 0)
		r = write_program(&s.enter.runtime, m.fds[0], m.as.START.code_bytes, &f);
	if (r == 0)
		r = apply_run_limits(&m.as.START, &f);
	if (r == 0)
		r = place_stdio(&m.fds[1], &f);
	if (r == 0)
		(void)become(&s.enter.runtime, &f);
	box_fail(&f, "start");
}
