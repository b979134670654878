#include "box/enter/enter.h"

#include "base/fault.h"
#include "box/box.h"
#include "box/enter/start.h"
#include "box/enter/steps.h"
#include "kernel/sys.h"

#include <fcntl.h>

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
	r = sys.execveat(AT_FDCWD, argv[0], argv, envp, 0);
	return fault_set(f, r, "exec %s", argv[0]);
}

int box_enter(void)
{
	static struct enter_state s; /* static: a runtime is too large for a careful stack */
	static struct msg m;
	struct fault f = { 0 };
	int r;

	if (enter_run(&s, &f) < 0)
		box_fail(&f, "enter");
	r = start_await(&m, &f);
	if (r == 0)
		r = start_prepare(&s.enter.runtime, &m, &f);
	if (r == 0)
		(void)become(&s.enter.runtime, &f);
	box_fail(&f, "start");
}
