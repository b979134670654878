/* A cage whose program has ended: kept for another one if nothing in it differs from a new cage
 * (ADR 9), or else removed with all that is in it.
 */
#include "priv/launch/cell_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <poll.h>
#include <string.h>

/* What a leaf that is kept may hold of the program before: the kernel counts in lots, some for
 * each CPU, and keeps caches. */
#define LEAF_LEFT_MAX (UINT64_C(2) << 20)

/* A leaf that cannot be removed, other than for what is in it, is left to the end after this. */
#define LEAF_RETRY_NS (2 * NS_PER_S)

/* What its writable mounts may hold: it stays until the next main replaces them. */
#define SCRATCH_LEFT_MAX (UINT64_C(256) << 10)

bool cell_is_ruin(const struct cell *c)
{
	struct pollfd p = { .fd = c->init.pidfd, .events = POLLIN };

	return sys.poll(&p, 1, 0) != 0;
}

/* Is everything as it was when init had made it? What a program can change without a
 * capability and what outlives its processes are: its leaf (emptied or destroyed), its
 * writable mounts (replaced when touched), the numbering of processes (begun again), and the
 * network namespace. System V and POSIX message queues, keys and new namespaces are denied
 * by the program's filter; the other mounts are read-only. */
static bool is_as_made(const struct cell *c)
{
	uint64_t tasks;

	if (cgroup_tasks(&c->leaf, &tasks) < 0 || tasks > 0)
		return false; /* a dead process that nobody has reaped still has its number */
	return netstate_is_as_made(&c->network);
}

/* Its leaf is for the next program, or gone. One that holds much goes with its cage: the kernel
 * may hold it for what it has cached of the cage. */
static bool leave_leaf(struct cell *c, const struct cell_factory *factory)
{
	struct fault f = { 0 };
	int r = cgroup_renew(factory->tree, &c->leaf, LEAF_LEFT_MAX, &f);

	if (r == 0)
		return true;
	if (r != -EOPNOTSUPP || cgroup_holds_more(&c->leaf, LEAF_LEFT_MAX) ||
		cgroup_destroy(factory->tree, &c->leaf) < 0)
		return false;
	cgroup_clear(&c->leaf);
	return true;
}

bool cell_vacate(struct cell *c, const struct cell_factory *factory)
{
	CHECK(c->state == CELL_DYING);
	if (c->doomed || c->runs >= factory->runs_max || cell_is_ruin(c) ||
		scratch_holds_more(&c->scratch, SCRATCH_LEFT_MAX) || !is_as_made(c))
		return false;
	if (!leave_leaf(c, factory))
		return false;
	scratch_drop_used(&c->scratch);
	refusals_close(&c->refusals);
	process_close(&c->main);
	process_clear(&c->main);
	c->main_died = c->main_ended = false;
	c->fault = (struct fault){ 0 };
	c->renewed = true;
	cell_enter_state(c, CELL_VACANT);
	return true;
}

bool cell_remove(struct cell *c, const struct cell_factory *factory)
{
	struct rusage usage;
	int status, r;

	CHECK(c->state == CELL_DYING);
	if (c->init.pid > 0) {
		drop_fd(&c->init_channel);
		process_kill(&c->init);
		c->doomed = true;
		if (process_reap(&c->init, &status, &usage) == 0)
			return false;
	}
	/* The pages of the writable mounts stay charged as long as the mounts live. */
	scratch_close(&c->scratch);
	drop_fd(&c->build_fd);
	drop_fd(&c->tun_fd);
	r = cgroup_destroy(factory->tree, &c->leaf);
	/* Whatever else the kernel says may pass, too. */
	if (r == -EBUSY || (r < 0 && clock_ns() - c->killed_ns < LEAF_RETRY_NS))
		return false;
	if (r < 0)
		log_warn("cgroup_left", "cell=%s why=\"%s\"", c->leaf.name, strerrordesc_np(-r));
	cgroup_close(&c->leaf);
	netstate_close(&c->network);
	refusals_close(&c->refusals);
	process_close(&c->init);
	process_close(&c->main);
	cell_enter_state(c, CELL_GONE);
	return true;
}
