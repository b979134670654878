/* How a cell comes to be:
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
#include "priv/launch/cell.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/statfs.h>

/* While main enters, its leaf may use at least this much; it needs about 3 MiB and some ms. */
#define BUILD_MEMORY_BYTES (UINT64_C(64) << 20)
#define BUILD_CPU_MILLI    UINT32_C(500)
#define BUILD_PIDS         UINT32_C(4)

/* What a leaf that is kept may hold of the program before: the kernel counts in lots, some for
 * each CPU, and keeps caches. */
#define LEAF_LEFT_MAX (UINT64_C(2) << 20)

/* RLIMIT_NPROC is a second net: pids.max must be what refuses, because it counts. */
#define NPROC_SLACK UINT32_C(16)

/* The kernel should choose main before init, and both before anything of the host. */
#define OOM_SCORE_INIT 500
#define OOM_SCORE_MAIN 1000

/* A cage that is kept holds no more than this of the program before, until the next one. */
#define SCRATCH_LEFT_MAX (UINT64_C(256) << 10)

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

static void clear(struct cell *c, uint32_t slot, uint64_t id)
{
	*c = (struct cell){
		.slot = slot,
		.id = id,
		.init_channel = -1,
		.main_channel = -1,
		.created_ns = clock_ns(),
	};
	c->cage_ns = c->created_ns;
	for (unsigned i = 0; i < VIEW_SCRATCH; i++)
		c->scratch[i].fd = -1;
	cgroup_clear(&c->leaf);
	process_clear(&c->init);
	process_clear(&c->main);
	netstate_clear(&c->network);
}

/* A channel for one of the box's roles. Only our end is non-blocking: the box waits for
 * its messages, the supervisor never does. */
static int open_channel(int *ret_ours, int *ret_theirs, struct fault *f)
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
	int r = open_channel(&ours, &theirs, f);

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
	struct msg_build build = { .mounts = count, .full_proc = rt->full_proc };
	int r = channel_send(c->init_channel, MSG_BUILD, &build, NULL);

	for (unsigned i = 0; r == 0 && i < count; i++) {
		struct msg_mount m = { { 0 } };

		(void)snprintf(m.path, sizeof(m.path), "%s", i == 0 ? VIEW_ANCHOR : mounts[i].path);
		r = channel_send(c->init_channel, MSG_MOUNT, &m, &mounts[i].fd);
	}
	return r < 0 ? fault_set(f, r, "send the mounts") : 0;
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
	if (r == 0)
		r = process_release(&c->init, f);
	if (r == 0)
		r = view_mounts(factory->view, mounts, CELL_MOUNTS_MAX, &count, f);
	if (r == 0) {
		r = send_mounts(c, mounts, count, factory->runtime, f);
		view_mounts_close(mounts, count);
	}
	return r;
}

static int send_joins(const struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	const struct msg_join m = { 0 };

	for (unsigned i = 1; i < factory->tree->count; i++) {
		cleanup_fd int fd = cgroup_open_tasks(factory->tree, &c->leaf, i, f);
		int r;

		if (fd < 0)
			return fd;
		r = channel_send(c->main_channel, MSG_JOIN, &m, &fd);
		if (r < 0)
			return fault_set(f, r, "send JOIN");
	}
	return 0;
}

/* The program's own writable mounts, or those of which the program before made no use. Their
 * descriptors are kept: the size of a tmpfs can be changed later. */
static int make_scratch(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	const struct view_scratch scratch = { factory->usual.memory_bytes,
		factory->workspace_inodes, cell_program_uid(factory->uid_base, c->slot),
		cell_root_uid(factory->uid_base, c->slot) };
	int r = 0;

	for (unsigned i = 0; r == 0 && i < VIEW_SCRATCH; i++) {
		struct cell_scratch *s = &c->scratch[i];

		if (s->fd >= 0)
			continue;
		s->sent = false;
		r = view_scratch(&scratch, i, &s->fd, f);
		if (r == 0 && view_mark(s->fd, &s->made) < 0)
			s->made.files = 0; /* no mount is like that: it will be replaced */
	}
	return r;
}

