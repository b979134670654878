/* A run's way through the table of job.c:
 *
 *   SUBMIT      a free place                                         -> WAITING
 *   a cell      limits in force, START sent, the deadline armed      -> RUNNING
 *   unread      its main process died with START unread: another cell  -> WAITING
 *   first end   evidence noted, what is left in the cgroup killed    -> KILLING
 *   empty       verdict decided, RESULT or REFUSED sent, the cell
 *               given back to the pool                               -> DONE
 *
 * What happens at the same time is judged in the order of look(): a program that has
 * ended by itself is not a timeout, however late we come to see it.
 */
#include "priv/supervisor/board.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "priv/supervisor/submit.h"
#include "priv/supervisor/verdict.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>

#define BUILD_TIMEOUT_NS   (10 * NS_PER_S) /* a cell takes some 10 ms; this is for a hung host */
#define UNREAD_MAX         8 /* parked processes that die one after the other: somebody kills them */
#define BUILD_FAILURES_MAX 2 /* one can be bad luck */
#define CPU_SAMPLE_NS      (50 * NS_PER_MS)
#define SEND_RETRY_NS      (5 * NS_PER_MS)
#define KILL_RETRY_NS      (200 * NS_PER_MS)
#define KILL_WARN_NS       (10 * NS_PER_S)
#define CPU_UNTOLD_US      300 /* so much, or one part in so many, cpu_ms may lack */
#define CPU_UNTOLD_PART    10
#define RECORD_BURST       64 /* records read in one go, so that slots get their turn */

void board_init(struct board *b)
{
	memset(b, 0, sizeof(*b));
	b->client_fd = -1;
	for (unsigned i = 0; i < LEASE_CELLS; i++) {
		for (unsigned k = 0; k < 4; k++)
			b->jobs[i].fds[k] = -1;
	}
}

static void close_fds(struct job *j)
{
	for (unsigned k = 0; k < 4; k++)
		drop_fd(&j->fds[k]);
}

static void step(struct board *b, struct job *j, enum job_event ev)
{
	enum job_state next = job_next(j->state, ev);

	CHECK(next != JOB_NONE);
	if (next == JOB_KILLING && j->state != JOB_KILLING) {
		j->ended_by = ev;
		j->killed_ns = clock_ns();
		j->retry_ns = j->killed_ns + KILL_RETRY_NS;
		close_fds(j);
		if (j->cell) {
			pool_unwatch(b->pool, j->cell->leaf.oom_fd);
			pool_unwatch(b->pool, j->cell->main_channel);
			cell_kill(j->cell);
		}
	}
	if (next != j->state)
		log_debug("job", "run=%lu cell=%s from=%s to=%s on=%s",
			(unsigned long)j->submit.run, j->cell ? j->cell->leaf.name : "-",
			job_state_name(j->state), job_state_name(next), job_event_name(ev));
	j->state = next; /* the only assignment to job.state but for its birth and end */
}

static void send_refused(struct board *b, uint64_t run, bool retry, const struct fault *f)
{
	struct msg_refused m = { .run = run, .retry = retry, .fault = *f };

	/* A client that does not read while it asks has broken the order of things: it is
	 * dropped, rather than left to wait for an answer that could not be sent. */
	if (b->client_fd >= 0 && channel_send(b->client_fd, MSG_REFUSED, &m, NULL) < 0)
		b->client_broken = true;
}

static struct job *free_slot(struct board *b)
{
	for (unsigned i = 0; i < b->slots; i++) {
		if (b->jobs[i].state == JOB_NONE)
			return &b->jobs[i];
	}
	return NULL;
}

static struct job *by_run(struct board *b, uint64_t run)
{
	for (unsigned i = 0; i < b->slots; i++) {
		if (b->jobs[i].state != JOB_NONE && b->jobs[i].submit.run == run)
			return &b->jobs[i];
	}
	return NULL;
}

static void release_cell(struct board *b, struct job *j)
{
	struct cell *c = j->cell;

	if (!c)
		return;
	j->cell = NULL;
	b->driver[c->slot] = NULL;
	pool_give_back(b->pool, c);
}

