#include "tests/fuzz/no_kernel.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/netstate.h"
#include "kernel/process.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"
#include "kernel/tun.h"
#include "priv/launch/build.h"
#include "priv/launch/view.h"
#include "priv/supervisor/images.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>

struct no_kernel no;

/* What zygote.c shows to a zygote. */
extern const unsigned char zygote_agent_start[], zygote_agent_end[];
extern const unsigned char zygote_module_start[], zygote_module_end[];
__asm__(".globl zygote_agent_start, zygote_agent_end, zygote_module_start, zygote_module_end\n"
	"zygote_agent_start: zygote_agent_end: zygote_module_start: zygote_module_end: .byte 0\n");

/* ---- The clock ---- */

uint64_t clock_ns(void)
{
	return no.now_ns;
}

int clock_ms_until(uint64_t deadline_ns)
{
	(void)deadline_ns;
	return 0;
}

/* ---- What can fail ---- */

static bool fails(struct fault *f)
{
	if (no.fail_in == 0 || --no.fail_in > 0)
		return false;
	(void)fault_set(f, no.fail_code, "a call that was made to fail");
	return true;
}

ino_t no_identity(int fd)
{
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 ? st.st_ino : 0;
}

static int null_fd(void)
{
	int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

/* ---- Entries of the table of system calls ---- */

static int no_openat(int dir_fd, const char *path, int flags, mode_t mode)
{
	struct fault f;

	(void)dir_fd;
	(void)flags;
	(void)mode;
	if (no.no_last_pid && strstr(path, "ns_last_pid"))
		return -ENOENT;
	return fails(&f) ? f.code : null_fd();
}

static int no_fstatfs(int fd, struct statfs *ret)
{
	CHECK(fd >= 0);
	*ret = (struct statfs){ .f_bsize = 4096, .f_blocks = no.cage_as_made ? 1 : 1000 };
	return 0;
}

static int no_fchmod(int fd, mode_t mode)
{
	struct fault f;

	CHECK(fd >= 0 && (mode == 0040 || mode == 0020));
	return fails(&f) ? f.code : 0;
}

static int no_fchown(int fd, uid_t uid, gid_t gid)
{
	struct fault f;

	CHECK(fd >= 0 && uid >= 2000016 && gid == uid + 1);
	return fails(&f) ? f.code : 0;
}

void no_kernel_install(void)
{
	sys.openat = no_openat;
	sys.fstatfs = no_fstatfs;
	sys.fchmod = no_fchmod;
	sys.fchown = no_fchown;
}

/* ---- Processes ---- */

void no_kernel_reset(void)
{
	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		if (no.processes[i].pid > 0) {
			drop_fd(&no.processes[i].life_fd);
			drop_fd(&no.processes[i].channel_fd);
		}
	}
	no = (struct no_kernel){ .now_ns = 1000 * NS_PER_S,
		.last_pid = 1000,
		.leaf_renews = true,
		.cage_as_made = true };
}

struct no_process *no_process_make(int group_fd, int channel_fd, int *ret_pidfd)
{
	cleanup_fd int channel = channel_fd;
	int pair[2];

	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		struct no_process *p = &no.processes[i];

		if (p->pid > 0)
			continue;
		CHECK(pipe2(pair, O_CLOEXEC) == 0);
		*ret_pidfd = pair[0];
		*p = (struct no_process){
			.pid = ++no.last_pid,
			.identity = no_identity(pair[0]),
			.life_fd = pair[1],
			.channel_fd = take_fd(&channel),
			.group = no_identity(group_fd),
		};
		return p;
	}
	return NULL;
}

void no_process_die(struct no_process *p, int status)
{
	if (p->life_fd < 0)
		return;
	/* With init goes its whole pid namespace. */
	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		struct no_process *in_it = &no.processes[i];

		if (in_it->pid > 0 && in_it != p && in_it->home == p->identity)
			no_process_die(in_it, SIGKILL);
	}
	if (!p->ending)
		p->status = status;
	drop_fd(&p->life_fd);
	drop_fd(&p->channel_fd);
}

static struct no_process *by_identity(ino_t identity)
{
	for (unsigned i = 0; identity > 0 && i < NO_PROCESSES; i++) {
		if (no.processes[i].pid > 0 && no.processes[i].identity == identity)
			return &no.processes[i];
	}
	return NULL;
}

static struct no_process *by_pid(pid_t pid)
{
	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		if (no.processes[i].pid == pid)
			return &no.processes[i];
	}
	return NULL;
}

