/* How a cell comes to be:
 *
 *   1. leaf, detached mounts, init born into new namespaces and the leaf, held
 *   2. its id maps, its v1 groups, its OOM score; then it is released, gets BUILD and
 *      one MOUNT for each mount, and builds the cage
 *   3. BUILT: main is born into the cell's pid namespace and leaf, held, moved, released,
 *      gets ENTER with init's pidfd, joins and drops everything
 *   4. ENTERED: READY. cell_start() sends START, and main becomes the program.
 *
 * Both processes are children of the supervisor, so that no one else can lose or forge
 * the program's wait status.
 */
#include "priv/launch/cell.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* While it is built a cell may use this much; init and enter need about 2 MiB. */
#define BUILD_MEMORY_BYTES (UINT64_C(64) << 20)
#define BUILD_CPU_MILLI    UINT32_C(1000)
#define BUILD_PIDS         UINT32_C(4)

/* init is not counted as one of the program's tasks. */
#define INIT_TASKS UINT32_C(1)

/* RLIMIT_NPROC is a second net: pids.max must be what refuses, because it counts. */
#define NPROC_SLACK UINT32_C(16)

/* The kernel should choose main before init, and both before anything of the host. */
#define OOM_SCORE_INIT 500
#define OOM_SCORE_MAIN 1000

#define CELL_NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

static const bool edges[CELL_STATE_MAX][CELL_STATE_MAX] = {
	[CELL_NONE] = { [CELL_BUILDING] = true },
	[CELL_BUILDING] = { [CELL_ENTERING] = true, [CELL_DYING] = true },
	[CELL_ENTERING] = { [CELL_READY] = true, [CELL_DYING] = true },
	[CELL_READY] = { [CELL_BUSY] = true, [CELL_DYING] = true },
	[CELL_BUSY] = { [CELL_DYING] = true },
	[CELL_DYING] = { [CELL_GONE] = true },
	[CELL_GONE] = { [CELL_BUILDING] = true },
};

static void enter_state(struct cell *c, enum cell_state next)
{
	CHECK(edges[c->state][next]);
	c->state = next; /* the only assignment to cell.state outside of cell_create() */
}

const char *cell_state_name(enum cell_state s)
{
	static const char *const names[CELL_STATE_MAX] = { "NONE",
#define X(name, text) #name,
		CELL_STATES(X)
#undef X
	};

	CHECK(s < CELL_STATE_MAX);
	return names[s];
}

static void clear(struct cell *c, uint32_t slot)
{
	*c = (struct cell){ .slot = slot, .init_channel = -1, .main_channel = -1 };
	cgroup_clear(&c->leaf);
	process_clear(&c->init);
	process_clear(&c->main);
}

/* Start one of the box's two roles, held, with a channel of its own. */
static int spawn_box(struct cell *c, const struct cell_factory *factory, const char *role,
	struct process *ret, int *ret_channel, struct fault *f)
{
	bool is_init = ret == &c->init;
	cleanup_fd int ours = -1, theirs = -1;
	struct process_plan plan = {
		.image_fd = factory->box_image_fd,
		.argv = { "glovebox", role, NULL },
		.nfds = 1,
		.out_fd = -1,
		.err_fd = -1,
		.namespaces = is_init ? CELL_NAMESPACES : 0,
		.pidns_of = is_init ? -1 : c->init.pidfd,
		.cgroup_fd = cgroup_clone_fd(&c->leaf),
		.own_root = is_init,
	};
	int pair[2], r = channel_pair(pair, 0);

	if (r < 0)
		return fault_set(f, r, "%s: socketpair", role);
	ours = pair[0];
	theirs = pair[1];
	plan.fds[0] = theirs;
	/* Only our end: the box waits for its messages, the supervisor never does. */
	r = sys.fcntl(ours, F_SETFL, O_NONBLOCK);
	if (r < 0)
		return fault_set(f, r, "%s: non-blocking channel", role);
	r = process_spawn(&plan, ret, f);
	if (r < 0)
		return fault_wrap(f, "%s", role);
	*ret_channel = take_fd(&ours);
	return 0;
}

static int send_mounts(const struct cell *c, const struct view_mount *mounts, unsigned count,
	const struct runtime *rt, struct fault *f)
{
	struct msg_build build = { .mounts = count, .full_proc = rt->full_proc };
	int r = channel_send(c->init_channel, MSG_BUILD, &build, NULL);

	for (unsigned i = 0; r == 0 && i < count; i++) {
		struct msg_mount m = { { 0 } };

		(void)snprintf(m.path, sizeof(m.path), "%s", i == 0 ? VIEW_ANCHOR : mounts[i].path);
		r = channel_send(c->init_channel, MSG_MOUNT, &m, &mounts[i].fd);
	}
	return r < 0 ? fault_set(f, r, "send the mounts") : 0;
}

