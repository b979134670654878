/* A program in its cell: its limits, its release, its end, and what it used.
 *
 * The end comes in one of two ways: main is reaped, or the kernel's record of its end says what
 * the reaping will (ADR 8), which then only confirms it.
 */
#include "priv/launch/cell_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "wire/channel.h"

/* RLIMIT_NPROC is a second net: pids.max must be what refuses, because it counts. */
#define NPROC_SLACK UINT32_C(16)

struct cgroup_limits cell_leaf_limits(const struct cell *c, const struct run_limits *l)
{
	return (struct cgroup_limits){ l->memory_bytes + c->base_memory, l->cpu_milli, l->pids };
}

/* Give the program's end of a pipe to its user: without that, /dev/stdout cannot be
 * opened; with more than the one direction, a program could read back its own output. */
static int give_pipe(int fd, mode_t mode, uint32_t uid, struct fault *f)
{
	int r = sys.fchmod(fd, mode);

	/* To the cell's root and the program's group: the owner could change the mode. */
	if (r == 0)
		r = sys.fchown(fd, uid - 1, uid);
	return r < 0 ? fault_set(f, r, "give the pipe to the program's user") : 0;
}

static int give_pipes(const int *fds, uint32_t uid, struct fault *f)
{
	int r = give_pipe(fds[1], 0040, uid, f);

	if (r == 0)
		r = give_pipe(fds[2], 0020, uid, f);
	if (r == 0)
		r = give_pipe(fds[3], 0020, uid, f);
	return r;
}

/* What this request asks for, where it differs from what is in force already. */
static int fit(struct cell *c, const struct cell_factory *factory, const struct run_limits *l,
	struct fault *f)
{
	const struct run_limits *usual = &factory->usual;
	struct cgroup_limits lim = cell_leaf_limits(c, l);
	int r = 0;

	if (l->memory_bytes != usual->memory_bytes || l->cpu_milli != usual->cpu_milli ||
		l->pids != usual->pids)
		r = cgroup_set_limits(factory->tree, &c->leaf, &lim, f);
	if (r == 0 && l->memory_bytes != usual->memory_bytes)
		r = scratch_resize(&c->scratch, l->memory_bytes, f);
	return r;
}

int cell_start(struct cell *c, const struct cell_factory *factory, const struct msg_submit *order,
	const int *fds, struct fault *f)
{
	const struct run_limits *limits = &order->limits;
	struct msg_start start = {
		.code_bytes = order->code_bytes,
		.inputs_bytes = order->inputs_bytes,
		.file_bytes = limits->memory_bytes,
		/* A net far below which the supervisor's own watch has ended the run. */
		.cpu_seconds = limits->timeout_us / 1000000 * (limits->cpu_milli / 1000 + 1) + 5,
		.tasks = limits->pids + NPROC_SLACK,
		.part = order->part,
		.mark = order->collect == COLLECT_IF_TOUCHED,
		.report = order->report,
	};
	int r;

	CHECK(c->state == CELL_READY);
	r = fit(c, factory, limits, f);
	if (r == 0)
		r = give_pipes(fds, cell_program_uid(factory->uid_base, c->slot), f);
	if (r < 0)
		return fault_wrap(f, "cell %lu", (unsigned long)c->id);
	r = channel_send(c->main_channel, MSG_START, &start, fds);
	if (r < 0)
		return fault_set(f, r, "cell %lu: send START", (unsigned long)c->id);
	cell_enter_state(c, CELL_BUSY);
	c->runs++;
	return 0;
}

void cell_evict(struct cell *c)
{
	CHECK(c->state == CELL_READY);
	cell_enter_state(c, CELL_DYING);
	c->killed_ns = clock_ns();
	/* Not by cgroup.kill: Linux 6.18 then kills whatever is born into the leaf later. */
	process_kill(&c->main);
	drop_fd(&c->main_channel);
}

