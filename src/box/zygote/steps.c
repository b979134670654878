#include "box/zygote/steps.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "box/box.h"
#include "box/enter/steps.h"
#include "kernel/caps.h"
#include "kernel/signals.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* What putting a child into a cell takes, and what the child needs to drop the rest. */
#define KEPT_CAPABILITIES                                                                   \
	(CAPS_BIT(CAPS_SYS_ADMIN) | CAPS_BIT(CAPS_SYS_CHROOT) | CAPS_BIT(CAPS_SYS_PTRACE) | \
		CAPS_BIT(CAPS_SETUID) | CAPS_BIT(CAPS_SETGID) | CAPS_BIT(CAPS_SETPCAP))

static int step_parent_death(struct zygote_state *s, struct fault *f)
{
	(void)s;
	return box_die_with_supervisor(f);
}

static int step_plan(struct zygote_state *s, struct fault *f)
{
	return root_plan(&s->root, f);
}

static int step_names(struct zygote_state *s, struct fault *f)
{
	static const char host[] = "glovebox";
	int r = sys.sethostname(host, sizeof(host) - 1);

	(void)s;
	return r < 0 ? fault_set(f, r, "sethostname") : 0;
}

static int step_mounts(struct zygote_state *s, struct fault *f)
{
	return root_mount(&s->root, f);
}

static int step_pivot(struct zygote_state *s, struct fault *f)
{
	return root_pivot(&s->root, f);
}

static int step_check_root(struct zygote_state *s, struct fault *f)
{
	return root_check(&s->root, f);
}

static int step_runtime(struct zygote_state *s, struct fault *f)
{
	static struct msg m;
	int r = box_expect(MSG_ENTER, &m, f);

	if (r < 0)
		return r;
	s->runtime = m.as.ENTER.runtime;
	msg_done(&m);
	return 0;
}

/* The agent takes the place and the name of the program, so that argv, sys.path and all
 * that an interpreter derives from them is what it is in a cold start. */
static int step_agent(struct zygote_state *s, struct fault *f)
{
	cleanup_fd int from = sys.openat(AT_FDCWD, ZYGOTE_AGENT, O_RDONLY | O_CLOEXEC, 0);
	cleanup_fd int to = -1, dir = -1;
	int r;

	if (from < 0)
		return fault_set(f, from, "open " ZYGOTE_AGENT);
	dir = sys.openat(AT_FDCWD, "/workspace", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return fault_set(f, dir, "open /workspace");
	/* It belongs to the program's user, whose files this process has no power over. */
	r = sys.fchown(dir, 0, 0);
	if (r == 0)
		r = sys.fchdir(dir);
	if (r < 0)
		return fault_set(f, r, "take /workspace");
	to = sys.openat(
		AT_FDCWD, s->runtime.main_file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (to < 0)
		return fault_set(f, to, "create %s", s->runtime.main_file);
	for (;;) {
		ssize_t n = sendfile(to, from, NULL, 1 << 20);

		if (n <= 0)
			return n < 0 ? fault_set(f, -errno, "copy the agent") : 0;
	}
}

static bool is_pipe(int fd)
{
	struct stat st;

	return sys.fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* A pipe's read end at its end. */
static int empty_stdin(void)
{
	int fds[2], r = sys.pipe2(fds, O_CLOEXEC);

	if (r < 0)
		return r;
	r = sys.dup3(fds[0], 0, 0);
	(void)sys.close(fds[0]);
	(void)sys.close(fds[1]);
	return r;
}

/* What imports print goes nowhere. The read end stays open: a closed one would be an error
 * for them. */
static int silent_outputs(void)
{
	int fds[2], r;

	if (is_pipe(1) && is_pipe(2))
		return 0;
	r = sys.pipe2(fds, 0);
	if (r < 0)
		return r;
	for (int i = 1; r >= 0 && i <= 2; i++) {
		if (!is_pipe(i))
			r = sys.dup3(fds[1], i, 0);
	}
	(void)sys.close(fds[1]);
	return r;
}

/* The interpreter makes its three streams here, once, for every program to come: over
 * pipes, as in a cell. */
static int step_streams(struct zygote_state *s, struct fault *f)
{
	int r = empty_stdin();

	(void)s;
	if (r >= 0)
		r = silent_outputs();
	return r < 0 ? fault_set(f, r, "streams") : 0;
}

/* Also hard: a child could not have more, and the C library derives the size of threads'
 * stacks from what it finds when it starts. */
static int step_rlimits(struct zygote_state *s, struct fault *f)
{
	(void)s;
	return enter_lower_limits(f);
}

static int step_signals(struct zygote_state *s, struct fault *f)
{
	(void)s;
	return signals_reset(f);
}

static int step_drop(struct zygote_state *s, struct fault *f)
{
	int r = caps_keep_only(KEPT_CAPABILITIES, f);

	(void)s;
	if (r < 0)
		return r;
	(void)umask(022);
	r = sys.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (r < 0)
		return fault_set(f, r, "prctl");
	return box_die_with_supervisor(f);
}

static int step_become(struct zygote_state *s, struct fault *f)
{
	char *argv[RUNTIME_ARGV_MAX + 1] = { NULL }, *envp[RUNTIME_ENV_MAX + 1] = { NULL };
	int r;

	for (unsigned i = 0; i < RUNTIME_ARGV_MAX && s->runtime.argv[i][0]; i++)
		argv[i] = s->runtime.argv[i];
	for (unsigned i = 0; i < RUNTIME_ENV_MAX && s->runtime.env[i][0]; i++)
		envp[i] = s->runtime.env[i];
	r = sys.execveat(AT_FDCWD, argv[0], argv, envp, 0);
	return fault_set(f, r, "exec %s", argv[0]);
}

static const struct {
	const char *name;
	int (*run)(struct zygote_state *s, struct fault *f);
} steps[] = {
	{ "parent death", step_parent_death },
	{ "plan", step_plan },
	{ "names", step_names },
	{ "mounts", step_mounts },
	{ "pivot", step_pivot },
	{ "check root", step_check_root },
	{ "runtime", step_runtime },
	{ "agent", step_agent },
	{ "streams", step_streams },
	{ "rlimits", step_rlimits },
	{ "signals", step_signals }, /* before the interpreter looks which are ignored */
	{ "drop", step_drop },       /* after everything that needs more than forking does */
	{ "become", step_become },
};

int zygote_run(struct zygote_state *s, struct fault *f)
{
	for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
		if (steps[i].run(s, f) < 0)
			return fault_wrap(f, "%s", steps[i].name);
	}
	return 0;
}
