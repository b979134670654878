#include <Python.h>

#include "box/zygote/child.h"

#include "base/fault.h"
#include "box/box.h"
#include "box/enter/start.h"
#include "box/enter/steps.h"
#include "box/zygote/begin.h"
#include "box/zygote/finish.h"
#include "box/zygote/inputs.h"
#include "box/zygote/program.h"
#include "box/zygote/python.h"
#include "box/zygote/rehearse.h"
#include "box/zygote/report.h"
#include "kernel/signals.h"
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

/* Where the program is. */
struct program_path {
	char text[sizeof("/workspace/") + INPUTS_PATH_MAX];
};

static void name_program(struct program_path *path, const char *name)
{
	_Static_assert(RUNTIME_PATH_MAX <= INPUTS_PATH_MAX, "a runtime's file has room as well");

	(void)snprintf(path->text, sizeof(path->text), "/workspace/%s", name);
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

/* This process becomes a new interpreter: what it ignores now it would ignore for good. */
static int start_cold(struct runtime *rt, const struct start *s, struct fault *f)
{
	int r = signals_reset(f);

	return r < 0 ? r : start_become(rt, s, f);
}

static int arrange(struct runtime *rt, struct start *s, const struct child_script *script,
	struct program_path *path, struct fault *f)
{
	int r;

	if (zygote_inputs_need_cold(&s->inputs.in))
		return start_cold(rt, s, f);
	if (s->inputs.in.entry)
		name_program(path, s->inputs.in.entry);
	r = zygote_inputs_arrange(script->arrange, &s->inputs.in, f);
	inputs_unload(&s->inputs);
	return r;
}

static int start(struct runtime *rt, const struct child_script *script, struct program_path *path,
	struct report *report, struct fault *f)
{
	static struct start s;
	int r = start_await(rt, &s, f);

	if (r == 0)
		r = start_prepare(rt, &s, f);
	if (r == 0 && s.inputs.map)
		r = arrange(rt, &s, script, path, f);
	if (r == 0)
		r = report_open(report, s.m.fds[START_REPORT], s.m.as.START.report,
			PyThreadState_Get()->native_thread_id, f);
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
	struct program_path path;
	struct report report = { .path = path.text };
	int r;

	r = enter(channel_fd, &s, &f);
	if (r < 0)
		box_fail(&f, "enter");
	r = prepare(script, &f);
	if (r < 0)
		box_fail(&f, "zygote");
	name_program(&path, s.enter.runtime.main_file);
	r = start(&s.enter.runtime, script, &path, &report, &f);
	if (r < 0)
		box_fail(&f, "start");
	begin();
	finish(program_run(&report), &report);
}