static int start_init(
	struct cell *c, const struct cell_factory *factory, uint64_t scratch_bytes, struct fault *f)
{
	const uint32_t inside[] = { 0, 1000 };
	const uint32_t outside[] = { cell_root_uid(factory->uid_base, c->slot),
		cell_program_uid(factory->uid_base, c->slot) };
	const struct view_scratch scratch = { scratch_bytes, factory->workspace_inodes,
		outside[1] };
	struct view_mount mounts[CELL_MOUNTS_MAX];
	unsigned count;
	int r;

	r = spawn_box(c, factory, "init", &c->init, &c->init_channel, f);
	if (r == 0)
		r = process_map_ids(&c->init, inside, outside, 2, f);
	if (r == 0)
		r = cgroup_join_v1(factory->tree, &c->leaf, c->init.pid, f);
	if (r == 0)
		r = process_oom_score(&c->init, OOM_SCORE_INIT, f);
	if (r == 0)
		r = process_release(&c->init, f);
	if (r == 0)
		r = view_mounts(factory->view, &scratch, mounts, CELL_MOUNTS_MAX, &count, f);
	if (r == 0) {
		r = send_mounts(c, mounts, count, factory->runtime, f);
		view_mounts_close(mounts, count);
	}
	return r;
}

static int start_main(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	struct msg_enter m = { .degraded = factory->degraded, .runtime = *factory->runtime };
	int r = spawn_box(c, factory, "enter", &c->main, &c->main_channel, f);

	if (r == 0)
		r = cgroup_join_v1(factory->tree, &c->leaf, c->main.pid, f);
	if (r == 0)
		r = process_oom_score(&c->main, OOM_SCORE_MAIN, f);
	if (r == 0)
		r = process_release(&c->main, f);
	if (r == 0) {
		r = channel_send(c->main_channel, MSG_ENTER, &m, &c->init.pidfd);
		if (r < 0)
			(void)fault_set(f, r, "send ENTER");
	}
	return r;
}

static int broke(struct cell *c, int code, const char *what)
{
	if (c->fault.code == 0)
		(void)fault_set(&c->fault, code, "cell %s: %s", c->leaf.name, what);
	return c->fault.code;
}

/* A message from init or main in the state where only `type` may come. */
static int hear_one(struct cell *c, int channel, enum msg_type type)
{
	static struct msg m; /* static: too large for a careful stack; single-threaded */
	const char *rule = "";
	int r = channel_recv(channel, ROLE_BOX, ROLE_SUPERVISOR, &m, &rule);

	if (r == -EAGAIN)
		return 0;
	if (r == 0)
		return broke(c, -EPIPE, type == MSG_BUILT ? "init ended" : "main ended");
	if (r == -EPROTO)
		return broke(c, r, rule);
	if (r < 0)
		return broke(c, r, "receive");
	if (m.type == MSG_BROKEN) {
		c->fault = m.as.BROKEN.fault;
		(void)fault_launder(&c->fault);
		return fault_wrap(&c->fault, "cell %s", c->leaf.name);
	}
	return m.type == type ? 1 : broke(c, -EPROTO, "unexpected message");
}

int cell_create(struct cell *c, const struct cell_factory *factory, uint32_t slot, uint64_t id,
	uint64_t scratch_bytes, struct fault *f)
{
	const struct cgroup_limits lim = { BUILD_MEMORY_BYTES, BUILD_CPU_MILLI, BUILD_PIDS };
	char name[24];
	int r;

	clear(c, slot);
	enter_state(c, CELL_BUILDING);
	(void)snprintf(name, sizeof(name), "c%lu", (unsigned long)id);
	r = cgroup_create(factory->tree, name, &lim, &c->leaf, f);
	if (r == 0)
		r = start_init(c, factory, scratch_bytes, f);
	if (r < 0) {
		/* A send that failed says less than what init said before it ended. */
		if (c->init_channel >= 0 && hear_one(c, c->init_channel, MSG_BROKEN) < 0 &&
			c->fault.code != -EPIPE)
			*f = c->fault;
		else
			(void)fault_wrap(f, "cell %s", name);
		c->fault = *f;
		cell_kill(c);
		return f->code;
	}
	return 0;
}

