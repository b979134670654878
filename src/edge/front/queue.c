#include "edge/front/queue.h"

#include "base/check.h"
#include "base/clock.h"

#include <stddef.h>

void queue_init(struct queue *q, uint32_t max_running, uint32_t max_waiting, uint64_t typical_ns)
{
	CHECK(max_running > 0);
	*q = (struct queue){
		.max_running = max_running,
		.max_waiting = max_waiting,
		.typical_ns = typical_ns,
	};
}

static void set_state(struct ticket *t, enum ticket_state state, uint64_t now_ns)
{
	t->state = state;
	t->since_ns = now_ns;
}

static void append(struct queue *q, struct ticket *t)
{
	t->next = NULL;
	t->prev = q->last;
	if (q->last)
		q->last->next = t;
	else
		q->first = t;
	q->last = t;
	q->waiting++;
}

static void unlink_waiting(struct queue *q, struct ticket *t)
{
	if (t->prev)
		t->prev->next = t->next;
	else
		q->first = t->next;
	if (t->next)
		t->next->prev = t->prev;
	else
		q->last = t->prev;
	t->prev = t->next = NULL;
	q->waiting--;
}

enum ticket_state queue_enter(struct queue *q, struct ticket *t, uint64_t now_ns)
{
	CHECK(t->state == TICKET_OUT);
	if (q->waiting == 0 && q->running < q->max_running) {
		q->running++;
		set_state(t, TICKET_RUNNING, now_ns);
	} else if (q->waiting < q->max_waiting) {
		append(q, t);
		set_state(t, TICKET_WAITING, now_ns);
	}
	return t->state;
}

/* An eighth of the way to each new measurement: one outlier does not move it much,
 * a dozen runs do. */
static void learn(struct queue *q, uint64_t held_ns)
{
	q->typical_ns = q->typical_ns - q->typical_ns / 8 + held_ns / 8;
}

void queue_leave(struct queue *q, struct ticket *t, uint64_t now_ns)
{
	switch (t->state) {
	case TICKET_OUT:
		return;
	case TICKET_WAITING:
		unlink_waiting(q, t);
		break;
	case TICKET_RUNNING:
		CHECK(q->running > 0);
		q->running--;
		learn(q, now_ns > t->since_ns ? now_ns - t->since_ns : 0);
		break;
	}
	set_state(t, TICKET_OUT, now_ns);
}

struct ticket *queue_advance(struct queue *q, uint64_t now_ns)
{
	struct ticket *t = q->first;

	if (!t || q->running >= q->max_running)
		return NULL;
	unlink_waiting(q, t);
	q->running++;
	set_state(t, TICKET_RUNNING, now_ns);
	return t;
}

uint32_t queue_retry_after_s(const struct queue *q)
{
	/* All slots are busy and `waiting` are ahead; a slot comes free every
	 * typical / max_running. Divided first, so that nothing can overflow. */
	uint64_t each_ns = q->typical_ns / q->max_running;
	uint64_t each_ms = each_ns / NS_PER_MS + 1;
	uint64_t seconds;

	if (each_ms > (uint64_t)RETRY_MAX_S * 1000)
		return RETRY_MAX_S;
	seconds = (each_ms * ((uint64_t)q->waiting + 1) + 999) / 1000;
	return seconds > RETRY_MAX_S ? RETRY_MAX_S : (uint32_t)seconds;
}
