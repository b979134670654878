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
#include "priv/supervisor/board_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define UNREAD_MAX      8 /* parked processes that die one after the other: somebody kills them */
#define CPU_SAMPLE_NS   (50 * NS_PER_MS)
#define KILL_RETRY_NS   (200 * NS_PER_MS)
#define KILL_WARN_NS    (10 * NS_PER_S)
#define CPU_UNTOLD_US   300 /* so much, or one part in so many, cpu_ms may lack */
#define CPU_UNTOLD_PART 10
#define RECORD_BURST    64 /* records read in one go, so that slots get their turn */

void board_init(struct board *b)
{
	memset(b, 0, sizeof(*b));
	b->client_fd = -1;
	collects_init(&b->collects);
	b->network_fd = -1;
	for (unsigned i = 0; i < LEASE_CELLS; i++) {
		for (unsigned k = 0; k < MSG_FDS_MAX; k++)
			b->jobs[i].fds[k] = -1;
		b->jobs[i].network_fd = -1;
		gate_clear(&b->jobs[i].gate);
	}
}

/* What the program has by now. Whoever reads its files needs to know what it began with. */
static void close_fds(struct job *j)
{
	for (unsigned k = j->submit.collect ? 1 : 0; k < MSG_FDS_MAX; k++)
		drop_fd(&j->fds[k]);
}

static void look_at_gate(struct job *j)
{
	struct fault f;

	if (!gate_has_ended(&j->gate, &f) || f.code == 0)
		return;
	log_err("gate", "run=%lu why=%s", (unsigned long)j->submit.run, LQ(f.text));
	j->gate_lost = true;
}

