/* How a cell comes to be (1 to 4), and what follows in cell_run.c (5) and cell_cage.c (6):
 *
 *   1. detached mounts, init born into new namespaces and the group of all inits, held
 *   2. its id maps, its OOM score; then it is released, gets BUILD and
 *      one MOUNT for each mount, and builds the cage
 *   3. BUILT: the cage is VACANT, and occupied at once: a leaf and writable mounts are made,
 *      main is born into the leaf and the cell's pid namespace: cold, as a child that
 *      execs the box's `enter`, or warm, forked by a zygote. It moves itself into
 *      the v1 groups, gets the mounts and ENTER with init's pidfd, joins, drops everything
 *   4. ENTERED: READY. What the leaf holds now is noted: it is not the program's.
 *   5. cell_start() sends START, and main becomes the program.
 *   6. The program has ended and its leaf is empty: the cage is looked at, and VACANT again
 *      (ADR 9), or removed.
 *
 * init is not in the leaf: when main has died and left nothing, the leaf is empty at once,
 * and an OOM kill cannot choose init.
 *
 * Both processes are children of the supervisor, so that no one else can lose or forge
 * the program's wait status.
 */
#include "priv/launch/cell_internal.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "kernel/tun.h"
#include "priv/launch/build.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

/* While main enters, its leaf may use at least this much; it needs about 3 MiB and some ms. */
#define BUILD_MEMORY_BYTES (UINT64_C(64) << 20)
#define BUILD_CPU_MILLI    UINT32_C(500)
#define BUILD_PIDS         UINT32_C(4)

/* The kernel should choose main before init, and both before anything of the host. */
#define OOM_SCORE_INIT 500
#define OOM_SCORE_MAIN 1000

#define CELL_NAMESPACES \
	(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

static const bool edges[CELL_STATE_MAX][CELL_STATE_MAX] = {
	[CELL_NONE] = { [CELL_BUILDING] = true },
	[CELL_BUILDING] = { [CELL_VACANT] = true, [CELL_DYING] = true },
	[CELL_VACANT] = { [CELL_ENTERING] = true, [CELL_DYING] = true },
	[CELL_ENTERING] = { [CELL_READY] = true, [CELL_DYING] = true },
	[CELL_READY] = { [CELL_BUSY] = true, [CELL_DYING] = true },
	[CELL_BUSY] = { [CELL_DYING] = true },
	[CELL_DYING] = { [CELL_VACANT] = true, [CELL_GONE] = true },
	[CELL_GONE] = { [CELL_BUILDING] = true },
};

void cell_enter_state(struct cell *c, enum cell_state next)
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

static void clear(struct cell *c, uint32_t slot, uint64_t id)
{
	*c = (struct cell){
		.slot = slot,
		.id = id,
		.init_channel = -1,
		.main_channel = -1,
		.tun_fd = -1,
		.build_fd = -1,
		.created_ns = clock_ns(),
	};
	c->cage_ns = c->created_ns;
	scratch_clear(&c->scratch);
	cgroup_clear(&c->leaf);
	process_clear(&c->init);
	process_clear(&c->main);
	netstate_clear(&c->network);
	refusals_clear(&c->refusals);
}

/* A channel for one of the box's roles. Only our end is non-blocking: the box waits for
 * its messages, the supervisor never does. */
int cell_open_channel(int *ret_ours, int *ret_theirs, struct fault *f)
{
	int pair[2], r = channel_pair(pair, 0);

	if (r < 0)
		return fault_set(f, r, "socketpair");
	*ret_ours = pair[0];
	*ret_theirs = pair[1];
	r = sys.fcntl(pair[0], F_SETFL, O_NONBLOCK);
	return r < 0 ? fault_set(f, r, "non-blocking channel") : 0;
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
		/* A late child of the zygote may have the usual number. */
		.number = is_init || c->doomed ? 0 : MAIN_PID,
		.cgroup_fd = cgroup_clone_fd(is_init ? factory->inits : &c->leaf),
		.own_root = is_init,
		.owner_uid = is_init ? cell_root_uid(factory->uid_base, c->slot) : 0,
	};
	int r = cell_open_channel(&ours, &theirs, f);

	if (r == 0) {
		plan.fds[0] = theirs;
		r = process_spawn(&plan, ret, f);
	}
	if (r < 0)
		return fault_wrap(f, "%s", role);
	*ret_channel = take_fd(&ours);
	return 0;
}

