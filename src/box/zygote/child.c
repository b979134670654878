#include <Python.h>

#include "box/zygote/child.h"

#include "base/fault.h"
#include "box/box.h"
#include "box/enter/start.h"
#include "box/enter/steps.h"
#include "box/zygote/begin.h"
#include "box/zygote/finish.h"
#include "box/zygote/program.h"
#include "box/zygote/python.h"
#include "box/zygote/rehearse.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>

/* The signals for which an interpreter has set something when main.py begins. */
static const int python_signals[] = { SIGINT, SIGPIPE, SIGXFSZ };
static struct sigaction python_actions[3];

int child_init(void)
{
	for (int i = 0; i < 3; i++) {
		if (sigaction(python_signals[i], NULL, &python_actions[i]) < 0)
			return -errno;
	}
	return 0;
}

/* The slate that the steps made clean is that of a process before its interpreter. */
static int restore_signals(struct fault *f)
{
	for (int i = 0; i < 3; i++) {
		if (sigaction(python_signals[i], &python_actions[i], NULL) < 0)
			return fault_set(f, -errno, "signal %d", python_signals[i]);
	}
	return 0;
}

static int enter(int channel_fd, struct enter_state *s, struct fault *f)
{
	int r = sys.dup3(channel_fd, BOX_CHANNEL_FD, O_CLOEXEC);

	if (r >= 0)
		r = sys.close_range(BOX_CHANNEL_FD + 1, ~0u, 0);
	if (r < 0)
		_exit(BOX_FAILED_STATUS); /* nobody to tell */
	r = enter_run(s, f);
	return r == 0 ? restore_signals(f) : r;
}

static int start(const struct runtime *rt, struct fault *f)
{
	static struct msg m;
	int r = start_await(&m, f);

	if (r == 0)
		r = start_prepare(rt, &m, f);
	if (r < 0)
		return r;
	/* Also the channel: that it closes tells that the program runs. */
	r = sys.close_range(BOX_CHANNEL_FD, ~0u, 0);
	return r < 0 ? fault_set(f, r, "close_range") : 0;
}

/* The interpreter as it is before main.py: the zygote has left it so. */
static int prepare(const struct child_script *script, struct fault *f)
{
	int r;

	if (script->after_fork() < 0)
		return python_fault(f, "after the fork");
	if (!script->rehearsal)
		return 0;
	r = rehearse(script->rehearsal, f);
	if (r < 0)
		return r;
	return program_prepare() < 0 ? python_fault(f, "prepare") : 0;
}

_Noreturn void child_live(int channel_fd, const struct child_script *script)
{
	static struct enter_state s; /* static: a runtime is too large for a careful stack */
	struct fault f = { 0 };
	char path[sizeof("/workspace/") + RUNTIME_PATH_MAX];
	int r;

	r = enter(channel_fd, &s, &f);
	if (r < 0)
		box_fail(&f, "enter");
	r = prepare(script, &f);
	if (r < 0)
		box_fail(&f, "zygote");
	(void)snprintf(path, sizeof(path), "/workspace/%s", s.enter.runtime.main_file);
	r = start(&s.enter.runtime, &f);
	if (r < 0)
		box_fail(&f, "start");
	begin();
	finish(program_run(path));
}