int process_spawn(const struct process_plan *plan, struct process *ret, struct fault *f)
{
	struct no_process *p;
	int pidfd;

	if (fails(f))
		return f->code;
	p = no_process_make(plan->cgroup_fd, fcntl(plan->fds[0], F_DUPFD_CLOEXEC, 0), &pidfd);
	if (!p)
		return fault_set(f, -EAGAIN, "clone3");
	p->zygote = strcmp(plan->argv[1], "zygote") == 0;
	p->init = strcmp(plan->argv[1], "init") == 0;
	p->gate = strcmp(plan->argv[1], "@gate") == 0;
	p->home = no_identity(plan->pidns_of);
	*ret = (struct process){ .pid = p->pid, .pidfd = pidfd, .release_fd = -1 };
	return 0;
}

int process_release(struct process *p, struct fault *f)
{
	CHECK(by_pid(p->pid));
	return fails(f) ? f->code : 0;
}

int process_map_ids(const struct process *p, const uint32_t *inside, const uint32_t *outside,
	unsigned count, struct fault *f)
{
	CHECK(by_pid(p->pid) && count == 2 && inside[1] == 1000 && outside[0] > 0);
	return fails(f) ? f->code : 0;
}

int process_oom_score(const struct process *p, int score, struct fault *f)
{
	CHECK(by_pid(p->pid) && score > 0);
	return fails(f) ? f->code : 0;
}

bool process_is_child(pid_t pid, int pidfd)
{
	const struct no_process *p = by_identity(no_identity(pidfd));

	return p && pid > 0 && p->pid == pid;
}

void process_kill(const struct process *p)
{
	struct no_process *found = by_identity(no_identity(p->pidfd));

	/* Of one that was reaped the pidfd reaches nobody. */
	if (p->pidfd < 0 || (!found && p->pid == 0))
		return;
	CHECK(found); /* a signal to somebody who is not the board's */
	if (!no.stubborn)
		no_process_die(found, SIGKILL);
}

static void forget(struct no_process *p)
{
	CHECK(p->life_fd < 0);
	drop_fd(&p->channel_fd);
	*p = (struct no_process){ .pid = 0 };
}

int process_reap(struct process *p, int *ret_status, struct rusage *ret_usage)
{
	struct no_process *found = p->pid > 0 ? by_pid(p->pid) : NULL;

	if (!found)
		return -ECHILD;
	if (found->life_fd >= 0)
		return 0;
	*ret_status = found->status;
	*ret_usage = (struct rusage){ .ru_minflt = 0 };
	forget(found);
	p->pid = 0;
	return 1;
}

int process_reap_stranger(bool (*known)(pid_t pid, void *ctx), void *ctx)
{
	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		struct no_process *p = &no.processes[i];

		if (p->pid == 0 || p->life_fd >= 0)
			continue;
		if (known(p->pid, ctx))
			return 0;
		forget(p);
		return 1;
	}
	return 0;
}

void process_close(struct process *p)
{
	drop_fd(&p->pidfd);
	drop_fd(&p->release_fd);
}

void process_clear(struct process *p)
{
	*p = (struct process){ .pid = 0, .pidfd = -1, .release_fd = -1 };
}

/* ---- Groups: fd[0] is memory with a number of its own ---- */

void cgroup_clear(struct cgroup *cg)
{
	*cg = (struct cgroup){ .events_fd = -1, .oom_fd = -1 };
	for (unsigned i = 0; i < CGROUP_HIERARCHIES_MAX; i++)
		cg->fd[i] = -1;
	for (unsigned i = 0; i < CGROUP_FILE_MAX; i++)
		cg->file[i] = -1;
}

void cgroup_close(struct cgroup *cg)
{
	drop_fd(&cg->fd[0]);
	drop_fd(&cg->events_fd);
	drop_fd(&cg->oom_fd);
	cgroup_clear(cg);
}

int cgroup_create(const struct cgroup_tree *t, const char *name, const struct cgroup_limits *lim,
	struct cgroup *ret, struct fault *f)
{
	CHECK(t->count > 0 && lim->memory_bytes > 0 && lim->pids > 0);
	cgroup_clear(ret);
	if (fails(f))
		return f->code;
	ret->fd[0] = memfd_create(name, MFD_CLOEXEC);
	ret->events_fd = eventfd(0, EFD_CLOEXEC);
	ret->oom_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	CHECK(ret->fd[0] >= 0 && ret->events_fd >= 0 && ret->oom_fd >= 0);
	(void)snprintf(ret->name, sizeof(ret->name), "%s", name);
	no.groups++;
	return 0;
}

/* Who is in the leaf, dead or alive. */
static unsigned tasks_of(const struct cgroup *cg, bool alive_only)
{
	ino_t group = no_identity(cg->fd[0]);
	unsigned n = 0;

	for (unsigned i = 0; group > 0 && i < NO_PROCESSES; i++) {
		const struct no_process *p = &no.processes[i];

		n += p->pid > 0 && p->group == group && (!alive_only || p->life_fd >= 0);
	}
	return n;
}

