#include "box/enter/start.h"

#include "base/fault.h"
#include "base/own.h"
#include "box/box.h"
#include "box/cold/library.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the fresh workspace, as its own user. Ahead of the run, because it takes a tenth of the
 * time that a short one has. */
static int make_file(const struct runtime *rt, struct fault *f)
{
	int fd = sys.openat(AT_FDCWD, rt->main_file,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);

	return fd < 0 ? fault_set(f, fd, "create %s", rt->main_file) : fd;
}

int start_await(const struct runtime *rt, struct start *ret, struct fault *f)
{
	struct rusage now = { 0 };
	struct msg_entered entered = { 0 };
	int r;

	ret->file_fd = make_file(rt, f);
	if (ret->file_fd < 0)
		return ret->file_fd;
	/* Fails for a wrong pointer only. */
	(void)getrusage(RUSAGE_SELF, &now);
	entered.minor_faults = (uint64_t)now.ru_minflt;
	entered.major_faults = (uint64_t)now.ru_majflt;
	r = channel_send(BOX_CHANNEL_FD, MSG_ENTERED, &entered, NULL);
	if (r < 0)
		return fault_set(f, r, "send ENTERED");
	return box_expect(MSG_START, &ret->m, f);
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

static int write_program(
	const struct runtime *rt, int fd, int code_fd, uint64_t len, struct fault *f)
{
	off_t at = 0;

	while ((uint64_t)at < len) {
		ssize_t n = sendfile(fd, code_fd, &at, len - (uint64_t)at);

		if (n < 0)
			return fault_set(f, -errno, "write %s", rt->main_file);
		if (n == 0)
			return fault_set(f, -EIO, "the code is shorter than announced");
	}
	return 0;
}

/* Whole seconds: whoever writes to the file leaves the time of the writing, which has nanoseconds.
 * The supervisor looks for this (scratch_is_plain()). */
static int mark_file(int fd, struct fault *f)
{
	struct timespec times[2] = { { .tv_nsec = UTIME_OMIT } };
	struct stat st;
	int r = sys.fstat(fd, &st);

	if (r == 0) {
		times[1].tv_sec = st.st_mtim.tv_sec;
		r = sys.utimensat(fd, NULL, times, 0);
	}
	return r < 0 ? fault_set(f, r, "mark the program's file") : 0;
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

static int take_inputs(const struct runtime *rt, struct start *s, struct fault *f)
{
	int r = inputs_load(
		s->m.fds[0], s->m.as.START.code_bytes, s->m.as.START.inputs_bytes, &s->inputs, f);

	return r < 0 ? r : inputs_write(&s->inputs.in, rt->main_file, f);
}

int start_prepare(const struct runtime *rt, struct start *s, struct fault *f)
{
	int r = write_program(rt, s->file_fd, s->m.fds[0], s->m.as.START.code_bytes, f);

	if (r == 0 && s->m.as.START.mark)
		r = mark_file(s->file_fd, f);
	drop_fd(&s->file_fd); /* a file that is open for writing is not executed */
	if (r == 0 && s->m.as.START.inputs_bytes > 0)
		r = take_inputs(rt, s, f);
	if (r == 0)
		r = apply_run_limits(&s->m.as.START, f);
	if (r == 0)
		r = place_stdio(&s->m.fds[1], f);
	return r;
}

/* No word about the file: the host is short of something. */
static bool is_shortage(int code)
{
	return code == -EAGAIN || code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

/* What a compiler has made, and whoever has told it what to make, is not there or cannot be executed:
 * no failure of ours. (EIO, too: a file that is shorter than it says.) */
static void end_as_shell(const char *program, int code)
{
	(void)dprintf(STDERR_FILENO, "glovebox: %s: %s\n", program, strerror(-code));
	_exit(code == -ENOENT ? 127 : 126);
}

int start_become(struct runtime *rt, const struct start *s, struct fault *f)
{
	static struct inputs_words w; /* static: too large for a careful stack */
	uint32_t report = rt->reports ? s->m.as.START.report : 0;
	char report_text[COLD_ROOM];
	int r;

	inputs_words(
		rt, s->inputs.map ? &s->inputs.in : NULL, s->m.as.START.part == RUN_COMPILER, &w);
	r = report ? cold_is_loadable(w.argv[0]) : 0;
	if (r < 0)
		return fault_set(f, r, "look at %s", w.argv[0]);
	if (r == 0)
		report = 0; /* it tells nothing, and is run by itself alone */
	if (report && cold_hand_over(s->m.fds[START_REPORT], report, report_text, &w, f) < 0)
		return f->code;
	r = sys.close_range(report ? COLD_REPORT_FD + 1 : BOX_CHANNEL_FD + 1, ~0u, 0);
	if (r < 0)
		return fault_set(f, r, "close_range");
	r = sys.fcntl(BOX_CHANNEL_FD, F_SETFD, FD_CLOEXEC);
	if (r < 0)
		return fault_set(f, r, "close-on-exec");
	r = sys.execveat(AT_FDCWD, w.argv[0], w.argv, w.envp, 0);
	if (s->m.as.START.part == RUN_BUILT && !is_shortage(r))
		end_as_shell(w.argv[0], r);
	return fault_set(f, r, "exec %s", w.argv[0]);
}