static int send_scratch(struct cell *c, struct fault *f)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < VIEW_SCRATCH; i++) {
		struct msg_mount m = { { 0 } };

		if (c->scratch[i].sent)
			continue;
		(void)snprintf(m.path, sizeof(m.path), "%s", view_scratch_paths[i]);
		r = channel_send(c->main_channel, MSG_MOUNT, &m, &c->scratch[i].fd);
		c->scratch[i].sent = r == 0;
	}
	return r < 0 ? fault_set(f, r, "send the writable mounts") : 0;
}

/* What was used goes, and what was attached after it: the order of mounts can be seen. */
static void leave_scratch(struct cell *c)
{
	bool used = false;

	for (unsigned i = 0; i < VIEW_SCRATCH; i++) {
		struct cell_scratch *s = &c->scratch[i];

		used |= !view_is_untouched(s->fd, &s->made);
		if (used)
			drop_fd(&s->fd);
	}
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

/* main exists and is held or waits for ENTER: send it where it belongs. */
static int admit_main(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	struct msg_enter m = { .degraded = factory->degraded, .runtime = *factory->runtime };
	int r = process_oom_score(&c->main, OOM_SCORE_MAIN, f);

	if (r == 0 && !c->warm)
		r = process_release(&c->main, f);
	if (r == 0)
		r = send_joins(c, factory, f);
	if (r == 0)
		r = send_renew(c, f);
	if (r == 0)
		r = send_scratch(c, f);
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
	r = open_channel(&c->main_channel, &theirs, f);
	if (r < 0)
		return r;
	c->warm = true;
	if (factory->fork_main(factory->fork_ctx, c, theirs) < 0)
		return start_cold(c, factory, f);
	return 0;
}

bool cell_awaits_fork(const struct cell *c)
{
	return c->state == CELL_ENTERING && c->warm && c->main.pid == 0 && !c->main_died;
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
	if (c->fault.code == 0)
		(void)fault_set(&c->fault, code, "cell %lu: %s", (unsigned long)c->id, what);
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
	/* The kernel's word for an end that was closed with something unread in it, and after
	 * ENTERED there is nothing but START (tests/unit/test_channel.c). */
	c->unread = r == -ECONNRESET && c->state == CELL_BUSY;
	if (r < 0)
		return broke(c, r, "receive");
	if (m.type == MSG_BROKEN) {
		c->fault = m.as.BROKEN.fault;
		(void)fault_launder(&c->fault);
		return fault_wrap(&c->fault, "cell %lu", (unsigned long)c->id);
	}
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
	enter_state(c, CELL_BUILDING);
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
		larger(c->leaf.in_force.memory_bytes, BUILD_MEMORY_BYTES),
		(uint32_t)larger(
			c->leaf.in_force.cpu_milli, larger(usual->cpu_milli, BUILD_CPU_MILLI)),
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
	int r;

	enter_state(c, CELL_ENTERING);
	r = make_leaf(c, factory, f);
	if (r == 0)
		r = make_scratch(c, factory, f);
	if (r == 0)
		r = start_main(c, factory, f);
	return r < 0 ? fault_wrap(f, "cell %lu", (unsigned long)c->id) : 0;
}

int cell_occupy(struct cell *c, const struct cell_factory *factory, uint64_t id, struct fault *f)
{
	int r;

	CHECK(c->state == CELL_VACANT);
	c->id = id;
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

	enter_state(c, CELL_VACANT);
	/* If that fails nothing is like it, and the cage serves once. */
	if (netstate_open(c->init.pid, &c->network, &f) < 0)
		log_warn("netstate", "why=%s", LQ(f.text));
	if (occupy(c, factory, &f) == 0)
		return 0;
	c->fault = f;
	return f.code;
}

static struct cgroup_limits leaf_limits(const struct cell *c, const struct run_limits *l)
{
	return (struct cgroup_limits){ l->memory_bytes + c->base_memory, l->cpu_milli, l->pids };
}

/* The cell is complete: from here on everything is the program's. The usual limits are put
 * in force now, so that a request that asks for nothing else finds them. */
static int settle(struct cell *c, const struct cell_factory *factory)
{
	struct cgroup_limits lim;
	struct fault f = { 0 };

	cgroup_read_counters(factory->tree, &c->leaf, &c->base);
	cgroup_reset_peak(factory->tree, &c->leaf);
	c->base_memory = cgroup_memory_bytes(factory->tree, &c->leaf);
	/* What main has used until now is not the program's either. */
	cgroup_refill_cpu(&c->leaf);
	lim = leaf_limits(c, &factory->usual);
	if (cgroup_set_limits(factory->tree, &c->leaf, &lim, &f) < 0) {
		c->fault = f;
		return fault_wrap(&c->fault, "cell %lu", (unsigned long)c->id);
	}
	enter_state(c, CELL_READY);
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
			drop_fd(&c->main_channel);
			return 0;
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

/* Give the program's end of a pipe to its user: without that, /dev/stdout cannot be
 * opened; with more than the one direction, a program could read back its own output. */
static int give_pipe(int fd, mode_t mode, uint32_t uid, struct fault *f)
{
	int r = sys.fchmod(fd, mode);

	/* To the cell's root and the program's group: the owner could change the mode. */
	if (r == 0)
		r = sys.fchown(fd, uid - 1, uid);
	return r < 0 ? fault_set(f, r, "give the pipe to the program's user") : 0;
}

static int give_pipes(const int *fds, uint32_t uid, struct fault *f)
{
	int r = give_pipe(fds[1], 0040, uid, f);

	if (r == 0)
		r = give_pipe(fds[2], 0020, uid, f);
	if (r == 0)
		r = give_pipe(fds[3], 0020, uid, f);
	return r;
}

/* What this request asks for, where it differs from what is in force already. */
static int fit(struct cell *c, const struct cell_factory *factory, const struct run_limits *l,
	struct fault *f)
{
	const struct run_limits *usual = &factory->usual;
	struct cgroup_limits lim = leaf_limits(c, l);
	int r = 0;

	if (l->memory_bytes != usual->memory_bytes || l->cpu_milli != usual->cpu_milli ||
		l->pids != usual->pids)
		r = cgroup_set_limits(factory->tree, &c->leaf, &lim, f);
	for (unsigned i = 0; r == 0 && i < VIEW_SCRATCH; i++) {
		if (l->memory_bytes != usual->memory_bytes)
			r = mount_tmpfs_resize(c->scratch[i].fd, l->memory_bytes, f);
	}
	return r;
}

int cell_start(struct cell *c, const struct cell_factory *factory, const struct run_limits *limits,
	uint64_t code_bytes, const int *fds, struct fault *f)
{
	struct msg_start start = {
		.code_bytes = code_bytes,
		.file_bytes = limits->memory_bytes,
		/* A net far below which the supervisor's own watch has ended the run. */
		.cpu_seconds = limits->timeout_us / 1000000 * (limits->cpu_milli / 1000 + 1) + 5,
		.tasks = limits->pids + NPROC_SLACK,
	};
	int r;

	CHECK(c->state == CELL_READY);
	r = fit(c, factory, limits, f);
	if (r == 0)
		r = give_pipes(fds, cell_program_uid(factory->uid_base, c->slot), f);
	if (r < 0)
		return fault_wrap(f, "cell %lu", (unsigned long)c->id);
	r = channel_send(c->main_channel, MSG_START, &start, fds);
	if (r < 0)
		return fault_set(f, r, "cell %lu: send START", (unsigned long)c->id);
	enter_state(c, CELL_BUSY);
	c->runs++;
	return 0;
}

void cell_evict(struct cell *c)
{
	CHECK(c->state == CELL_READY);
	enter_state(c, CELL_DYING);
	c->killed_ns = clock_ns();
	/* Not by cgroup.kill: Linux 6.18 then kills whatever is born into the leaf later. */
	process_kill(&c->main);
	drop_fd(&c->main_channel);
}

void cell_kill(struct cell *c)
{
	if (c->state == CELL_GONE || c->state == CELL_NONE)
		return;
	if (c->state != CELL_DYING) {
		enter_state(c, CELL_DYING);
		c->killed_ns = clock_ns();
	}
	/* A program that ended by itself and left nothing needs no kill. */
	if (!c->main_ended &&
		!(c->main_died && c->leaf.name[0] && cgroup_populated(&c->leaf) == 0)) {
		if (c->leaf.name[0])
			(void)cgroup_kill(&c->leaf);
		/* It may not have been in the group yet; a second kill is harmless. */
		process_kill(&c->main);
		/* With init its whole pid namespace goes, whatever group it is in. */
		process_kill(&c->init);
		c->doomed = true;
	}
	drop_fd(&c->main_channel);
}

bool cell_reap_main(struct cell *c)
{
	struct rusage usage;
	int status;

	if (c->main_died || c->main.pid <= 0 || process_reap(&c->main, &status, &usage) != 1)
		return c->main_died;
	c->main_died = true;
	if (c->main_ended) {
		/* It has been answered with what the record said. */
		if (status != c->main_status)
			log_err("exit_record", "cell=%s said=%#x was=%#x", c->leaf.name,
				(unsigned)c->main_status, (unsigned)status);
		return true;
	}
	c->main_status = status;
	c->main_usage = usage;
	c->main_died_ns = clock_ns();
	return true;
}

bool cell_end_main(
	struct cell *c, const struct cell_factory *factory, const struct taskstats_exit *end)
{
	struct taskstats_exit all = *end;
	uint64_t tasks;

	if (c->state != CELL_BUSY || c->main_died || c->main.pid != end->pid)
		return false;
	/* With other threads the status may be one of theirs; another task would go on. */
	if (end->had_threads || cgroup_tasks(factory->tree, &c->leaf, &tasks) < 0 || tasks != 1)
		return false;
	/* wait4() counts the faults of awaited children, the record does not. */
	if (cgroup_tasks_peak(factory->tree, &c->leaf) != 1 && taskstats_add_children(&all) < 0)
		return false;
	c->main_ended = true;
	c->main_status = all.status;
	c->main_usage = (struct rusage){
		.ru_minflt = (long)all.minor_faults,
		.ru_majflt = (long)all.major_faults,
	};
	c->main_died_ns = clock_ns();
	return true;
}

bool cell_is_empty(struct cell *c)
{
	/* Read in any case: that is what makes its event, which comes before main can be
	 * reaped, come only once. */
	bool populated = c->leaf.name[0] != '\0' && cgroup_populated(&c->leaf) != 0;

	(void)cell_reap_main(c);
	return c->main.pid == 0 && !populated;
}

static uint64_t less(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

uint64_t cell_cpu_us(const struct cell *c, const struct cell_factory *factory)
{
	return less(cgroup_cpu_us(factory->tree, &c->leaf), c->base.cpu_us);
}

void cell_usage(const struct cell *c, const struct cell_factory *factory, struct cgroup_usage *ret)
{
	cgroup_read_usage(factory->tree, &c->leaf, ret);
	ret->cpu_us = less(ret->cpu_us, c->base.cpu_us);
	ret->user_us = less(ret->user_us, c->base.user_us);
	ret->system_us = less(ret->system_us, c->base.system_us);
	ret->throttled_us = less(ret->throttled_us, c->base.throttled_us);
	ret->memory_peak_bytes = less(ret->memory_peak_bytes, c->base_memory);
	ret->pids_refused = less(ret->pids_refused, c->base.pids_refused);
}

bool cell_is_ruin(const struct cell *c)
{
	struct pollfd p = { .fd = c->init.pidfd, .events = POLLIN };

	return c->init.pid <= 0 || sys.poll(&p, 1, 0) != 0;
}

/* What is left in the writable mounts stays until the next main replaces them. */
static bool scratch_is_small(const struct cell *c)
{
	uint64_t bytes = 0;

	for (unsigned i = 0; i < VIEW_SCRATCH; i++) {
		struct statfs st;

		if (sys.fstatfs(c->scratch[i].fd, &st) < 0)
			return false;
		bytes += (uint64_t)(st.f_blocks - st.f_bfree) * (uint64_t)st.f_bsize;
	}
	return bytes <= SCRATCH_LEFT_MAX;
}

/* Is everything as it was when init had made it? What a program can change without a
 * capability and what outlives its processes are: its leaf (emptied or destroyed), its
 * writable mounts (replaced when touched), the numbering of processes (begun again), and the
 * network namespace. System V and POSIX message queues, keys and new namespaces are denied
 * by the program's filter; the other mounts are read-only. */
static bool is_as_made(const struct cell *c, const struct cell_factory *factory)
{
	uint64_t tasks;

	if (cgroup_tasks(factory->tree, &c->leaf, &tasks) < 0 || tasks > 0)
		return false; /* a dead process that nobody has reaped still has its number */
	return netstate_is_as_made(&c->network);
}

/* Its leaf is for the next program, or gone. One that holds much goes with its cage: the kernel
 * may hold it for what it has cached of the cage. */
static bool leave_leaf(struct cell *c, const struct cell_factory *factory)
{
	struct fault f = { 0 };
	int r = cgroup_renew(factory->tree, &c->leaf, LEAF_LEFT_MAX, &f);

	if (r == 0)
		return true;
	if (r != -EOPNOTSUPP || cgroup_holds_more(factory->tree, &c->leaf, LEAF_LEFT_MAX) ||
		cgroup_destroy(factory->tree, &c->leaf) < 0)
		return false;
	cgroup_clear(&c->leaf);
	return true;
}

bool cell_vacate(struct cell *c, const struct cell_factory *factory)
{
	CHECK(c->state == CELL_DYING);
	if (c->doomed || c->runs >= factory->runs_max || cell_is_ruin(c) || !scratch_is_small(c) ||
		!is_as_made(c, factory))
		return false;
	if (!leave_leaf(c, factory))
		return false;
	leave_scratch(c);
	process_close(&c->main);
	process_clear(&c->main);
	c->main_died = c->main_ended = false;
	c->fault = (struct fault){ 0 };
	c->renewed = true;
	enter_state(c, CELL_VACANT);
	return true;
}

bool cell_remove(struct cell *c, const struct cell_factory *factory)
{
	struct rusage usage;
	int status, r;

	CHECK(c->state == CELL_DYING);
	if (c->init.pid > 0) {
		drop_fd(&c->init_channel);
		process_kill(&c->init);
		c->doomed = true;
		if (process_reap(&c->init, &status, &usage) == 0)
			return false;
	}
	/* The pages of the writable mounts stay charged as long as the mounts live. */
	for (unsigned i = 0; i < VIEW_SCRATCH; i++)
		drop_fd(&c->scratch[i].fd);
	r = cgroup_destroy(factory->tree, &c->leaf);
	if (r == -EBUSY)
		return false;
	if (r < 0)
		log_warn("cgroup_left", "cell=%s why=\"%s\"", c->leaf.name, strerrordesc_np(-r));
	cgroup_close(&c->leaf);
	netstate_close(&c->network);
	process_close(&c->init);
	process_close(&c->main);
	enter_state(c, CELL_GONE);
	return true;
}
