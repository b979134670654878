#include "priv/launch/refusals.h"

#include "base/check.h"
#include "base/own.h"
#include "kernel/seccomp.h"

#include <errno.h>
#include <string.h>

#define BURST 16 /* answered in one go, so that others get their turn */

void refusals_clear(struct refusals *r)
{
	*r = (struct refusals){ .fd = -1 };
}

void refusals_take(struct refusals *r, int fd)
{
	CHECK(r->fd < 0);
	*r = (struct refusals){ .fd = fd };
}

void refusals_forget(struct refusals *r)
{
	r->answered = 0;
	r->told = (struct denied){ 0 };
}

static void count(struct denied *told, uint32_t number)
{
	for (unsigned i = 0; i < DENIED_CALLS_MAX; i++) {
		struct denied_call *c = &told->calls[i];

		if (c->times > 0 && c->number != number)
			continue;
		c->number = number;
		c->times++;
		return;
	}
	told->other_calls++;
}

int refusals_hear(struct refusals *r)
{
	if (r->fd < 0)
		return -EBADF;
	for (unsigned i = 0; i < BURST; i++) {
		uint32_t number;
		int one = seccomp_answer(r->fd, &number);

		if (one == 0)
			return 1;
		if (one < 0)
			return one == -EPIPE ? 0 : one;
		count(&r->told, number);
		if (++r->answered >= DENIED_ANSWERS_MAX) {
			r->told.clipped = 1;
			return -EDQUOT;
		}
	}
	return 1;
}

void refusals_close(struct refusals *r)
{
	drop_fd(&r->fd);
}

void refusals_tell(const struct refusals *r, struct denied *ret)
{
	memcpy(ret->calls, r->told.calls, sizeof(ret->calls));
	ret->other_calls = r->told.other_calls;
	ret->clipped = r->told.clipped;
}