int cgroup_set_limits(const struct cgroup_tree *t, struct cgroup *cg,
	const struct cgroup_limits *lim, struct fault *f)
{
	(void)t;
	if (fails(f))
		return f->code;
	cg->in_force[CGROUP_MEMORY] = lim->memory_bytes;
	cg->in_force[CGROUP_CPU] = lim->cpu_milli;
	cg->in_force[CGROUP_PIDS] = lim->pids;
	return 0;
}

void cgroup_refill_cpu(struct cgroup *cg)
{
	cg->in_force[CGROUP_CPU] = 0;
}

int cgroup_renew(
	const struct cgroup_tree *t, struct cgroup *cg, uint64_t memory_left, struct fault *f)
{
	(void)t;
	(void)memory_left;
	CHECK(cg->fd[0] >= 0);
	return no.leaf_renews ? 0 : fault_set(f, -EOPNOTSUPP, "renew");
}

int cgroup_open_tasks(
	const struct cgroup_tree *t, const struct cgroup *cg, unsigned i, struct fault *f)
{
	CHECK(i > 0 && i < t->count && cg->fd[0] >= 0);
	return fails(f) ? f->code : null_fd();
}

int cgroup_clone_fd(const struct cgroup *cg)
{
	return cg->fd[0];
}

int cgroup_kill(const struct cgroup *cg)
{
	ino_t group = no_identity(cg->fd[0]);

	for (unsigned i = 0; group > 0 && !no.stubborn && i < NO_PROCESSES; i++) {
		if (no.processes[i].pid > 0 && no.processes[i].group == group)
			no_process_die(&no.processes[i], SIGKILL);
	}
	return 0;
}

int cgroup_populated(const struct cgroup *cg)
{
	return tasks_of(cg, true) > 0;
}

bool cgroup_oom_announced(const struct cgroup_tree *t, struct cgroup *cg)
{
	eventfd_t n;

	(void)t;
	if (cg->oom_fd >= 0 && eventfd_read(cg->oom_fd, &n) == 0)
		cg->oom_seen = true;
	return cg->oom_seen;
}

bool cgroup_oom_happened(const struct cgroup_tree *t, struct cgroup *cg)
{
	return cgroup_oom_announced(t, cg) && no.counts_oom;
}

uint64_t cgroup_cpu_us(const struct cgroup_tree *t, const struct cgroup *cg)
{
	(void)t;
	(void)cg;
	return no.now_ns / NS_PER_US / 2;
}

uint64_t cgroup_memory_bytes(const struct cgroup *cg)
{
	(void)cg;
	return 1 << 20;
}

bool cgroup_holds_more(const struct cgroup *cg, uint64_t bytes)
{
	(void)cg;
	(void)bytes;
	return no.leaf_is_full;
}

int cgroup_tasks(const struct cgroup *cg, uint64_t *ret)
{
	*ret = tasks_of(cg, false);
	return no.tasks_fail;
}

uint32_t cgroup_tasks_peak(const struct cgroup *cg)
{
	(void)cg;
	return 1;
}

void cgroup_reset_peak(const struct cgroup *cg)
{
	(void)cg;
}

void cgroup_sample(struct cgroup *cg)
{
	(void)cg;
}

void cgroup_read_counters(
	const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	*ret = (struct cgroup_usage){ .cpu_us = cgroup_cpu_us(t, cg) };
}

void cgroup_read_usage(
	const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	cgroup_read_counters(t, cg, ret);
	ret->oom_kills = no.counts_oom;
}

int cgroup_destroy(const struct cgroup_tree *t, struct cgroup *cg)
{
	(void)t;
	if (cg->fd[0] < 0)
		return 0;
	if (tasks_of(cg, false) > 0)
		return -EBUSY;
	if (no.leaf_stays < 0)
		return no.leaf_stays;
	CHECK(no.groups > 0);
	no.groups--;
	cgroup_close(cg);
	return 0;
}

/* ---- Mounts, the view, the network ---- */

const char *const view_scratch_paths[VIEW_SCRATCH] = { "/dev/shm", "/tmp", "/workspace" };

int mount_tmpfs(const struct mount_tmpfs *t, unsigned flags, int *ret_fd, struct fault *f)
{
	CHECK(t->bytes > 0 && flags);
	if (fails(f))
		return f->code;
	*ret_fd = open("/tmp", O_PATH | O_CLOEXEC);
	return 0;
}

int mount_tmpfs_resize(int mount_fd, uint64_t bytes, struct fault *f)
{
	CHECK(mount_fd >= 0 && bytes > 0);
	return fails(f) ? f->code : 0;
}

