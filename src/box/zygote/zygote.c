#include "box/zygote/zygote.h"

#include "base/fault.h"
#include "box/box.h"
#include "box/zygote/steps.h"

int box_zygote(void)
{
	static struct zygote_state s; /* static: a runtime is too large for a careful stack */
	struct msg_broken m = { 0 };

	s.root.fd = -1;
	(void)zygote_run(&s, &m.fault);
	(void)fault_wrap(&m.fault, "zygote");
	/* The interpreter's own message, so that the supervisor hears one voice here. */
	(void)channel_send(BOX_CHANNEL_FD, MSG_UNFORKED, &m, NULL);
	return BOX_FAILED_STATUS;
}