void cell_kill(struct cell *c)
{
	if (c->state == CELL_GONE || c->state == CELL_NONE)
		return;
	if (c->state != CELL_DYING) {
		cell_enter_state(c, CELL_DYING);
		c->killed_ns = clock_ns();
	}
	/* A program that ended by itself and left nothing needs no kill. */
	if (!c->main_ended &&
		!(c->main_died && c->leaf.name[0] && cgroup_populated(&c->leaf) == 0)) {
		if (c->leaf.name[0])
			(void)cgroup_kill(&c->leaf);
		/* It may not have been in the group yet; a second kill is harmless. */
		process_kill(&c->main);
		/* With init its whole pid namespace goes, whatever group it is in. */
		process_kill(&c->init);
		c->doomed = true;
	}
	drop_fd(&c->main_channel);
}

bool cell_reap_main(struct cell *c)
{
	struct rusage usage;
	int status;

	if (c->main_died || c->main.pid <= 0 || process_reap(&c->main, &status, &usage) != 1)
		return c->main_died;
	c->main_died = true;
	if (c->main_ended) {
		/* It has been answered with what the record said. */
		if (status != c->main_status)
			log_err("exit_record", "cell=%s said=%#x was=%#x", c->leaf.name,
				(unsigned)c->main_status, (unsigned)status);
		return true;
	}
	c->main_status = status;
	c->main_usage = usage;
	c->main_died_ns = clock_ns();
	return true;
}

bool cell_end_main(struct cell *c, const struct taskstats_exit *end)
{
	struct taskstats_exit all = *end;
	uint64_t tasks;

	if (c->state != CELL_BUSY || c->main_died || c->main.pid != end->pid)
		return false;
	/* With other threads the status may be one of theirs; another task would go on. */
	if (end->had_threads || cgroup_tasks(&c->leaf, &tasks) < 0 || tasks != 1)
		return false;
	/* wait4() counts the faults of awaited children, the record does not. */
	if (cgroup_tasks_peak(&c->leaf) != 1 && taskstats_add_children(&all) < 0)
		return false;
	c->main_ended = true;
	c->main_status = all.status;
	c->main_usage = (struct rusage){
		.ru_minflt = (long)all.minor_faults,
		.ru_majflt = (long)all.major_faults,
	};
	c->main_died_ns = clock_ns();
	return true;
}

bool cell_is_empty(struct cell *c)
{
	/* Read in any case: that is what makes its event, which comes before main can be
	 * reaped, come only once. */
	bool populated = c->leaf.name[0] != '\0' && cgroup_populated(&c->leaf) != 0;

	(void)cell_reap_main(c);
	return c->main.pid == 0 && !populated;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

uint64_t cell_cpu_us(const struct cell *c, const struct cell_factory *factory)
{
	return less(cgroup_cpu_us(factory->tree, &c->leaf), c->base.cpu_us);
}

void cell_usage(const struct cell *c, const struct cell_factory *factory, struct cgroup_usage *ret)
{
	cgroup_read_usage(factory->tree, &c->leaf, ret);
	ret->cpu_us = less(ret->cpu_us, c->base.cpu_us);
	ret->user_us = less(ret->user_us, c->base.user_us);
	ret->system_us = less(ret->system_us, c->base.system_us);
	ret->throttled_us = less(ret->throttled_us, c->base.throttled_us);
	ret->memory_peak_bytes = less(ret->memory_peak_bytes, c->base_memory);
	ret->pids_refused = less(ret->pids_refused, c->base.pids_refused);
}

bool cell_has_files(
	const struct cell *c, const struct cell_factory *factory, const struct msg_submit *order)
{
	if (order->collect == COLLECT_IF_TOUCHED)
		return !scratch_is_plain(
			&c->scratch, factory->runtime->main_file, order->code_bytes);
	return order->collect == COLLECT_ALWAYS;
}

void cell_denied(const struct cell *c, struct denied *ret)
{
	ret->unrouted = netstate_unrouted(&c->network);
	scratch_look(&c->scratch, ret);
}
