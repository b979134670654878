/* A run's way through the table of job.c:
 *
 *   SUBMIT      a free slot, a cell is begun                         -> WAITING
 *   cell READY  limits in force, START sent, the deadline armed      -> RUNNING
 *   first end   evidence noted, everything in the cgroup killed      -> KILLING
 *   empty       verdict decided, RESULT or REFUSED sent              -> DONE
 *   removed     leaf and mounts are gone, the slot (and its uids) is free again
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

#define BUILD_TIMEOUT_NS (10 * NS_PER_S) /* a cell takes some 10 ms; this is for a hung host */
#define CPU_SAMPLE_NS    (50 * NS_PER_MS)
#define REMOVE_RETRY_NS  (5 * NS_PER_MS)
#define KILL_RETRY_NS    (200 * NS_PER_MS)
#define KILL_WARN_NS     (10 * NS_PER_S)

void board_init(struct board *b)
{
	memset(b->jobs, 0, sizeof(b->jobs));
	for (unsigned i = 0; i < LEASE_CELLS; i++) {
		for (unsigned k = 0; k < 4; k++)
			b->jobs[i].fds[k] = -1;
	}
	b->next_cell = 1;
}

static void watch(const struct board *b, const struct job *j, int fd, uint32_t events)
{
	struct epoll_event ev = { .events = events,
		.data.u64 = b->token + (uint64_t)(j - b->jobs) };

	/* EEXIST: watched already. A failure otherwise is seen by the deadlines. */
	if (fd >= 0 && epoll_ctl(b->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 && errno != EEXIST)
		log_err("watch", "fd=%d why=\"%s\"", fd, strerrordesc_np(errno));
}

static void unwatch(const struct board *b, int fd)
{
	/* Before every close: a copy of the descriptor in a child that has not reached its
	 * exec yet would keep the event alive. */
	if (fd >= 0)
		(void)epoll_ctl(b->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

/* v1 announces an OOM through an eventfd; v2's memory.events is always readable, and an
 * urgent event is what says that it changed. */
static uint32_t oom_events(const struct cgroup_tree *t)
{
	int memory = t->of[CGROUP_MEMORY];

	return memory >= 0 && t->h[memory].version == 1 ? EPOLLIN : EPOLLPRI;
}

static void watch_cell(const struct board *b, const struct job *j)
{
	const struct cell *c = &j->cell;

	watch(b, j, c->init_channel, EPOLLIN);
	watch(b, j, c->main_channel, EPOLLIN);
	watch(b, j, c->main.pidfd, EPOLLIN);
	watch(b, j, c->init.pidfd, EPOLLIN);
	watch(b, j, c->leaf.events_fd, EPOLLPRI);
	watch(b, j, c->leaf.oom_fd, oom_events(b->factory->tree));
}

static void unwatch_channels(const struct board *b, const struct job *j)
{
	unwatch(b, j->cell.init_channel);
	unwatch(b, j->cell.main_channel);
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
		unwatch_channels(b, j);
		cell_kill(&j->cell);
	}
	if (next != j->state)
		log_debug("job", "run=%lu cell=%s from=%s to=%s on=%s",
			(unsigned long)j->submit.run, j->cell.leaf.name, job_state_name(j->state),
			job_state_name(next), job_event_name(ev));
	j->state = next; /* the only assignment to job.state but for the slot's birth and end */
}

static void send_refused(struct board *b, uint64_t run, bool retry, const struct fault *f)
{
	struct msg_refused m = { .run = run, .retry = retry, .fault = *f };

	if (b->client_fd >= 0 && channel_send(b->client_fd, MSG_REFUSED, &m, NULL) < 0)
		log_err("answer_lost", "run=%lu", (unsigned long)run);
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

/* The cell could not even be begun. */
static void begin_failed(struct board *b, struct job *j, const struct fault *f)
{
	log_err("cell", "run=%lu why=%s", (unsigned long)j->submit.run, LQ(f->text));
	j->fault = *f;
	watch_cell(b, j);
	step(b, j, EV_BROKEN);
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
	if (cell_create(&j->cell, b->factory, (uint32_t)(j - b->jobs), b->next_cell++,
		    s->limits.memory_bytes, &f) < 0)
		begin_failed(b, j, &f);
	else
		watch_cell(b, j);
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

/* The cell stands: put the limits in force and let the program go. */
static void start(struct board *b, struct job *j)
{
	struct fault f = { 0 };
	int r = cell_start(
		&j->cell, b->factory, &j->submit.limits, j->submit.code_bytes, j->fds, &f);

	if (r == -ENOMEM) {
		step(b, j, EV_OOM);
		return;
	}
	if (r < 0) {
		j->fault = f;
		step(b, j, EV_BROKEN);
		return;
	}
	j->started_ns = clock_ns();
	j->deadline_ns = j->started_ns + j->submit.limits.timeout_us * NS_PER_US;
	j->sample_ns = j->started_ns + CPU_SAMPLE_NS;
	close_fds(j);
	step(b, j, EV_READY);
}

static void fill_result(const struct board *b, struct job *j, enum run_cause cause)
{
	struct msg_result *r = &j->result;
	struct cgroup_usage u;
	uint64_t now = clock_ns();

	cgroup_read_usage(b->factory->tree, &j->cell.leaf, &u);
	*r = (struct msg_result){
		.run = j->submit.run,
		.cause = cause,
		.cpu_us = u.cpu_us,
		.user_us = u.user_us,
		.system_us = u.system_us,
		.throttled_us = u.throttled_us,
		.memory_peak_bytes = u.memory_peak_bytes,
		.memory_counter = u.memory_counter,
		.pids_peak = u.pids_peak,
		.pids_refused = u.pids_refused,
		.oom_kills = u.oom_kills,
	};
	if (!j->started_ns) {
		r->wait_status = SIGKILL; /* what ended it before it began */
		return;
	}
	r->wait_status = j->cell.main_status;
	r->setup_us = (j->started_ns - j->submitted_ns) / NS_PER_US;
	r->wall_us = (j->cell.main_died_ns - j->started_ns) / NS_PER_US;
	r->teardown_us = (now - j->cell.main_died_ns) / NS_PER_US;
	r->minor_faults = (uint64_t)j->cell.main_usage.ru_minflt;
	r->major_faults = (uint64_t)j->cell.main_usage.ru_majflt;
}

static void answer(struct board *b, struct job *j)
{
	struct evidence e = {
		.ended_by = j->ended_by,
		.oom = j->oom || cgroup_oom_happened(b->factory->tree, &j->cell.leaf),
		.started = j->started_ns != 0,
		.wait_status = j->cell.main_status,
	};
	enum run_cause cause;

	/* enter can meet a tiny limit between START and its exec: that, too, is the limit. */
	if (e.oom && (e.ended_by == EV_EXIT || e.ended_by == EV_BROKEN))
		e.ended_by = EV_OOM;
	if (verdict_decide(&e, &cause)) {
		fill_result(b, j, cause);
		j->unsent = true;
		return;
	}
	if (j->fault.code == 0)
		j->fault = j->cell.fault;
	if (j->fault.code == 0)
		(void)fault_say(&j->fault, -EIO, "the cell did not come to stand (%s)",
			job_event_name(j->ended_by));
	log_err("run_failed", "run=%lu why=%s", (unsigned long)j->submit.run, LQ(j->fault.text));
	send_refused(b, j->submit.run, false, &j->fault);
}

static void try_send(struct board *b, struct job *j)
{
	int r = b->client_fd < 0 ? 0 : channel_send(b->client_fd, MSG_RESULT, &j->result, NULL);

	if (r == -EAGAIN) {
		j->retry_ns = clock_ns() + REMOVE_RETRY_NS;
		return;
	}
	if (r < 0)
		log_err("answer_lost", "run=%lu why=\"%s\"", (unsigned long)j->result.run,
			strerrordesc_np(-r));
	j->unsent = false;
}

static void try_remove(struct board *b, struct job *j)
{
	unwatch(b, j->cell.leaf.events_fd);
	unwatch(b, j->cell.leaf.oom_fd);
	if (!cell_remove(&j->cell, b->factory)) {
		j->retry_ns = clock_ns() + REMOVE_RETRY_NS;
		return;
	}
	if (!j->unsent)
		j->state = JOB_NONE;
}

static void look_done(struct board *b, struct job *j)
{
	if (j->unsent)
		try_send(b, j);
	if (j->cell.state != CELL_GONE)
		try_remove(b, j);
	else if (!j->unsent)
		j->state = JOB_NONE;
}

/* A pidfd of a reaped process stays readable for ever. */
static void unwatch_reaped(const struct board *b, const struct job *j)
{
	if (j->cell.main.pid == 0)
		unwatch(b, j->cell.main.pidfd);
	if (j->cell.init.pid == 0)
		unwatch(b, j->cell.init.pidfd);
}

static void look_killing(struct board *b, struct job *j)
{
	bool empty = cell_is_empty(&j->cell);

	unwatch_reaped(b, j);
	if (!empty)
		return;
	step(b, j, EV_EMPTY);
	answer(b, j);
	look_done(b, j);
}

static bool main_is_dead(struct board *b, struct job *j)
{
	if (!cell_reap_main(&j->cell))
		return false;
	unwatch_reaped(b, j);
	return true;
}

static void look_waiting(struct board *b, struct job *j)
{
	int r = cell_hear(&j->cell, b->factory);

	watch_cell(b, j);
	if (cgroup_oom_happened(b->factory->tree, &j->cell.leaf))
		j->oom = true;
	if (r < 0) {
		j->fault = j->cell.fault;
		step(b, j, EV_BROKEN);
	} else if (j->cell.state == CELL_READY) {
		start(b, j);
	}
}

/* Before the death of main is looked at: a failed exec says so here and then dies, and must
 * not be taken for a program that ended by itself. */
static int hear_start(struct board *b, struct job *j)
{
	int channel = j->cell.main_channel, r;

	if (channel < 0)
		return 0;
	r = cell_hear(&j->cell, b->factory);
	if (j->cell.main_channel != channel)
		unwatch(b, channel);
	return r;
}

static void look_running(struct board *b, struct job *j)
{
	if (hear_start(b, j) < 0) {
		j->fault = j->cell.fault;
		step(b, j, EV_BROKEN);
	} else if (main_is_dead(b, j)) {
		step(b, j, EV_EXIT);
	} else if (cgroup_oom_happened(b->factory->tree, &j->cell.leaf)) {
		j->oom = true;
		step(b, j, EV_OOM);
	}
}

void board_look(struct board *b, unsigned slot)
{
	struct job *j = &b->jobs[slot];

	if (slot >= b->slots)
		return;
	if (j->state == JOB_WAITING)
		look_waiting(b, j);
	if (j->state == JOB_RUNNING)
		look_running(b, j);
	if (j->state == JOB_KILLING)
		look_killing(b, j);
	else if (j->state == JOB_DONE)
		look_done(b, j);
}

static void tick_live(struct board *b, struct job *j, uint64_t now)
{
	if (now >= j->deadline_ns) {
		if (j->state == JOB_WAITING)
			(void)fault_say(&j->fault, -ETIMEDOUT, "the cell took over 10 s to build");
		/* It may have ended by itself in the meantime. */
		if (j->state == JOB_RUNNING && main_is_dead(b, j))
			step(b, j, EV_EXIT);
		else
			step(b, j, EV_DEADLINE);
		return;
	}
	if (j->state != JOB_RUNNING || now < j->sample_ns)
		return;
	j->sample_ns = now + CPU_SAMPLE_NS;
	cgroup_sample(b->factory->tree, &j->cell.leaf);
	if (j->submit.limits.cpu_time_us > 0 &&
		cgroup_cpu_us(b->factory->tree, &j->cell.leaf) >= j->submit.limits.cpu_time_us)
		step(b, j, EV_CPU);
}

static void tick_killing(struct job *j, uint64_t now)
{
	if (now < j->retry_ns)
		return;
	cell_kill(&j->cell);
	j->retry_ns = now + KILL_RETRY_NS;
	if (now - j->killed_ns > KILL_WARN_NS) {
		log_warn("kill_slow", "run=%lu cell=%s since_ms=%lu", (unsigned long)j->submit.run,
			j->cell.leaf.name, (unsigned long)((now - j->killed_ns) / NS_PER_MS));
		j->retry_ns = now + KILL_WARN_NS;
	}
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t board_tick(struct board *b)
{
	uint64_t next = UINT64_MAX, now = clock_ns();

	for (unsigned i = 0; i < b->slots; i++) {
		struct job *j = &b->jobs[i];

		if (j->state == JOB_WAITING || j->state == JOB_RUNNING)
			tick_live(b, j, now);
		if (j->state == JOB_KILLING) {
			tick_killing(j, now);
			look_killing(b, j);
		}
		if (j->state == JOB_DONE && now >= j->retry_ns)
			look_done(b, j);

		if (j->state == JOB_WAITING)
			next = earlier(next, j->deadline_ns);
		if (j->state == JOB_RUNNING)
			next = earlier(next, earlier(j->deadline_ns, j->sample_ns));
		if (j->state == JOB_KILLING || j->state == JOB_DONE)
			next = earlier(next, j->retry_ns);
	}
	return next;
}

unsigned board_busy(const struct board *b)
{
	unsigned n = 0;

	for (unsigned i = 0; i < b->slots; i++)
		n += b->jobs[i].state != JOB_NONE;
	return n;
}
