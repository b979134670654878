#include "box/enter/enter.h"

#include "base/fault.h"
#include "box/box.h"
#include "box/enter/start.h"
#include "box/enter/steps.h"

int box_enter(void)
{
	static struct enter_state s; /* static: a runtime is too large for a careful stack */
	static struct start start;
	struct fault f = { 0 };
	int r;

	if (enter_run(&s, &f) < 0)
		box_fail(&f, "enter");
	r = start_await(&s.enter.runtime, &start, &f);
	if (r == 0)
		r = start_prepare(&s.enter.runtime, &start, &f);
	if (r == 0)
		(void)start_become(&s.enter.runtime, &start, &f);
	box_fail(&f, "start");
}
