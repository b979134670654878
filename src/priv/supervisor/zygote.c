#include "priv/supervisor/zygote.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "priv/launch/view.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WARM_TIMEOUT_NS (30 * NS_PER_S) /* imports on a loaded host take a second or two */
#define FORK_TIMEOUT_NS (3 * NS_PER_S)  /* a fork takes some ms; a stopped zygote never answers */

#define REFUSALS_MAX 3 /* one can be a shortage that passes */

#define SCRATCH_BYTES  (UINT64_C(1) << 20)
#define SCRATCH_INODES UINT64_C(64)
#define AGENT_BYTES    (UINT64_C(1) << 30) /* what is preloaded moves there; only that counts */

/* The agent and the module that forks, carried in the program (src/box/meson.build). */
extern const unsigned char zygote_agent_start[], zygote_agent_end[];
extern const unsigned char zygote_module_start[], zygote_module_end[];

#define ZYGOTE_NAMESPACES (CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS | CLONE_NEWNET)

void zygote_clear(struct zygote *z)
{
	*z = (struct zygote){ .state = ZYGOTE_ABSENT, .channel_fd = -1, .deadline_ns = UINT64_MAX };
	process_clear(&z->process);
}

static int put_file(int dir_fd, const char *name, const unsigned char *start,
	const unsigned char *end, struct fault *f)
{
	cleanup_fd int fd = sys.openat(dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "create %s", name);
	r = io_write_all(fd, start, (size_t)(end - start));
	return r < 0 ? fault_set(f, r, "write %s", name) : 0;
}

/* The zygote's own code, in a mount that no cell has. It must be executable: the module is
 * mapped from it. */
static int agent_mount(const char *preload, struct view_mount *ret, struct fault *f)
{
	const struct mount_tmpfs t = { AGENT_BYTES, 16, 0755, 0, .large_pages = true };
	cleanup_fd int fd = -1, dir = -1;
	int r = mount_tmpfs(&t, MOUNT_NODEV, &fd, f);

	if (r < 0)
		return r;
	dir = sys.openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir < 0)
		return fault_set(f, dir, "open the agent's mount");
	r = put_file(dir, "agent.py", zygote_agent_start, zygote_agent_end, f);
	if (r == 0)
		r = put_file(dir, "_glovebox.so", zygote_module_start, zygote_module_end, f);
	if (r == 0)
		r = put_file(dir, "preload.txt", (const unsigned char *)preload,
			(const unsigned char *)preload + strlen(preload), f);
	if (r < 0)
		return r;
	ret->fd = take_fd(&fd);
	(void)snprintf(ret->path, sizeof(ret->path), "run");
	return 0;
}

static int send_all(struct zygote *z, const struct cell_factory *factory,
	const struct view_mount *mounts, unsigned count, struct fault *f)
{
	struct msg_build build = { .mounts = count, .full_proc = factory->runtime->full_proc };
	struct msg_enter enter = { .degraded = factory->degraded, .runtime = *factory->runtime };
	int r = channel_send(z->channel_fd, MSG_BUILD, &build, NULL);

	for (unsigned i = 0; r == 0 && i < count; i++) {
		struct msg_mount m = { { 0 } };

		const char *path = mounts[i].path;

		/* All of them relative to the root. */
		(void)snprintf(m.path, sizeof(m.path), "%s",
			i == 0 ? VIEW_ANCHOR : path + (path[0] == '/'));
		r = channel_send(z->channel_fd, MSG_MOUNT, &m, &mounts[i].fd);
	}
	/* ENTER carries an init's pidfd; here it is its own, and of no use. */
	if (r == 0)
		r = channel_send(z->channel_fd, MSG_ENTER, &enter, &z->process.pidfd);
	return r < 0 ? fault_set(f, r, "send what it needs") : 0;
}

static int add_scratch(struct view_mount *mounts, unsigned *count, struct fault *f)
{
	const struct view_scratch scratch = { SCRATCH_BYTES, SCRATCH_INODES, 0, 0 };

	for (unsigned i = 0; i < VIEW_SCRATCH; i++) {
		int r = view_scratch(&scratch, i, &mounts[*count].fd, f);

		if (r < 0)
			return r;
		(void)snprintf(mounts[*count].path, CELL_PATH_MAX, "%s", view_scratch_paths[i]);
		(*count)++;
	}
	return 0;
}

static int furnish(
	struct zygote *z, const struct cell_factory *factory, const char *preload, struct fault *f)
{
	struct view_mount mounts[CELL_MOUNTS_MAX];
	unsigned count;
	int r = view_mounts(factory->view, false, mounts, &count, f);

	if (r < 0)
		return r;
	r = add_scratch(mounts, &count, f);
	if (r == 0)
		r = agent_mount(preload, &mounts[count], f);
	if (r == 0)
		count++;
	if (r == 0)
		r = send_all(z, factory, mounts, count, f);
	view_mounts_close(mounts, count);
	return r;
}

static int spawn(struct zygote *z, const struct cell_factory *factory, struct fault *f)
{
	cleanup_fd int theirs = -1;
	struct process_plan plan = {
		.image_fd = factory->box_image_fd,
		.argv = { "glovebox", "zygote", NULL },
		.nfds = 1,
		.out_fd = -1,
		.err_fd = -1,
		.namespaces = ZYGOTE_NAMESPACES,
		.pidns_of = -1,
		.cgroup_fd = cgroup_clone_fd(factory->zygotes),
		.new_session = 1,
	};
	int pair[2], r = channel_pair(pair, 0);

	if (r < 0)
		return fault_set(f, r, "socketpair");
	z->channel_fd = pair[0];
	theirs = pair[1];
	plan.fds[0] = theirs;
	r = sys.fcntl(z->channel_fd, F_SETFL, O_NONBLOCK);
	if (r < 0)
		return fault_set(f, r, "non-blocking channel");
	r = process_spawn(&plan, &z->process, f);
	if (r == 0)
		r = process_release(&z->process, f);
	return r;
}