int view_open_other(
	struct view *ret, const struct runtime *rt, unsigned number, bool builds, struct fault *f)
{
	(void)rt;
	*ret = (struct view){ .number = number, .builds = builds };
	return no.views_fail < 0 ? fault_set(f, no.views_fail, "a view") : 0;
}

/* No store: an image is there if views can be made. */
int images_open_offered(const char *dir, const struct language *offered, const uint8_t *digest,
	struct image_record *ret, int *ret_fd, struct fault *f)
{
	(void)dir, (void)offered, (void)digest, (void)f;
	*ret = (struct image_record){ .trusted = 1, .start = { .warm = 1, .preload = "numpy" } };
	*ret_fd = -1;
	return 0;
}

int view_open_image(struct view *ret, int file_fd, unsigned number, struct fault *f)
{
	static const struct runtime none = { .name = "image" };

	(void)file_fd;
	return view_open_other(ret, &none, number, false, f);
}

int view_close_image(const struct view *v)
{
	(void)v;
	return no.views_fail;
}

int build_make(unsigned number, const struct view_scratch *how, struct fault *f)
{
	CHECK(how->bytes > 0 && number < NO_BUILDS && !no.builds[number]);
	if (fails(f))
		return f->code;
	no.builds[number] = true;
	return 0;
}

int build_mount(unsigned number, bool compiler, int *ret_fd, struct fault *f)
{
	(void)compiler;
	CHECK(number < NO_BUILDS && no.builds[number]);
	if (fails(f))
		return f->code;
	*ret_fd = null_fd();
	return 0;
}

int build_drop(unsigned number)
{
	struct fault f;

	CHECK(number < NO_BUILDS && no.builds[number]);
	if (fails(&f))
		return f.code;
	no.builds[number] = false;
	return 0;
}

int view_mounts(const struct view *v, bool network, struct view_mount *ret, unsigned *ret_count,
	struct fault *f)
{
	(void)v;
	(void)network;
	if (fails(f))
		return f->code;
	ret[0].fd = null_fd();
	ret[0].path[0] = '\0';
	*ret_count = 1;
	return 0;
}

void view_mounts_close(struct view_mount *mounts, unsigned count)
{
	for (unsigned i = 0; i < count; i++)
		drop_fd(&mounts[i].fd);
}

int view_scratch(const struct view_scratch *s, unsigned which, int *ret_fd, struct fault *f)
{
	CHECK(which < VIEW_SCRATCH && s->bytes > 0);
	if (fails(f))
		return f->code;
	*ret_fd = null_fd();
	return 0;
}

int tun_open(int pidfd, int *ret_fd, struct fault *f)
{
	CHECK(pidfd >= 0);
	if (fails(f))
		return f->code;
	*ret_fd = memfd_create("tun", MFD_CLOEXEC); /* with a number of its own */
	CHECK(*ret_fd >= 0);
	return 0;
}

void netstate_clear(struct netstate *n)
{
	n->len = 0;
}

int netstate_open(pid_t pid, struct netstate *ret, struct fault *f)
{
	CHECK(pid > 0);
	ret->len = 0;
	if (fails(f))
		return f->code;
	ret->len = 1;
	return 0;
}

bool netstate_is_as_made(const struct netstate *n)
{
	return n->len > 0 && no.cage_as_made;
}

uint64_t netstate_unrouted(const struct netstate *n)
{
	return n->len;
}

uint64_t netstate_socket_bytes(const struct netstate *n)
{
	return no.counts_oom ? UINT64_MAX / 2 : n->len;
}

void netstate_close(struct netstate *n)
{
	n->len = 0;
}

/* ---- Denied calls: only the end of a pipe is a listener here ---- */

int seccomp_answer(int listener, uint32_t *ret_number)
{
	struct stat st;

	CHECK(listener >= 0);
	if (fstat(listener, &st) < 0 || !S_ISFIFO(st.st_mode))
		return -ENOTTY;
	if (no.denied == 0)
		return 0;
	no.denied--;
	*ret_number = no.denied;
	return 1;
}

/* ---- Exit records ---- */

int taskstats_next(struct taskstats_feed *t, struct taskstats_exit *ret)
{
	if (no.records_fail < 0)
		return no.records_fail;
	if (no.records_count == 0) {
		t->empty_ns = no.now_ns;
		return 0;
	}
	*ret = no.records[--no.records_count];
	return 1;
}

int taskstats_add_children(struct taskstats_exit *e)
{
	(void)e;
	return no.stubborn ? -EBUSY : 0;
}

void taskstats_close(struct taskstats_feed *t)
{
	t->fd = -1;
}
