/* What the client is told of a run that has ended: its evidence, judged, and sent until it is taken. */
#include "priv/supervisor/board_internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "priv/supervisor/verdict.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#define SEND_RETRY_NS      (5 * NS_PER_MS)
#define SEND_TIMEOUT_NS    (10 * NS_PER_S) /* ...of anything but a full channel */
#define QUIET_FAULTS       12              /* print('hello') in a rehearsed cell takes 5 to 8 */
#define UNREHEARSED_FAULTS 128 /* ...and 136 in one that is not; with a socket it takes 367 */

static void fill_result(struct job *j, enum run_cause cause, const struct cgroup_usage *u)
{
	struct msg_result *r = &j->answer.result;
	uint64_t now = clock_ns();

	*r = (struct msg_result){
		.run = j->submit.run,
		.cause = cause,
		.cpu_us = u->cpu_us,
		.user_us = u->user_us,
		.system_us = u->system_us,
		.throttled_us = u->throttled_us,
		.memory_peak_bytes = u->memory_peak_bytes,
		.memory_counter = u->memory_counter,
		.pids_peak = u->pids_peak,
		.pids_refused = u->pids_refused,
		.oom_kills = u->oom_kills,
	};
	/* v1's event can be seen, and our own kill be done, before the kernel has counted. */
	if (cause == CAUSE_OOM_KILL && r->oom_kills == 0)
		r->oom_kills = 1;
	if (!j->started_ns) {
		r->wait_status = SIGKILL; /* what ended it before it began */
		return;
	}
	r->wait_status = j->cell->main_status;
	r->setup_us = (j->started_ns - j->submitted_ns) / NS_PER_US;
	r->wall_us = (j->cell->main_died_ns - j->started_ns) / NS_PER_US;
	r->teardown_us = (now - j->cell->main_died_ns) / NS_PER_US;
	r->minor_faults = (uint64_t)j->cell->main_usage.ru_minflt - j->cell->base_minor_faults;
	r->major_faults = (uint64_t)j->cell->main_usage.ru_majflt - j->cell->base_major_faults;
}

/* A single process that has touched so few pages has run nothing that it had not rehearsed: no
 * code of sockets, and not long enough to fill a directory. What would be looked at is two of
 * the kernel's largest files. Who contrives to be that quiet hides its own denials only. */
static bool is_quiet(const struct msg_result *r, const struct cell *c)
{
	uint64_t most = c->rehearsed ? QUIET_FAULTS : QUIET_FAULTS + UNREHEARSED_FAULTS;

	return r->pids_peak == 1 && r->minor_faults + r->major_faults <= most;
}

static void fill_denied(struct job *j)
{
	if (!j->started_ns)
		return;
	refusals_tell(&j->cell->refusals, &j->answer.result.denied);
	if (!is_quiet(&j->answer.result, j->cell))
		cell_denied(j->cell, &j->answer.result.denied);
}

/* Is there a workspace, and somebody who may ask for it? */
static bool may_be_collected(const struct job *j)
{
	return j->submit.collect && j->started_ns && j->ended_by != EV_CANCEL && !j->orphan &&
	       !j->unwanted;
}

bool board_is_shortage(int code)
{
	return code == -EAGAIN || code == -ENOMEM || code == -EMFILE || code == -ENFILE ||
	       code == -ENOSPC || code == -ETIMEDOUT;
}

void board_answer(struct board *b, struct job *j)
{
	const struct cell_factory *factory = b->pool->factory;
	struct cgroup_usage u = { 0 };
	struct evidence e = {
		.ended_by = j->ended_by,
		.started = j->started_ns != 0,
		.wait_status = j->cell ? j->cell->main_status : 0,
	};
	enum run_cause cause;

	j->unsent = true;
	if (j->cell) {
		cell_usage(j->cell, factory, &u);
		/* The one can come before the other, and without it (cgroup.h). */
		e.oom = cgroup_oom_announced(factory->tree, &j->cell->leaf) || u.oom_kills > 0;
	}
	e.oom |= j->oom;
	/* enter can meet a tiny limit between START and its exec: that, too, is the limit. */
	if (e.oom && (e.ended_by == EV_EXIT || e.ended_by == EV_BROKEN))
		e.ended_by = EV_OOM;
	if (verdict_decide(&e, &cause)) {
		fill_result(j, cause, &u);
		fill_denied(j);
		j->answer.result.gate_lost = j->gate_lost;
		j->answer.result.kept =
			may_be_collected(j) &&
			cell_has_files(j->cell, pool_factory(b->pool, j->cell), &j->submit);
		board_leave_build(b, j, cause == CAUSE_EXIT && j->answer.result.wait_status == 0);
		log_debug("answer", "run=%lu cause=%s end=%s", (unsigned long)j->submit.run,
			run_cause_word(cause), j->cell && j->cell->main_ended ? "record" : "wait");
		return;
	}
	if (j->fault.code == 0 && j->cell)
		j->fault = j->cell->fault;
	if (j->fault.code == 0)
		(void)fault_say(&j->fault, -EIO, "the cell did not come to stand (%s)",
			job_event_name(j->ended_by));
	log_err("run_failed", "run=%lu why=%s", (unsigned long)j->submit.run, LQ(j->fault.text));
	board_leave_build(b, j, false);
	j->refused = true;
	j->answer.refusal = (struct msg_refused){
		.run = j->submit.run,
		.retry = board_is_shortage(j->fault.code),
		.fault = j->fault,
	};
}

/* The kernel refuses a message for want of room or of memory. A client that cannot be told of a
 * run at all would wait for it for ever: it is dropped, and whoever waits for the run sees that. */
void board_send(struct board *b, struct job *j)
{
	enum msg_type type = j->refused ? MSG_REFUSED : MSG_RESULT;
	bool gone;
	int r = 0;

	if (b->client_fd >= 0 && !j->orphan)
		r = channel_send(b->client_fd, type, &j->answer, NULL);
	gone = r == -EPIPE || r == -ECONNRESET;
	if (r == -EAGAIN || (r < 0 && !gone && clock_ns() - j->killed_ns < SEND_TIMEOUT_NS)) {
		j->retry_ns = clock_ns() + SEND_RETRY_NS;
		return;
	}
	if (r < 0) {
		log_err("answer_lost", "run=%lu why=\"%s\"", (unsigned long)j->submit.run,
			strerrordesc_np(-r));
		b->client_broken = true;
	}
	j->unsent = false;
}