/* A cell is there: put the limits in force and let the program go. */
static void start(struct board *b, struct job *j, struct cell *c)
{
	struct fault f = { 0 };
	int r;

	j->cell = c;
	b->driver[c->slot] = j;
	pool_watch_run(b->pool, c);
	j->released_ns = clock_ns();
	r = cell_start(c, b->pool->factory, &j->submit.limits, j->submit.code_bytes, j->fds, &f);
	if (r == -EPIPE || r == -ECONNRESET) {
		/* The parked process was dead (the host's OOM killer likes it best): nothing
		 * ran, so the run waits on for another cell. Each such try uses one up. */
		release_cell(b, j);
		return;
	}
	if (r < 0) {
		j->fault = f;
		step(b, j, r == -ENOMEM ? EV_OOM : EV_BROKEN);
		return;
	}
	j->started_ns = clock_ns();
	j->deadline_ns = j->started_ns + j->submit.limits.timeout_us * NS_PER_US;
	j->sample_ns = j->started_ns + CPU_SAMPLE_NS;
	/* The descriptors stay until START was read: another cell may need them. */
	step(b, j, EV_READY);
	/* What has waited there until now is about others: a number may have been used before. */
	board_hear_records(b);
}

static struct job *longest_waiting(struct board *b)
{
	struct job *best = NULL;

	for (unsigned i = 0; i < b->slots; i++) {
		struct job *j = &b->jobs[i];

		if (j->state == JOB_WAITING && (!best || j->submitted_ns < best->submitted_ns))
			best = j;
	}
	return best;
}

static void serve_waiting(struct board *b)
{
	struct job *j;
	struct cell *c;

	while ((j = longest_waiting(b)) && (c = pool_take(b->pool)))
		start(b, j, c);
}

int board_submit(struct board *b, struct msg *m, const char **ret_rule)
{
	const struct msg_submit *s = &m->as.SUBMIT;
	const char *rule = submit_violation(m);
	struct fault f = { 0 };
	struct job *j;

	if (!rule && by_run(b, s->run))
		rule = "the run's id is in use";
	if (rule) {
		*ret_rule = rule;
		msg_done(m);
		return -EPROTO;
	}
	j = free_slot(b);
	if (!j)
		(void)fault_say(&f, -EAGAIN, "all %u places are taken", b->slots);
	if (!j || submit_check_limits(s, b->settings, &f) < 0) {
		send_refused(b, s->run, f.code == -EAGAIN, &f);
		msg_done(m);
		return 0;
	}

	*j = (struct job){ .state = JOB_WAITING, .submit = *s, .submitted_ns = clock_ns() };
	memcpy(j->fds, m->fds, sizeof(j->fds));
	j->deadline_ns = j->submitted_ns + BUILD_TIMEOUT_NS;
	serve_waiting(b);
	return 0;
}

void board_cancel(struct board *b, uint64_t run)
{
	struct job *j = by_run(b, run);

	/* Not there: it has been answered while the message was on its way. */
	if (j && (j->state == JOB_WAITING || j->state == JOB_RUNNING))
		step(b, j, EV_CANCEL);
}

void board_cancel_all(struct board *b)
{
	for (unsigned i = 0; i < b->slots; i++) {
		struct job *j = &b->jobs[i];

		if (j->state == JOB_WAITING || j->state == JOB_RUNNING)
			step(b, j, EV_CANCEL);
	}
}