int cell_hear(struct cell *c, const struct cell_factory *factory)
{
	struct fault f = { 0 };
	int r;

	switch (c->state) {
	case CELL_BUILDING:
		r = hear_one(c, c->init_channel, MSG_BUILT);
		if (r <= 0)
			return r;
		enter_state(c, CELL_ENTERING);
		r = start_main(c, factory, &f);
		if (r < 0) {
			c->fault = f;
			return fault_wrap(&c->fault, "cell %s", c->leaf.name);
		}
		return 0;
	case CELL_ENTERING:
		r = hear_one(c, c->main_channel, MSG_ENTERED);
		if (r > 0)
			enter_state(c, CELL_READY);
		return r < 0 ? r : 0;
	case CELL_READY:
	case CELL_BUSY:
		/* A parked process has nothing to say; a released one only that its exec
		 * failed. The exec itself closes the channel. */
		r = hear_one(c, c->main_channel, MSG_BROKEN);
		if (r == -EPIPE && c->state == CELL_BUSY) {
			c->fault = (struct fault){ 0 };
			drop_fd(&c->main_channel);
			return 0;
		}
		return r;
	case CELL_NONE:
	case CELL_DYING:
	case CELL_GONE:
	case CELL_STATE_MAX:
	default:
		return 0;
	}
}

/* Give the program's end of a pipe to its user: without that, /dev/stdout cannot be
 * opened; with more than the one direction, a program could read back its own output. */
static int give_pipe(int fd, mode_t mode, uint32_t uid, struct fault *f)
{
	int r = sys.fchmod(fd, mode);

	if (r == 0)
		r = sys.fchown(fd, uid, uid);
	return r < 0 ? fault_set(f, r, "give the pipe to the program's user") : 0;
}

static int give_pipes(const int *fds, uint32_t uid, struct fault *f)
{
	int r = give_pipe(fds[1], 0400, uid, f);

	if (r == 0)
		r = give_pipe(fds[2], 0200, uid, f);
	if (r == 0)
		r = give_pipe(fds[3], 0200, uid, f);
	return r;
}

int cell_start(struct cell *c, const struct cell_factory *factory, const struct run_limits *limits,
	uint64_t code_bytes, const int *fds, struct fault *f)
{
	const struct cgroup_limits lim = { limits->memory_bytes, limits->cpu_milli,
		limits->pids + INIT_TASKS };
	struct msg_start start = {
		.code_bytes = code_bytes,
		.file_bytes = limits->memory_bytes,
		/* A net far below which the supervisor's own watch has ended the run. */
		.cpu_seconds = limits->timeout_us / 1000000 * (limits->cpu_milli / 1000 + 1) + 5,
		.tasks = limits->pids + NPROC_SLACK,
	};
	int r;

	CHECK(c->state == CELL_READY);
	r = cgroup_set_limits(factory->tree, &c->leaf, &lim, f);
	if (r == 0)
		r = give_pipes(fds, cell_program_uid(factory->uid_base, c->slot), f);
	if (r < 0)
		return fault_wrap(f, "cell %s", c->leaf.name);
	r = channel_send(c->main_channel, MSG_START, &start, fds);
	if (r < 0)
		return fault_set(f, r, "cell %s: send START", c->leaf.name);
	enter_state(c, CELL_BUSY);
	return 0;
}

void cell_kill(struct cell *c)
{
	if (c->state == CELL_GONE || c->state == CELL_NONE)
		return;
	if (c->state != CELL_DYING)
		enter_state(c, CELL_DYING);
	if (c->leaf.name[0])
		(void)cgroup_kill(&c->leaf);
	/* They may not have been in the group yet; a second kill is harmless. */
	process_kill(&c->main);
	process_kill(&c->init);
	drop_fd(&c->init_channel);
	drop_fd(&c->main_channel);
}

bool cell_reap_main(struct cell *c)
{
	if (c->main_died)
		return true;
	if (c->main.pid > 0 && process_reap(&c->main, &c->main_status, &c->main_usage) == 1) {
		c->main_died = true;
		c->main_died_ns = clock_ns();
	}
	return c->main_died;
}

bool cell_is_empty(struct cell *c)
{
	struct rusage usage;
	int status;

	(void)cell_reap_main(c);
	if (c->init.pid > 0)
		(void)process_reap(&c->init, &status, &usage);
	return c->main.pid == 0 && c->init.pid == 0 &&
	       (c->leaf.name[0] == '\0' || cgroup_populated(&c->leaf) == 0);
}

bool cell_remove(struct cell *c, const struct cell_factory *factory)
{
	CHECK(c->state == CELL_DYING);
	if (cgroup_destroy(factory->tree, &c->leaf) == -EBUSY)
		return false;
	process_close(&c->init);
	process_close(&c->main);
	enter_state(c, CELL_GONE);
	return true;
}
