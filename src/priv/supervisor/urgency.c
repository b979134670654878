#include "priv/supervisor/urgency.h"

#include "base/clock.h"
#include "base/log.h"
#include "kernel/process.h"
#include "kernel/schedule.h"
#include "kernel/sys.h"

#include <string.h>
#include <sys/resource.h>

/* How long it must have been calm: clients that come in turns are no reason to change with
 * each of them. */
#define CALM_NS (50 * NS_PER_MS)

/* The front reads what strangers send, so that it gets no real-time priority, which it could
 * abuse; ten steps are ten times another process's share. The slice is the least that the
 * kernel takes: who asks for less at a time is let in before others. */
#define FRONT_NICE     (-10)
#define FRONT_SLICE_NS (100 * NS_PER_US)

/* So many turns of the loop in so short a time are no work (a run takes a dozen): something
 * wakes it again and again, perhaps until a process has run that it keeps from running. */
#define SPIN_TURNS 256
#define SPIN_NS    (3 * NS_PER_MS)

#define SAY_NS (60 * NS_PER_S) /* at most so often: a program may be the reason */

#define RR_PRIORITY 1 /* the least: other real-time processes of the host go first */

static int place(const struct urgency *u, const cpu_set_t *cpus)
{
	int r = sys.sched_setaffinity(0, sizeof(*cpus), cpus);

	if (r == 0 && u->front > 0)
		(void)sys.sched_setaffinity(u->front, sizeof(*cpus), cpus); /* it may be dead */
	return r;
}

static void relax(struct urgency *u)
{
	(void)schedule_normal(0, u->nice, 0);
	(void)place(u, &u->cpus);
	u->urgent = false;
}

static void give_up(struct urgency *u, const char *what, int error)
{
	log_info("urgency", "on=0 what=%s why=\"%s\"", what, strerrordesc_np(-error));
	relax(u);
	u->wanted = false;
}

static void urge(struct urgency *u)
{
	int cpu = sched_getcpu(), r;
	cpu_set_t here;

	u->urgent = true;
	r = schedule_real_time(RR_PRIORITY);
	if (r < 0) {
		give_up(u, "real_time_priority", r);
		return;
	}
	CPU_ZERO(&here);
	CPU_SET((unsigned)(cpu < 0 ? 0 : cpu), &here);
	r = place(u, &here);
	if (r < 0)
		give_up(u, "affinity", r);
	else if (u->front > 0)
		(void)schedule_normal(u->front, FRONT_NICE, FRONT_SLICE_NS);
}

void urgency_init(struct urgency *u, bool wanted)
{
	*u = (struct urgency){ .wanted = wanted, .nice = getpriority(PRIO_PROCESS, 0) };
	if (!wanted)
		return;
	if (sched_getaffinity(0, sizeof(u->cpus), &u->cpus) < 0)
		u->wanted = false; /* more processors than the set has room for */
	else
		process_children_use(&u->cpus, u->nice);
}

void urgency_front(struct urgency *u, pid_t front)
{
	u->front = front;
	if (!u->wanted || front == 0)
		return;
	if (u->urgent)
		relax(u); /* and again, with the new one, when it is calm */
	u->busy_ns = clock_ns();
}

static bool spins(struct urgency *u, uint64_t now)
{
	bool yes;

	if (++u->turns < SPIN_TURNS)
		return false;
	yes = now - u->mark_ns < SPIN_NS;
	u->turns = 0;
	u->mark_ns = now;
	return yes;
}

static void say_spin(struct urgency *u, uint64_t now)
{
	if (u->said_ns != 0 && now - u->said_ns < SAY_NS)
		return;
	log_warn("urgency", "on=0 why=\"the loop does not sleep\"");
	u->said_ns = now;
}

uint64_t urgency_tick(struct urgency *u, unsigned running, uint64_t now)
{
	if (!u->wanted)
		return UINT64_MAX;
	if (running > 1) {
		if (u->urgent)
			relax(u);
		u->busy_ns = now;
		return UINT64_MAX; /* whoever ends a run calls */
	}
	if (u->urgent) {
		if (spins(u, now)) {
			say_spin(u, now);
			relax(u);
			u->busy_ns = now;
		}
		return u->urgent ? UINT64_MAX : now + CALM_NS;
	}
	if (now - u->busy_ns < CALM_NS)
		return u->busy_ns + CALM_NS;
	urge(u);
	return UINT64_MAX;
}