static int send_mounts(const struct cell *c, const struct view_mount *mounts, unsigned count,
	const struct runtime *rt, struct fault *f)
{
	struct msg_build build = {
		.mounts = count,
		.full_proc = rt->full_proc,
		.network = c->tun_fd >= 0,
	};
	int r = channel_send(c->init_channel, MSG_BUILD, &build, NULL);

	for (unsigned i = 0; r == 0 && i < count; i++) {
		struct msg_mount m = { { 0 } };

		(void)snprintf(m.path, sizeof(m.path), "%s", i == 0 ? VIEW_ANCHOR : mounts[i].path);
		r = channel_send(c->init_channel, MSG_MOUNT, &m, &mounts[i].fd);
	}
	return r < 0 ? fault_set(f, r, "send the mounts") : 0;
}

/* Its network namespace is there since its birth. */
static int send_tun(struct cell *c, struct fault *f)
{
	const struct msg_tun m = { 0 };
	int r = channel_send(c->init_channel, MSG_TUN, &m, &c->tun_fd);

	return r < 0 ? fault_set(f, r, "send TUN") : 0;
}

static int start_init(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	const uint32_t inside[] = { 0, 1000 };
	const uint32_t outside[] = { cell_root_uid(factory->uid_base, c->slot),
		cell_program_uid(factory->uid_base, c->slot) };
	struct view_mount mounts[CELL_MOUNTS_MAX];
	unsigned count;
	int r;

	r = spawn_box(c, factory, "init", &c->init, &c->init_channel, f);
	if (r == 0)
		r = process_map_ids(&c->init, inside, outside, 2, f);
	if (r == 0)
		r = process_oom_score(&c->init, OOM_SCORE_INIT, f);
	if (r == 0 && factory->network)
		r = tun_open(c->init.pidfd, &c->tun_fd, f);
	if (r == 0)
		r = process_release(&c->init, f);
	if (r == 0)
		r = view_mounts(factory->view, factory->network, mounts, &count, f);
	if (r == 0) {
		r = send_mounts(c, mounts, count, factory->runtime, f);
		view_mounts_close(mounts, count);
	}
	if (r == 0 && factory->network)
		r = send_tun(c, f);
	return r;
}

int cell_send_joins(const struct cell_factory *factory, const struct cgroup *leaf, int channel_fd,
	enum msg_type type, struct fault *f)
{
	const struct msg_join m = { 0 };

	for (unsigned i = 1; i < factory->tree->count; i++) {
		cleanup_fd int fd = cgroup_open_tasks(factory->tree, leaf, i, f);
		int r;

		if (fd < 0)
			return fd;
		r = channel_send(channel_fd, type, &m, &fd);
		if (r < 0)
			return fault_set(f, r, "send JOIN");
	}
	return 0;
}

/* The file is of whoever writes to it: main's pid namespace. Also in a new cage: a main that
 * came too late may have been there before. */
static int send_renew(struct cell *c, struct fault *f)
{
	static const char path[] = "/proc/sys/kernel/ns_last_pid";
	const struct msg_renew m = { .used = c->renewed };
	cleanup_fd int fd = sys.openat(AT_FDCWD, path, O_WRONLY | O_CLOEXEC, 0);
	int r;

	if (fd == -ENOENT && !c->renewed) {
		c->doomed = true; /* a kernel without checkpoints: each cage serves once */
		return 0;
	}
	if (fd < 0)
		return fault_set(f, fd, "open %s", path);
	r = channel_send(c->main_channel, MSG_RENEW, &m, &fd);
	return r < 0 ? fault_set(f, r, "send RENEW") : 0;
}

static int send_build(struct cell *c, struct fault *f)
{
	const struct msg_mount m = { .path = BUILD_PATH };
	int r = channel_send(c->main_channel, MSG_MOUNT, &m, &c->build_fd);

	drop_fd(&c->build_fd);
	return r < 0 ? fault_set(f, r, "send the place for a build") : 0;
}

/* main exists and is held or waits for ENTER: send it where it belongs. */
static int admit_main(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	struct msg_enter m = {
		.degraded = factory->degraded,
		.runtime = *factory->runtime,
		.builds = c->builds,
	};
	int r = process_oom_score(&c->main, OOM_SCORE_MAIN, f);

	if (r == 0 && !c->warm)
		r = process_release(&c->main, f);
	if (r == 0)
		r = cell_send_joins(factory, &c->leaf, c->main_channel, MSG_JOIN, f);
	if (r == 0)
		r = send_renew(c, f);
	if (r == 0)
		r = scratch_send(&c->scratch, c->main_channel, f);
	if (r == 0 && c->build_fd >= 0)
		r = send_build(c, f);
	if (r == 0) {
		r = channel_send(c->main_channel, MSG_ENTER, &m, &c->init.pidfd);
		if (r < 0)
			(void)fault_set(f, r, "send ENTER");
	}
	return r;
}

