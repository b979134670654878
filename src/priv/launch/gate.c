#include "priv/launch/gate.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "priv/launch/cell_internal.h"
#include "wire/channel.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

/* Before anything of the host, and after the programs. */
#define OOM_SCORE_GATE 900

void gate_clear(struct gate *g)
{
	process_clear(&g->process);
	g->channel = -1;
}

static int spawn(struct gate *g, const struct cell_factory *factory, struct fault *f)
{
	cleanup_fd int theirs = -1;
	struct process_plan plan = {
		.image_fd = factory->gate_image_fd,
		.argv = { "glovebox", "@gate", NULL },
		.nfds = 1,
		.out_fd = -1,
		.err_fd = -1,
		.pidns_of = -1,
		.cgroup_fd = cgroup_clone_fd(factory->gates),
		.new_session = 1,
	};
	int r = cell_open_channel(&g->channel, &theirs, f);

	plan.fds[0] = theirs;
	if (r == 0)
		r = process_spawn(&plan, &g->process, f);
	if (r == 0)
		r = process_oom_score(&g->process, OOM_SCORE_GATE, f);
	if (r == 0)
		r = process_release(&g->process, f);
	return r;
}

/* Its status when there is nobody at its channel's other end: main() was reached. */
#define STATUS_ALONE 1
#define START_MS     10000

static int await_end(struct process *p)
{
	struct pollfd ended = { .fd = p->pidfd, .events = POLLIN };
	struct rusage usage;
	int status = 0;

	if (sys.poll(&ended, 1, START_MS) <= 0)
		process_kill(p);
	while (process_reap(p, &status, &usage) == 0)
		(void)sys.poll(&ended, 1, -1);
	return status;
}

int gate_check(int image_fd, struct fault *f)
{
	struct process_plan plan = {
		.image_fd = image_fd,
		.argv = { "glovebox", "@gate", NULL },
		.out_fd = -1,
		.err_fd = -1,
		.pidns_of = -1,
		.cgroup_fd = -1,
		.new_session = 1,
	};
	struct process p;
	int status, r = process_spawn(&plan, &p, f);

	if (r < 0)
		return fault_wrap(f, "start a gate");
	r = process_release(&p, f);
	if (r < 0)
		process_kill(&p);
	status = await_end(&p);
	process_close(&p);
	if (r < 0)
		return fault_wrap(f, "start a gate");
	if (WIFEXITED(status) && WEXITSTATUS(status) == STATUS_ALONE)
		return 0;
	return fault_say(f, -ENOPKG,
		"gates cannot be started (%s %d), which carry the packets of runs: is libslirp0 "
		"installed?",
		WIFSIGNALED(status) ? "ended by signal" : "ended with",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

static int instruct(const struct gate *g, const struct cell_factory *factory, const struct cell *c,
	int memory_fd, struct fault *f)
{
	const int fds[3] = { c->tun_fd, memory_fd, factory->policy_fd };
	const struct msg_gate m = { .uid = factory->uid_base + GATE_UID };
	int r = channel_send(g->channel, MSG_GATE, &m, fds);

	return r < 0 ? fault_set(f, r, "send GATE") : 0;
}

int gate_start(struct gate *g, const struct cell_factory *factory, const struct cell *c,
	int memory_fd, struct fault *f)
{
	int r = spawn(g, factory, f);

	if (r == 0)
		r = cell_send_joins(factory, factory->gates, g->channel, MSG_GATE_JOIN, f);
	if (r == 0)
		r = instruct(g, factory, c, memory_fd, f);
	return r < 0 ? fault_wrap(f, "gate of cell %lu", (unsigned long)c->id) : 0;
}

/* What it has said before it ended, or else how it ended. */
static void why(const struct gate *g, int status, struct fault *ret)
{
	static struct msg m; /* static: too large for a careful stack; single-threaded */
	int r;

	*ret = (struct fault){ 0 };
	if (status == 0)
		return;
	r = channel_recv(g->channel, ROLE_GATE, ROLE_SUPERVISOR, &m, NULL);
	if (r == -ECONNRESET) /* once, and first: it has not read all that it was sent */
		r = channel_recv(g->channel, ROLE_GATE, ROLE_SUPERVISOR, &m, NULL);
	if (r == 1) {
		*ret = m.as.GATE_BAD.fault; /* the one message of its role */
		(void)fault_launder(ret);
		return;
	}
	(void)fault_say(ret, -EIO, "%s %d", WIFSIGNALED(status) ? "ended by signal" : "ended with",
		WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

bool gate_has_ended(struct gate *g, struct fault *ret)
{
	struct rusage usage;
	int status = 0, r;

	if (g->process.pid <= 0)
		return false;
	r = process_reap(&g->process, &status, &usage);
	if (r == 0)
		return false;
	if (r < 0)
		(void)fault_set(ret, r, "reap it");
	else
		why(g, status, ret);
	process_close(&g->process);
	process_clear(&g->process);
	drop_fd(&g->channel);
	return true;
}
