#include "priv/supervisor/verdict.h"

#include <sys/wait.h>

static enum run_cause cause_of_exit(const struct evidence *e)
{
	/* Also when the kernel chose a child and main went on to its own end. */
	if (e->oom)
		return CAUSE_OOM_KILL;
	return WIFSIGNALED(e->wait_status) ? CAUSE_SIGNAL : CAUSE_EXIT;
}

bool verdict_decide(const struct evidence *e, enum run_cause *ret)
{
	/* The limit can be below what the cell itself uses: then the run was out of memory
	 * before its first instruction, which is an answer and no failure. */
	if (!e->started && e->ended_by != EV_OOM && !(e->ended_by == EV_CANCEL))
		return false;

	switch (e->ended_by) {
	case EV_DEADLINE:
		*ret = CAUSE_WALL_TIMEOUT;
		return true;
	case EV_CPU:
		*ret = CAUSE_CPU_TIMEOUT;
		return true;
	case EV_OOM:
		*ret = CAUSE_OOM_KILL;
		return true;
	case EV_CANCEL:
		*ret = CAUSE_CANCELLED;
		return true;
	case EV_EXIT:
		*ret = cause_of_exit(e);
		return true;
	case EV_BROKEN:
	case EV_READY:
	case EV_UNREAD:
	case EV_EMPTY:
	case EV_MAX:
	default:
		return false;
	}
}