static int start_cold(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	int r;

	c->warm = false;
	drop_fd(&c->main_channel);
	r = spawn_box(c, factory, "enter", &c->main, &c->main_channel, f);
	return r == 0 ? admit_main(c, factory, f) : r;
}

static int start_main(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	cleanup_fd int theirs = -1;
	int r;

	if (!factory->fork_main)
		return start_cold(c, factory, f);
	r = cell_open_channel(&c->main_channel, &theirs, f);
	if (r < 0)
		return r;
	c->warm = true;
	if (factory->fork_main(factory->fork_ctx, c, theirs) < 0)
		return start_cold(c, factory, f);
	return 0;
}

bool cell_awaits_fork(const struct cell *c)
{
	return c->state == CELL_ENTERING && c->warm && c->main.pid == 0;
}

int cell_forked(struct cell *c, const struct cell_factory *factory, pid_t pid, int pidfd)
{
	struct fault f = { 0 };

	CHECK(cell_awaits_fork(c));
	c->main = (struct process){ .pid = pid, .pidfd = pidfd, .release_fd = -1 };
	if (admit_main(c, factory, &f) < 0) {
		c->fault = f;
		return fault_wrap(&c->fault, "cell %lu", (unsigned long)c->id);
	}
	return 0;
}

int cell_unforked(struct cell *c, const struct cell_factory *factory)
{
	struct fault f = { 0 };

	CHECK(cell_awaits_fork(c));
	/* The zygote may be late, and fork into this cage yet. */
	c->doomed = true;
	if (start_cold(c, factory, &f) < 0) {
		c->fault = f;
		return fault_wrap(&c->fault, "cell %lu", (unsigned long)c->id);
	}
	return 0;
}

static int broke(struct cell *c, int code, const char *what)
{
	return fault_set(&c->fault, code, "cell %lu: %s", (unsigned long)c->id, what);
}

/* Why there is no message: the end (0), or an errno of channel_recv(). */
static int hear_nothing(struct cell *c, int r, enum msg_type type, const char *rule)
{
	bool is_init = type == MSG_BUILT;

	if (r == 0)
		return broke(c, -EPIPE, is_init ? "init ended" : "main ended");
	/* With something unread: it did not come as far as that, as when its exec failed. */
	if (r == -ECONNRESET && c->state != CELL_BUSY)
		return broke(c, -EPIPE,
			is_init ? "init ended before it began" : "main ended before it began");
	if (r == -EPROTO)
		return broke(c, r, rule);
	/* The kernel's word for an end that was closed with something unread in it, and after
	 * ENTERED there is nothing but START (tests/unit/test_channel.c). */
	c->unread = r == -ECONNRESET;
	return broke(c, r, "receive");
}

/* A message from init or main in the state where only `type` may come. */
static int hear_one(struct cell *c, int channel, enum msg_type type)
{
	static struct msg m; /* static: too large for a careful stack; single-threaded */
	const char *rule = "";
	int r = channel_recv(channel, ROLE_BOX, ROLE_SUPERVISOR, &m, &rule);

	if (r == -EAGAIN)
		return 0;
	if (r <= 0)
		return hear_nothing(c, r, type, rule);
	if (m.type == MSG_BROKEN) {
		c->fault = m.as.BROKEN.fault;
		(void)fault_launder(&c->fault);
		return fault_wrap(&c->fault, "cell %lu", (unsigned long)c->id);
	}
	if (m.type == MSG_LISTENER && type == MSG_ENTERED && c->refusals.fd < 0) {
		refusals_take(&c->refusals, take_fd(&m.fds[0]));
		return 0;
	}
	msg_done(&m);
	if (m.type != type)
		return broke(c, -EPROTO, "unexpected message");
	if (type == MSG_ENTERED) {
		c->base_minor_faults = m.as.ENTERED.minor_faults;
		c->base_major_faults = m.as.ENTERED.major_faults;
	}
	return 1;
}