int zygote_start(struct zygote *z, const struct cell_factory *factory, const char *preload,
	uint64_t generation, struct fault *f)
{
	int r;

	CHECK(z->state == ZYGOTE_ABSENT && z->process.pid == 0);
	zygote_clear(z);
	z->generation = generation;
	z->runtime = factory->runtime->name;
	z->started_ns = clock_ns();
	z->deadline_ns = z->started_ns + WARM_TIMEOUT_NS;
	r = spawn(z, factory, f);
	if (r == 0)
		r = furnish(z, factory, preload, f);
	if (r < 0) {
		(void)fault_wrap(f, "zygote");
		zygote_end(z);
		z->fault = *f;
		return r;
	}
	z->state = ZYGOTE_STARTING;
	return 0;
}

int zygote_fork(struct zygote *z, const struct cell *c, int channel_fd, bool rehearse)
{
	struct msg_fork m = { .cell = c->id, .rehearse = rehearse };
	const int fds[3] = { c->init.pidfd, cgroup_clone_fd(&c->leaf), channel_fd };
	int r;

	if (z->state != ZYGOTE_WARM)
		return -ENOENT;
	r = channel_send(z->channel_fd, MSG_FORK, &m, fds);
	if (r < 0)
		return r;
	z->forks++;
	if (z->unanswered++ == 0)
		z->deadline_ns = clock_ns() + FORK_TIMEOUT_NS;
	return 0;
}

static int lost(struct zygote *z, int code, const char *why)
{
	return fault_set(&z->fault, code, "zygote: %s%s%s", z->preloading,
		z->preloading[0] ? ": " : "", why);
}

static int is_preloading(struct zygote *z, const struct msg *m)
{
	if (z->state != ZYGOTE_STARTING)
		return lost(z, -EPROTO, "it preloads when it is warm");
	(void)snprintf(z->preloading, sizeof(z->preloading), "%.*s", PRELOADING_MAX - 1,
		m->as.PRELOADING.what);
	return 1;
}

static void is_warm(struct zygote *z, struct msg *m)
{
	z->state = ZYGOTE_WARM;
	z->preloading[0] = '\0';
	z->deadline_ns = UINT64_MAX;
	m->as.WARM.version[RUNTIME_NAME_MAX - 1] = '\0';
	memcpy(z->version, m->as.WARM.version, sizeof(z->version));
	log_info("zygote_warm", "generation=%lu runtime=%s modules=%u version=%s ms=%lu",
		(unsigned long)z->generation, LQ(z->runtime), m->as.WARM.modules, LQ(z->version),
		(unsigned long)((clock_ns() - z->started_ns) / NS_PER_MS));
}

/* The answers come in the order of the questions, so each one starts the next one's time. */
static void was_answered(struct zygote *z)
{
	if (z->unanswered > 0)
		z->unanswered--;
	z->deadline_ns = z->unanswered > 0 ? clock_ns() + FORK_TIMEOUT_NS : UINT64_MAX;
}

/* The cell is gone: its run was started cold when the fork was long in coming. */
static bool is_too_late(const struct fault *f)
{
	return f->code == -ESRCH || f->code == -ENODEV || f->code == -EEXIST;
}

int zygote_hear(struct zygote *z, struct msg *ret)
{
	const char *rule = "";
	int r = channel_recv(z->channel_fd, ROLE_ZYGOTE, ROLE_SUPERVISOR, ret, &rule);

	if (r == -EAGAIN)
		return 0;
	if (r == 0)
		return lost(z, -EPIPE, "it ended");
	if (r < 0)
		return lost(z, r, r == -EPROTO ? rule : "receive");
	switch (ret->type) {
	case MSG_PRELOADING:
		return is_preloading(z, ret);
	case MSG_WARM:
		if (z->state != ZYGOTE_STARTING)
			return lost(z, -EPROTO, "warm twice");
		is_warm(z, ret);
		return 1;
	case MSG_UNFORKED:
		(void)fault_launder(&ret->as.UNFORKED.fault);
		if (z->state == ZYGOTE_STARTING) {
			/* It cannot start; or a module threw, whose name is in the text. */
			z->fault = ret->as.UNFORKED.fault;
			return fault_wrap(&z->fault, "zygote");
		}
		was_answered(z);
		if (is_too_late(&ret->as.UNFORKED.fault) || ++z->refusals < REFUSALS_MAX)
			return 1;
		z->fault = ret->as.UNFORKED.fault;
		return fault_wrap(&z->fault, "zygote: it cannot fork");
	case MSG_FORKED:
		was_answered(z);
		z->refusals = 0;
		return 1;
	default:
		return lost(z, -EPROTO, "unexpected message");
	}
}

void zygote_end(struct zygote *z)
{
	process_kill(&z->process);
	drop_fd(&z->channel_fd);
	z->state = ZYGOTE_ABSENT;
	z->unanswered = 0;
	z->deadline_ns = UINT64_MAX;
}

bool zygote_is_late(struct zygote *z, uint64_t now_ns)
{
	if (z->state == ZYGOTE_ABSENT || now_ns < z->deadline_ns)
		return false;
	(void)lost(z, -ETIMEDOUT, "no answer in time");
	return true;
}
