#include "edge/gate/pings.h"

#include "base/clock.h"

/* SO_EXPIRE of libslirp's socket.h, and the time until it looks. */
#define KEPT_NS (245 * NS_PER_S)

bool pings_begin(struct pings *p, const struct packet *request, uint64_t now_ns)
{
	for (unsigned i = 0; i < PINGS_MAX; i++) {
		if (p->asked[i].until_ns > now_ns)
			continue;
		p->asked[i] = (struct ping){ now_ns + KEPT_NS, request->target,
			request->target_port, request->sequence };
		return true;
	}
	return false;
}

void pings_end(struct pings *p, const struct network_address *to, uint16_t id, uint32_t sequence)
{
	for (unsigned i = 0; i < PINGS_MAX; i++) {
		struct ping *one = &p->asked[i];

		if (one->until_ns == 0 || one->id != id || one->sequence != sequence ||
			!network_same_bits(&one->address, to, 128))
			continue;
		one->until_ns = 0;
		return;
	}
}
