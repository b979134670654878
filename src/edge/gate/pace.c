#include "edge/gate/pace.h"

#include "base/clock.h"

void pace_init(struct pace *p, uint64_t rate, uint64_t now_ns)
{
	*p = (struct pace){ .rate = rate, .since_ns = now_ns };
}

void pace_charge(struct pace *p, size_t bytes)
{
	uint64_t paid = bytes < p->budget ? bytes : p->budget;

	p->budget -= paid;
	p->debt += bytes - paid;
}

uint64_t pace_earn(struct pace *p, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - p->since_ns > NS_PER_S ? NS_PER_S : now_ns - p->since_ns;
	uint64_t earned = p->rate / NS_PER_US * since_ns / NS_PER_MS +
			  p->rate % NS_PER_US * since_ns / NS_PER_S;
	uint64_t paid = earned < p->debt ? earned : p->debt;

	if (earned > 0) /* otherwise the time counts on */
		p->since_ns = now_ns;
	p->debt -= paid;
	p->budget += earned - paid;
	p->budget = p->budget < p->rate ? p->budget : p->rate;
	return p->debt == 0 ? UINT64_MAX : now_ns + NS_PER_MS;
}
