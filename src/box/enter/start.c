#include "box/enter/start.h"

#include "base/fault.h"
#include "base/own.h"
#include "box/box.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>

int start_await(struct msg *ret, struct fault *f)
{
	struct rusage now = { 0 };
	struct msg_entered entered = { 0 };
	int r;

	/* Fails for a wrong pointer only. */
	(void)getrusage(RUSAGE_SELF, &now);
	entered.minor_faults = (uint64_t)now.ru_minflt;
	entered.major_faults = (uint64_t)now.ru_majflt;
	r = channel_send(BOX_CHANNEL_FD, MSG_ENTERED, &entered, NULL);
	if (r < 0)
		return fault_set(f, r, "send ENTERED");
	return box_expect(MSG_START, ret, f);
}

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
	return 0;
}

int start_prepare(const struct runtime *rt, const struct msg *start, struct fault *f)
{
	int r = write_program(rt, start->fds[0], start->as.START.code_bytes, f);

	if (r == 0)
		r = apply_run_limits(&start->as.START, f);
	if (r == 0)
		r = place_stdio(&start->fds[1], f);
	return r;
}