/* The run has ended or begins anew, or there was none. */
static void end_gate(struct board *b, struct job *j)
{
	look_at_gate(j);
	reaper_keep(&b->pool->reaper, &j->gate.process);
	drop_fd(&j->gate.channel);
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
		end_gate(b, j); /* before its cell: then it would end by itself */
		drop_fd(&j->network_fd);
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

struct job *board_find(struct board *b, uint64_t run)
{
	for (unsigned i = 0; i < b->slots; i++) {
		const struct job *j = &b->jobs[i];

		if (j->state != JOB_NONE && !j->orphan && j->submit.run == run)
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

static int start_gate(struct board *b, struct job *j, struct fault *f)
{
	if (j->network_fd < 0)
		return 0;
	j->gate_lost = false; /* of another cell */
	return gate_start(&j->gate, pool_factory(b->pool, j->cell), j->cell, j->network_fd, f);
}

/* A cell is there: put the limits in force and let the program go. */
static void start(struct board *b, struct job *j, struct cell *c)
{
	struct fault f = { 0 };
	int r;

	j->cell = c;
	b->driver[c->slot] = j;
	pool_watch_run(b->pool, c);
	if (start_gate(b, j, &f) < 0) {
		j->fault = f;
		step(b, j, EV_BROKEN);
		return;
	}
	j->released_ns = clock_ns();
	r = cell_start(c, pool_factory(b->pool, c), &j->submit, j->fds, &f);
	if (r == -EPIPE || r == -ECONNRESET) {
		/* The parked process was dead (the host's OOM killer likes it best): nothing
		 * ran, so the run waits on for another cell. Each such try uses one up. */
		end_gate(b, j);
		release_cell(b, j);
		return;
	}
	if (r < 0) {
		j->fault = f;
		step(b, j, r == -EDQUOT ? EV_OOM : EV_BROKEN);
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

/* For a cell of the pool's stock. */
static struct job *longest_waiting(struct board *b)
{
	struct job *best = NULL;

	for (unsigned i = 0; i < b->slots; i++) {
		struct job *j = &b->jobs[i];

		if (j->state == JOB_WAITING && j->order == 0 &&
			(!best || j->submitted_ns < best->submitted_ns))
			best = j;
	}
	return best;
}

/* A kept workspace is as much memory as a program may have, and a client that submits on while it
 * keeps them would have no bound. One that keeps to its own bound waits here for a collector, which
 * has ended but for its reaping. */
static bool is_full(const struct board *b)
{
	unsigned n = b->collects.count;

	for (unsigned i = 0; n > 0 && i < b->slots; i++)
		n += b->jobs[i].cell != NULL;
	return n >= b->slots;
}

void board_serve_waiting(struct board *b)
{
	struct job *j;
	struct cell *c;

	while (!is_full(b) && (j = longest_waiting(b)) && (c = pool_take(b->pool)))
		start(b, j, c);
	for (unsigned i = 0; i < b->slots; i++) {
		j = &b->jobs[i];
		if (j->state == JOB_WAITING && j->order > 0 && !is_full(b) &&
			(c = pool_take_other(b->pool, j->order)))
			start(b, j, c);
	}
}

bool board_knows(const struct board *b, pid_t pid)
{
	for (unsigned i = 0; i < b->slots; i++)
		if (b->jobs[i].gate.process.pid == pid)
			return true;
	return collects_know(&b->collects, pid);
}

int board_collect(struct board *b, struct msg *m, const char **ret_rule)
{
	return collects_begin(&b->collects, m, ret_rule);
}

void board_cancel(struct board *b, uint64_t run)
{
	struct job *j = board_find(b, run);

	/* Not there: it has been answered while the message was on its way. */
	if (j)
		j->unwanted = true;
	if (j && (j->state == JOB_WAITING || j->state == JOB_RUNNING))
		step(b, j, EV_CANCEL);
	/* What it has built may be ready by now, whether its answer is sent or waits. While it is being
	 * killed there is none yet, and none will stay: board_leave_build(). */
	builds_release(&b->pool->builds, builds_find(&b->pool->builds, run));
	collects_cancel(&b->collects, run);
}

void board_lose_client(struct board *b)
{
	b->client_fd = -1;
	drop_fd(&b->network_fd);
	for (unsigned i = 0; i < b->slots; i++)
		b->jobs[i].orphan = true;
	builds_clear(&b->pool->builds);
	board_cancel_all(b);
}

void board_cancel_all(struct board *b)
{
	for (unsigned i = 0; i < b->slots; i++) {
		struct job *j = &b->jobs[i];

		if (j->state == JOB_WAITING || j->state == JOB_RUNNING)
			step(b, j, EV_CANCEL);
	}
	collects_cancel_all(&b->collects);
}

static void look_done(struct board *b, struct job *j)
{
	if (j->unsent)
		board_send(b, j);
	if (!j->unsent)
		j->state = JOB_NONE;
}

/* After the answer: what is left to do for the cell costs the caller nothing, or he knows of it. */
static void leave_cell(struct board *b, struct job *j)
{
	struct cell *c = j->cell;
	bool kept = c && !j->refused && j->answer.result.kept;
	int code_fd = take_fd(&j->fds[0]);

	if (!kept) {
		if (code_fd >= 0)
			(void)close(code_fd);
		release_cell(b, j);
		return;
	}
	j->cell = NULL;
	b->driver[c->slot] = NULL;
	collects_keep(&b->collects, c, &j->submit, code_fd);
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
	board_answer(b, j);
	look_done(b, j);
	leave_cell(b, j);
}

/* Before the death of main is looked at: a failed exec says so here and then dies, and must
 * not be taken for a program that ended by itself. */
static int hear_start(struct board *b, struct job *j)
{
	int r;

	if (j->cell->main_channel < 0)
		return 0;
	r = cell_hear(j->cell, b->pool->factory);
	if (r <= 0)
		return r;
	/* In this order: a child that is about to exec has a copy of a descriptor that was
	 * closed a moment ago, and epoll goes on to tell of that. */
	pool_unwatch(b->pool, j->cell->main_channel);
	cell_hush(j->cell);
	close_fds(j);
	return 0;
}

/* The parked process was killed with START in its queue: nothing ran, so the run waits on
 * for another cell. */
static void wait_again(struct board *b, struct job *j)
{
	step(b, j, EV_UNREAD);
	j->started_ns = 0;
	j->deadline_ns = clock_ns() + BOARD_BUILD_TIMEOUT_NS;
	end_gate(b, j);
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
	} else if (cell_reap_main(j->cell) || (end && cell_end_main(j->cell, end))) {
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
	else if (!collects_look(&b->collects, slot))
		pool_look(b->pool, slot);
	board_serve_waiting(b);
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

/* What no control group counts: sockets of connections that the program has let stand. */
static bool has_too_many_sockets(const struct job *j)
{
	uint64_t bytes = netstate_socket_bytes(&j->cell->network);

	if (bytes <= j->submit.limits.memory_bytes)
		return false;
	log_info("sockets", "run=%lu bytes=%lu limit=%lu", (unsigned long)j->submit.run,
		(unsigned long)bytes, (unsigned long)j->submit.limits.memory_bytes);
	return true;
}

static void tick_live(struct board *b, struct job *j, uint64_t now)
{
	if (now >= j->deadline_ns) {
		/* Its end may have been told of already, or be there to see; or that it never
		 * began, and it waits anew. */
		board_hear_records(b);
		if (j->state == JOB_RUNNING)
			look_running(b, j, NULL);
		if ((j->state != JOB_WAITING && j->state != JOB_RUNNING) || now < j->deadline_ns)
			return;
		if (j->state == JOB_WAITING)
			(void)fault_say(&j->fault, -ETIMEDOUT, "no cell was ready in 10 s");
		step(b, j, EV_DEADLINE);
		return;
	}
	if (j->state != JOB_RUNNING || now < j->sample_ns)
		return;
	j->sample_ns = now + CPU_SAMPLE_NS;
	cgroup_sample(&j->cell->leaf);
	look_at_gate(j); /* one that nobody reaps is in the way of strangers */
	if (j->submit.limits.cpu_time_us > 0 &&
		cell_cpu_us(j->cell, b->pool->factory) >= j->submit.limits.cpu_time_us)
		step(b, j, EV_CPU);
	else if (has_too_many_sockets(j))
		step(b, j, EV_OOM);
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

/* Cells cannot be made: whoever waits longest learns why, and does not wait for more. Who came
 * after the last try waits for the next one, or a moment's trouble would be many refusals. */
static bool refuse_waiting(struct board *b)
{
	struct job *j = longest_waiting(b);

	if (j && j->submitted_ns > b->pool->failed_ns)
		j = NULL;
	if (!pool_tell_failure(b->pool, j != NULL))
		return false;
	j->fault = b->pool->fault;
	step(b, j, EV_BROKEN);
	return true;
}

static int compare_orders(const void *a, const void *b)
{
	const struct job *const *x = a, *const *y = b;

	return (*x)->order < (*y)->order ? -1 : (*x)->order > (*y)->order;
}

/* The same of other languages: order again, and learn that a cell could not be made. In the order in
 * which they came: the pool makes a few cells at a time, and a place that is free again goes to
 * whoever comes next, wherever it is. */
static void order_cells(struct board *b)
{
	struct job *waiting[LEASE_CELLS];
	struct pool *p = b->pool;
	unsigned count = 0;

	for (unsigned i = 0; i < b->slots; i++) {
		if (b->jobs[i].state == JOB_WAITING && b->jobs[i].order > 0)
			waiting[count++] = &b->jobs[i];
	}
	if (count > 1)
		qsort(waiting, count, sizeof(waiting[0]), compare_orders);
	for (unsigned i = 0; i < count; i++) {
		struct job *j = waiting[i];

		if (j->order != p->failed_order)
			pool_order(p, &(struct pool_wish){ j->order, j->submit.language,
					      j->submit.part == RUN_COMPILER, j->build,
					      j->network_fd >= 0 });
		if (j->order == p->failed_order) {
			j->fault = p->failed_why;
			step(b, j, EV_BROKEN);
		}
	}
}

static void count_jobs(const struct board *b, unsigned *waiting, unsigned *running)
{
	*waiting = *running = 0;
	for (unsigned i = 0; i < b->slots; i++) {
		*waiting += b->jobs[i].state == JOB_WAITING && b->jobs[i].order == 0;
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

	while (refuse_waiting(b))
		;
	order_cells(b);
	for (unsigned i = 0; i < b->slots; i++) {
		if (b->jobs[i].state != JOB_NONE)
			next = clock_earlier(next, tick_job(b, &b->jobs[i], now));
	}
	next = clock_earlier(next, collects_tick(&b->collects, now));
	board_serve_waiting(b);
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
