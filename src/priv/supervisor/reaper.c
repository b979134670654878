#include "priv/supervisor/reaper.h"

#include "base/clock.h"
#include "base/log.h"

#include <sys/resource.h>

#define STRANGERS_NS (100 * NS_PER_MS)

void reaper_clear(struct reaper *r)
{
	*r = (struct reaper){ .strangers_ns = 0 };
	for (unsigned i = 0; i < REAPER_STRAYS_MAX; i++)
		process_clear(&r->strays[i]);
}

void reaper_keep(struct reaper *r, struct process *dying)
{
	struct process s = *dying;

	process_clear(dying);
	if (s.pid <= 0)
		return;
	process_kill(&s);
	for (unsigned i = 0; i < REAPER_STRAYS_MAX; i++) {
		if (r->strays[i].pid == 0) {
			r->strays[i] = s;
			return;
		}
	}
	/* Nobody claims it now: it will be reaped as a stranger. */
	process_close(&s);
}

static void reap_strays(struct reaper *r)
{
	struct rusage usage;
	int status;

	for (unsigned i = 0; i < REAPER_STRAYS_MAX; i++) {
		if (r->strays[i].pid > 0 && process_reap(&r->strays[i], &status, &usage) != 0)
			process_close(&r->strays[i]);
	}
}

void reaper_tick(
	struct reaper *r, uint64_t now_ns, bool (*is_ours)(pid_t pid, void *ctx), void *ctx)
{
	reap_strays(r);
	if (now_ns < r->strangers_ns)
		return;
	r->strangers_ns = now_ns + STRANGERS_NS;
	while (process_reap_stranger(is_ours, ctx) == 1)
		log_warn("stranger", "why=\"reaped a child that no cell knows\"");
}

bool reaper_knows(const struct reaper *r, pid_t pid)
{
	for (unsigned i = 0; i < REAPER_STRAYS_MAX; i++) {
		if (r->strays[i].pid == pid)
			return true;
	}
	return false;
}

bool reaper_is_busy(const struct reaper *r)
{
	for (unsigned i = 0; i < REAPER_STRAYS_MAX; i++) {
		if (r->strays[i].pid > 0)
			return true;
	}
	return false;
}