int cell_create(struct cell *c, const struct cell_factory *factory, uint32_t slot, uint64_t id,
	struct fault *f)
{
	clear(c, slot, id);
	cell_enter_state(c, CELL_BUILDING);
	if (start_init(c, factory, f) == 0)
		return 0;
	/* A send that failed says less than what init said before it ended. */
	if (c->init_channel >= 0 && hear_one(c, c->init_channel, MSG_BROKEN) < 0 &&
		c->fault.code != -EPIPE)
		*f = c->fault;
	else
		(void)fault_wrap(f, "cell %lu", (unsigned long)id);
	c->fault = *f;
	cell_kill(c);
	return f->code;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* What is in force, or will be, is left alone if it is enough to enter with. */
static struct cgroup_limits build_limits(const struct cell *c, const struct run_limits *usual)
{
	return (struct cgroup_limits){
		larger(c->leaf.in_force[CGROUP_MEMORY], BUILD_MEMORY_BYTES),
		(uint32_t)larger(
			c->leaf.in_force[CGROUP_CPU], larger(usual->cpu_milli, BUILD_CPU_MILLI)),
		(uint32_t)larger(usual->pids, BUILD_PIDS),
	};
}

/* A leaf: the one of the program before, if it can begin anew, or a new one. */
static int make_leaf(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	const struct cgroup_limits lim = build_limits(c, &factory->usual);
	char name[24];

	if (c->leaf.name[0])
		return cgroup_set_limits(factory->tree, &c->leaf, &lim, f);
	(void)snprintf(name, sizeof(name), "c%lu", (unsigned long)c->id);
	return cgroup_create(factory->tree, name, &lim, &c->leaf, f);
}

static int occupy(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	const struct view_scratch scratch = { factory->usual.memory_bytes,
		factory->workspace_inodes, cell_program_uid(factory->uid_base, c->slot),
		cell_root_uid(factory->uid_base, c->slot) };
	int r;

	cell_enter_state(c, CELL_ENTERING);
	r = make_leaf(c, factory, f);
	if (r == 0)
		r = scratch_make(&c->scratch, &scratch, f);
	if (r == 0)
		r = start_main(c, factory, f);
	return r < 0 ? fault_wrap(f, "cell %lu", (unsigned long)c->id) : 0;
}

int cell_occupy(struct cell *c, const struct cell_factory *factory, uint64_t id, struct fault *f)
{
	int r;

	CHECK(c->state == CELL_VACANT);
	c->id = id;
	c->warm = false;
	c->created_ns = clock_ns();
	r = occupy(c, factory, f);
	if (r < 0) {
		c->fault = *f;
		cell_kill(c);
	}
	return r;
}

/* The cage stands. What its network looks like now is what it must look like again. */
static int move_in(struct cell *c, const struct cell_factory *factory)
{
	struct fault f = { 0 };

	cell_enter_state(c, CELL_VACANT);
	/* If that fails nothing is like it, and the cage serves once. */
	if (netstate_open(c->init.pid, &c->network, &f) < 0)
		log_warn("netstate", "why=%s", LQ(f.text));
	if (occupy(c, factory, &f) == 0)
		return 0;
	c->fault = f;
	return f.code;
}

/* Once is enough: it is the host, and not the cell. */
static void miss_listener(void)
{
	static bool said;

	if (!said)
		log_info("denials",
			"seccomp=off why=\"a filter above this process has a listener\"");
	said = true;
}

/* The cell is complete: from here on everything is the program's. The usual limits are put
 * in force now, so that a request that asks for nothing else finds them. */
static int settle(struct cell *c, const struct cell_factory *factory)
{
	struct cgroup_limits lim;
	struct fault f = { 0 };

	if (c->refusals.fd < 0)
		miss_listener();
	refusals_forget(&c->refusals);
	cgroup_read_counters(factory->tree, &c->leaf, &c->base);
	cgroup_reset_peak(&c->leaf);
	c->base_memory = cgroup_memory_bytes(&c->leaf);
	/* What main has used until now is not the program's either. */
	cgroup_refill_cpu(&c->leaf);
	lim = cell_leaf_limits(c, &factory->usual);
	if (cgroup_set_limits(factory->tree, &c->leaf, &lim, &f) < 0) {
		c->fault = f;
		return fault_wrap(&c->fault, "cell %lu", (unsigned long)c->id);
	}
	cell_enter_state(c, CELL_READY);
	return 0;
}

int cell_hear(struct cell *c, const struct cell_factory *factory)
{
	int r;

	switch (c->state) {
	case CELL_BUILDING:
		r = hear_one(c, c->init_channel, MSG_BUILT);
		return r > 0 ? move_in(c, factory) : r;
	case CELL_ENTERING:
		r = hear_one(c, c->main_channel, MSG_ENTERED);
		return r > 0 ? settle(c, factory) : r;
	case CELL_READY:
	case CELL_BUSY:
		/* A parked process has nothing to say; a released one only that its exec
		 * failed. The exec itself closes the channel. */
		r = hear_one(c, c->main_channel, MSG_BROKEN);
		if (r == -EPIPE && c->state == CELL_BUSY) {
			c->fault = (struct fault){ 0 };
			return 1;
		}
		return r;
	case CELL_NONE:
	case CELL_VACANT:
	case CELL_DYING:
	case CELL_GONE:
	case CELL_STATE_MAX:
	default:
		return 0;
	}
}

void cell_hush(struct cell *c)
{
	drop_fd(&c->main_channel);
}