static void fill_result(struct job *j, enum run_cause cause, const struct cgroup_usage *u)
{
	struct msg_result *r = &j->result;
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

/* What may be there again in a moment, so that the caller should try again. */
static bool is_shortage(int code)
{
	return code == -EAGAIN || code == -ENOMEM || code == -EMFILE || code == -ENFILE ||
	       code == -ENOSPC || code == -ETIMEDOUT;
}

static void answer(struct board *b, struct job *j)
{
	const struct cell_factory *factory = b->pool->factory;
	struct cgroup_usage u = { 0 };
	struct evidence e = {
		.ended_by = j->ended_by,
		.started = j->started_ns != 0,
		.wait_status = j->cell ? j->cell->main_status : 0,
	};
	enum run_cause cause;

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
		j->unsent = true;
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
	send_refused(b, j->submit.run, is_shortage(j->fault.code), &j->fault);
}

static void try_send(struct board *b, struct job *j)
{
	int r = b->client_fd < 0 ? 0 : channel_send(b->client_fd, MSG_RESULT, &j->result, NULL);

	if (r == -EAGAIN) {
		j->retry_ns = clock_ns() + SEND_RETRY_NS;
		return;
	}
	if (r < 0)
		log_err("answer_lost", "run=%lu why=\"%s\"", (unsigned long)j->result.run,
			strerrordesc_np(-r));
	j->unsent = false;
}

static void look_done(struct board *b, struct job *j)
{
	if (j->unsent)
		try_send(b, j);
	if (!j->unsent)
		j->state = JOB_NONE;
}

static void look_killing(struct board *b, struct job *j)
{
	/* main has ended and is alone: what is left of it is the kernel's work, for the pool to
	 * wait for. */
	if (j->cell && !j->cell->main_ended) {
		bool empty = cell_is_empty(j->cell);

		/* The pidfd of a reaped process stays readable for ever. */
		if (j->cell->main.pid == 0)
			pool_unwatch(b->pool, j->cell->main.pidfd);
		if (!empty) {
			pool_watch(b->pool, j->cell, j->cell->leaf.events_fd, EPOLLPRI);
			return;
		}
	}
	step(b, j, EV_EMPTY);
	answer(b, j);
	look_done(b, j);
	/* After the answer: what is left to do here costs the caller nothing. */
	release_cell(b, j);
}

/* Before the death of main is looked at: a failed exec says so here and then dies, and must
 * not be taken for a program that ended by itself. */
static int hear_start(struct board *b, struct job *j)
{
	int channel = j->cell->main_channel, r;

	if (channel < 0)
		return 0;
	r = cell_hear(j->cell, b->pool->factory);
	if (j->cell->main_channel != channel) {
		pool_unwatch(b->pool, channel);
		close_fds(j);
	}
	return r;
}

/* The parked process was killed with START in its queue: nothing ran, so the run waits on
 * for another cell. */
static void wait_again(struct board *b, struct job *j)
{
	step(b, j, EV_UNREAD);
	j->started_ns = 0;
	j->deadline_ns = clock_ns() + BUILD_TIMEOUT_NS;
	release_cell(b, j);
}

/* `end`: what the kernel has told of main's end, or NULL. */
static void look_running(struct board *b, struct job *j, const struct taskstats_exit *end)
{
	int r = hear_start(b, j);

	if (r < 0 && j->cell->unread && j->unread++ < UNREAD_MAX) {
		wait_again(b, j);
	} else if (r < 0) {
		j->fault = j->cell->fault;
		step(b, j, EV_BROKEN);
	} else if (cell_reap_main(j->cell) ||
		   (end && cell_end_main(j->cell, b->pool->factory, end))) {
		step(b, j, EV_EXIT);
	} else if (cgroup_oom_happened(b->pool->factory->tree, &j->cell->leaf)) {
		j->oom = true;
		step(b, j, EV_OOM);
	}
}

static void look(struct board *b, struct job *j)
{
	if (j->state == JOB_RUNNING)
		look_running(b, j, NULL);
	if (j->state == JOB_KILLING)
		look_killing(b, j);
	else if (j->state == JOB_DONE)
		look_done(b, j);
}

void board_look(struct board *b, unsigned slot)
{
	if (slot < LEASE_CELLS && b->driver[slot])
		look(b, b->driver[slot]);
	else
		pool_look(b->pool, slot);
	serve_waiting(b);
}

/* The kernel adds what a task uses to its group when it is switched out, asks or is met by a
 * tick. Whoever comes to a usual end has asked (src/box/zygote/finish.c), and says so; who only
 * says so hides less than a tick from its own cpu_ms, and no limit hangs on that. Of all
 * others it is known that what is missing is not more than the wall clock has and the group has
 * not. */
static bool is_cpu_told(
	const struct board *b, const struct job *j, const struct taskstats_exit *end)
{
	const struct cell *c = j->cell;
	uint64_t told = cgroup_cpu_us(b->pool->factory->tree, &c->leaf) - c->base.cpu_us;
	uint64_t wall = (clock_ns() - j->released_ns) / NS_PER_US;

	return end->told || wall <= told + CPU_UNTOLD_US || wall - told <= wall / CPU_UNTOLD_PART;
}

/* A record counts only if it was sent while this main had this number: after the socket was
 * seen empty with main there. Any other, and any run that it does not end, is seen by the
 * pidfd a little later. */
static void on_record(struct board *b, const struct taskstats_exit *end)
{
	for (unsigned i = 0; i < b->slots; i++) {
		struct job *j = &b->jobs[i];

		if (j->state != JOB_RUNNING || j->cell->main.pid != end->pid)
			continue;
		if (b->records->empty_ns < j->started_ns || !is_cpu_told(b, j, end))
			return;
		look_running(b, j, end);
		look(b, j);
		return;
	}
}

void board_hear_records(struct board *b)
{
	struct taskstats_exit end;
	int r = 1;

	if (b->records->fd < 0)
		return;
	for (unsigned i = 0; i < RECORD_BURST && r == 1; i++) {
		r = taskstats_next(b->records, &end);
		if (r == 1)
			on_record(b, &end);
	}
	if (r < 0 && r != -EAGAIN) {
		log_warn("exit_records", "state=lost why=\"%s\"", strerrordesc_np(-r));
		taskstats_close(b->records);
	}
}

static void tick_live(struct board *b, struct job *j, uint64_t now)
{
	if (now >= j->deadline_ns) {
		/* Its end may have been told of already. */
		board_hear_records(b);
		if (j->state != JOB_WAITING && j->state != JOB_RUNNING)
			return;
		if (j->state == JOB_WAITING)
			(void)fault_say(&j->fault, -ETIMEDOUT, "no cell was ready in 10 s");
		/* It may have ended by itself in the meantime. */
		if (j->state == JOB_RUNNING && cell_reap_main(j->cell))
			step(b, j, EV_EXIT);
		else
			step(b, j, EV_DEADLINE);
		return;
	}
	if (j->state != JOB_RUNNING || now < j->sample_ns)
		return;
	j->sample_ns = now + CPU_SAMPLE_NS;
	cgroup_sample(b->pool->factory->tree, &j->cell->leaf);
	if (j->submit.limits.cpu_time_us > 0 &&
		cell_cpu_us(j->cell, b->pool->factory) >= j->submit.limits.cpu_time_us)
		step(b, j, EV_CPU);
}

static void tick_killing(struct job *j, uint64_t now)
{
	if (now < j->retry_ns)
		return;
	if (j->cell)
		cell_kill(j->cell);
	j->retry_ns = now + KILL_RETRY_NS;
	if (now - j->killed_ns > KILL_WARN_NS) {
		log_warn("kill_slow", "run=%lu cell=%s since_ms=%lu", (unsigned long)j->submit.run,
			j->cell ? j->cell->leaf.name : "-",
			(unsigned long)((now - j->killed_ns) / NS_PER_MS));
		j->retry_ns = now + KILL_WARN_NS;
	}
}

/* Cells cannot be made: whoever waits longest learns why, and does not wait for more. */
static void refuse_waiting(struct board *b)
{
	struct job *j = longest_waiting(b);

	if (!j || b->pool->failures < BUILD_FAILURES_MAX)
		return;
	j->fault = b->pool->fault;
	step(b, j, EV_BROKEN);
}

static void count_jobs(const struct board *b, unsigned *waiting, unsigned *running)
{
	*waiting = *running = 0;
	for (unsigned i = 0; i < b->slots; i++) {
		*waiting += b->jobs[i].state == JOB_WAITING;
		*running += b->jobs[i].state == JOB_RUNNING;
	}
}

static uint64_t tick_job(struct board *b, struct job *j, uint64_t now)
{
	if (j->state == JOB_WAITING || j->state == JOB_RUNNING)
		tick_live(b, j, now);
	if (j->state == JOB_KILLING) {
		tick_killing(j, now);
		look_killing(b, j);
	}
	if (j->state == JOB_DONE && now >= j->retry_ns)
		look_done(b, j);

	if (j->state == JOB_WAITING)
		return j->deadline_ns;
	if (j->state == JOB_RUNNING)
		return clock_earlier(j->deadline_ns, j->sample_ns);
	return j->state == JOB_NONE ? UINT64_MAX : j->retry_ns;
}

uint64_t board_tick(struct board *b)
{
	uint64_t next = UINT64_MAX, now = clock_ns();
	unsigned waiting, running;

	refuse_waiting(b);
	for (unsigned i = 0; i < b->slots; i++) {
		if (b->jobs[i].state != JOB_NONE)
			next = clock_earlier(next, tick_job(b, &b->jobs[i], now));
	}
	serve_waiting(b);
	count_jobs(b, &waiting, &running);
	return clock_earlier(next, pool_tick(b->pool, waiting, running));
}

unsigned board_busy(const struct board *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->slots; i++)
		n += b->jobs[i].state != JOB_NONE;
	return n;
}
