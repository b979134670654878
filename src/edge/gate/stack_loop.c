#include "edge/gate/stack_internal.h"

#include "base/clock.h"
#include "base/fault.h"

#include <errno.h>
#include <limits.h>
#include <unistd.h>

#define PACKETS_TURN 64u /* that are taken from the cell before anybody else is looked at */
#define SWEEP_NS     (5 * NS_PER_S)

enum {
	POLL_TUN,
	POLL_CHANNEL,
	POLL_NAMES,
	POLL_STACK = POLL_NAMES + NAMES_POLLS
};

static void hear_cell(struct stack *s)
{
	uint8_t bytes[PACKET_MAX + 1]; /* one that is too long shows as such */

	for (unsigned i = 0; i < PACKETS_TURN && s->pace.debt == 0; i++) {
		ssize_t n = read(s->tun_fd, bytes, sizeof(bytes));

		if (n > 0) {
			stack_judge(s, bytes, (size_t)n);
			continue;
		}
		stack_note_error(s, n < 0 ? errno : EBADFD);
		return;
	}
}

static unsigned fill_polls(struct stack *s, uint32_t *wait_ms)
{
	bool waits = s->pace.debt > 0; /* for the time when it is paid */

	s->polls[POLL_TUN] = (struct pollfd){ .fd = waits ? -1 : s->tun_fd, .events = POLLIN };
	s->polls[POLL_CHANNEL] = (struct pollfd){ .fd = s->channel_fd, .events = POLLIN };
	names_fill(&s->names, s->polls + POLL_NAMES);
	return waits ? POLL_STACK
		     : tcpip_fill(&s->tcpip, s->polls, POLL_STACK, STACK_FILES_MAX, wait_ms);
}

/* One turn; false when it was the last. */
static bool turn(struct stack *s)
{
	uint64_t now_ns = clock_ns(), due_ns = pace_earn(&s->pace, now_ns);
	uint32_t wait_ms = INT_MAX;
	bool was_filled = s->pace.debt == 0;
	unsigned count;
	int n;

	due_ns = clock_earlier(due_ns, names_tick(&s->names, now_ns));
	due_ns = clock_earlier(due_ns, tcpip_due(&s->tcpip));
	count = fill_polls(s, &wait_ms);
	if (due_ns != UINT64_MAX && (uint32_t)clock_ms_until(due_ns) < wait_ms)
		wait_ms = (uint32_t)clock_ms_until(due_ns);
	n = poll(s->polls, count, (int)wait_ms);
	if (n < 0 && errno != EINTR)
		s->broken = errno;
	now_ns = clock_ns();
	if (n > 0 && s->polls[POLL_CHANNEL].revents)
		return false;
	if (n > 0)
		names_hear(&s->names, s->polls + POLL_NAMES, now_ns);
	if (n > 0 && s->polls[POLL_TUN].revents)
		hear_cell(s);
	if (was_filled && s->pace.debt == 0)
		tcpip_hear(&s->tcpip, n < 0);
	tcpip_tick(&s->tcpip, now_ns);
	if (now_ns - s->swept_ns > SWEEP_NS) {
		flows_sweep(&s->flows, now_ns);
		s->swept_ns = now_ns;
	}
	flows_publish(&s->flows, s->shared);
	return !s->gone && s->broken == 0;
}

int stack_run(struct stack *s, struct fault *f)
{
	while (turn(s))
		;
	return s->broken ? fault_set(f, -s->broken, "carry the cell's packets") : 0;
}
