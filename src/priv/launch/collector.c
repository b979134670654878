#include "priv/launch/collector.h"

#include "base/fault.h"
#include "base/own.h"
#include "priv/launch/cell_internal.h"
#include "wire/channel.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

/* Like an init: before anything of the host. */
#define OOM_SCORE_COLLECTOR 500

void collector_clear(struct collector *c)
{
	process_clear(&c->process);
	c->channel = -1;
}

static int spawn(struct collector *c, const struct cell_factory *factory, struct fault *f)
{
	cleanup_fd int theirs = -1;
	struct process_plan plan = {
		.image_fd = factory->box_image_fd,
		.argv = { "glovebox", "collect", NULL },
		.nfds = 1,
		.out_fd = -1,
		.err_fd = -1,
		.pidns_of = -1,
		.cgroup_fd = cgroup_clone_fd(factory->collectors),
		.new_session = 1,
	};
	int r = cell_open_channel(&c->channel, &theirs, f);

	plan.fds[0] = theirs;
	if (r == 0)
		r = process_spawn(&plan, &c->process, f);
	if (r == 0)
		r = process_oom_score(&c->process, OOM_SCORE_COLLECTOR, f);
	return r == 0 ? process_release(&c->process, f) : r;
}

static int instruct(const struct collector *c, const struct cell_factory *factory,
	const struct cell *cell, const struct collector_order *order, struct fault *f)
{
	const int fds[3] = { cell->scratch.mounts[VIEW_WORKSPACE].fd, order->code_fd,
		order->pipe_fd };
	struct msg_gather m = {
		.caps = *order->caps,
		.code_bytes = order->submit->code_bytes,
		.inputs_bytes = order->submit->inputs_bytes,
		.uid = cell_program_uid(factory->uid_base, cell->slot),
	};
	int r = cell_send_joins(factory, factory->collectors, c->channel, MSG_JOIN, f);

	if (r < 0)
		return r;
	(void)snprintf(m.main_file, sizeof(m.main_file), "%s", factory->runtime->main_file);
	r = channel_send(c->channel, MSG_GATHER, &m, fds);
	return r < 0 ? fault_set(f, r, "send GATHER") : 0;
}

int collector_start(struct collector *c, const struct cell_factory *factory,
	const struct cell *cell, const struct collector_order *order, struct fault *f)
{
	int r = spawn(c, factory, f);

	if (r == 0)
		r = instruct(c, factory, cell, order, f);
	return r < 0 ? fault_wrap(f, "collector of cell %lu", (unsigned long)cell->id) : 0;
}

/* What it said before it ended, if anything. */
static void hear(const struct collector *c, int status, struct fault *ret)
{
	static struct msg m; /* static: too large for a careful stack; single-threaded */

	if (channel_recv(c->channel, ROLE_BOX, ROLE_SUPERVISOR, &m, NULL) == 1) {
		msg_done(&m);
		if (m.type == MSG_BROKEN) {
			*ret = m.as.BROKEN.fault;
			(void)fault_launder(ret);
			return;
		}
	}
	if (WIFSIGNALED(status))
		(void)fault_say(ret, -EIO, "signal %d ended it", WTERMSIG(status));
	else
		(void)fault_say(ret, -EIO, "it ended with %d", WEXITSTATUS(status));
}

bool collector_reap(struct collector *c, struct fault *ret)
{
	struct rusage usage;
	int status;

	*ret = (struct fault){ 0 };
	if (c->process.pid <= 0)
		return true;
	if (process_reap(&c->process, &status, &usage) == 0)
		return false;
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
		hear(c, status, ret);
	return true;
}

void collector_kill(const struct collector *c)
{
	process_kill(&c->process);
}

void collector_close(struct collector *c)
{
	process_close(&c->process);
	drop_fd(&c->channel);
}
