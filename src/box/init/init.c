#include "box/init/init.h"

#include "base/fault.h"
#include "box/box.h"
#include "box/init/steps.h"

#include <signal.h>

int box_init(void)
{
	struct init_state s = { .root.fd = -1 };
	struct msg_built built = { 0 };
	struct fault f = { 0 };
	struct msg m;

	for (unsigned i = 0; i < init_steps_count; i++) {
		if (init_steps[i].run(&s, &f) < 0) {
			(void)fault_wrap(&f, "%s", init_steps[i].name);
			box_fail(&f, "init");
		}
	}
	if (channel_send(BOX_CHANNEL_FD, MSG_BUILT, &built, NULL) < 0)
		return BOX_FAILED_STATUS;
	/* Orphans are reaped by the kernel itself, because SIGCHLD is ignored (the last step):
	 * nothing is left to do but to hold the namespaces until the channel closes. */
	(void)box_expect(MSG_NONE, &m, &f);
	return 0;
}
