#include "kernel/cgroup.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/cgroup_internal.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define REMOVE_TRIES 4

const struct cgroup_ops *cgroup_ops_of(const struct cgroup_tree *t, enum cgroup_controller c)
{
	CHECK(t->of[c] >= 0);
	return t->h[t->of[c]].version == 2 ? &cgroup_v2_ops : &cgroup_v1_ops;
}

uint64_t cgroup_quota_us(uint32_t milli)
{
	uint64_t quota = (uint64_t)milli * (CGROUP_PERIOD_US / 1000);

	return quota < CGROUP_QUOTA_MIN ? CGROUP_QUOTA_MIN : quota;
}

int cgroup_leaf_fd(const struct cgroup_tree *t, const struct cgroup *cg, enum cgroup_controller c)
{
	return t->of[c] < 0 ? -1 : cg->fd[t->of[c]];
}

void cgroup_clear(struct cgroup *cg)
{
	*cg = (struct cgroup){ .events_fd = -1, .oom_fd = -1 };
	for (unsigned i = 0; i < CGROUP_HIERARCHIES_MAX; i++)
		cg->fd[i] = -1;
	for (unsigned i = 0; i < CGROUP_FILE_MAX; i++)
		cg->file[i] = -1;
}

static void close_all(struct cgroup *cg)
{
	for (unsigned i = 0; i < CGROUP_HIERARCHIES_MAX; i++)
		drop_fd(&cg->fd[i]);
	for (unsigned i = 0; i < CGROUP_FILE_MAX; i++)
		drop_fd(&cg->file[i]);
	drop_fd(&cg->events_fd);
	drop_fd(&cg->oom_fd);
}

static int make_dir(
	const struct cgroup_hierarchy *h, const char *name, int *ret_fd, struct fault *f)
{
	int fd, r;

	r = sys.mkdirat(h->dir_fd, name, 0755);
	if (r < 0)
		return fault_set(f, r, "mkdir in v%d hierarchy %s", h->version, h->mount);
	fd = cgroup_open_dir(h->dir_fd, name);
	if (fd < 0) {
		for (unsigned i = 0; i < REMOVE_TRIES; i++) {
			if (sys.unlinkat(h->dir_fd, name, AT_REMOVEDIR) == 0)
				break;
		}
		return fault_set(f, fd, "open in v%d hierarchy %s", h->version, h->mount);
	}
	*ret_fd = fd;
	return 0;
}

static int build(const struct cgroup_tree *t, struct cgroup *cg, const struct cgroup_limits *lim,
	struct fault *f)
{
	uint64_t populated;
	int fd, r;

	for (unsigned i = 0; i < t->count; i++) {
		r = make_dir(&t->h[i], cg->name, &cg->fd[i], f);
		if (r < 0)
			return r;
	}
	cg->events_fd = sys.openat(cg->fd[0], "cgroup.events", O_RDONLY | O_CLOEXEC, 0);
	if (cg->events_fd < 0)
		return fault_set(f, cg->events_fd, "open cgroup.events");
	/* A file that was never read polls as changed. */
	r = cgroup_reread_key(cg->events_fd, "populated", &populated);
	if (r < 0)
		return fault_set(f, r, "read cgroup.events");

	fd = cgroup_leaf_fd(t, cg, CGROUP_CPU);
	if (fd >= 0 && cgroup_ops_of(t, CGROUP_CPU)->begin_cpu)
		r = cgroup_ops_of(t, CGROUP_CPU)->begin_cpu(fd, f);
	if (r == 0)
		r = cgroup_set_limits(t, cg, lim, f);
	if (r < 0)
		return r;
	r = cgroup_open_files(t, cg, CGROUP_ALL, f);
	if (r < 0)
		return r;
	fd = cgroup_leaf_fd(t, cg, CGROUP_MEMORY);
	return fd < 0 ? 0 : cgroup_ops_of(t, CGROUP_MEMORY)->open_oom(fd, &cg->oom_fd, f);
}

int cgroup_create(const struct cgroup_tree *t, const char *name, const struct cgroup_limits *lim,
	struct cgroup *ret, struct fault *f)
{
	struct cgroup cg;
	int r;

	cgroup_clear(&cg);
	if (snprintf(cg.name, sizeof(cg.name), "%s", name) >= (int)sizeof(cg.name))
		return fault_set(f, -ENAMETOOLONG, "cgroup %s", name);
	r = build(t, &cg, lim, f);
	if (r < 0) {
		/* Nothing ever ran in it, so that nothing can hold it: what the kernel refuses now
		 * it does not refuse for long. */
		for (unsigned i = 0; i < REMOVE_TRIES && cgroup_destroy(t, &cg) < 0; i++)
			;
		close_all(&cg);
		(void)fault_wrap(f, "cgroup %s", name);
		return r;
	}
	*ret = cg;
	return 0;
}

static int write_memory(
	const struct cgroup_tree *t, int fd, uint64_t was, uint64_t bytes, struct fault *f)
{
	return cgroup_ops_of(t, CGROUP_MEMORY)->limit_memory(fd, was, bytes, t->swap_accounting, f);
}

static int write_cpu(
	const struct cgroup_tree *t, int fd, uint64_t was, uint64_t milli, struct fault *f)
{
	(void)was;
	return cgroup_ops_of(t, CGROUP_CPU)->limit_cpu(fd, (uint32_t)milli, f);
}

static int write_pids(
	const struct cgroup_tree *t, int fd, uint64_t was, uint64_t pids, struct fault *f)
{
	int r = cgroup_write_u64(fd, "pids.max", pids);

	(void)t; /* the same file in both versions */
	(void)was;
	return r < 0 ? fault_set(f, r, "write pids.max") : 0;
}

/* One limit, unless it is in force. While it is written, and if that fails, nobody knows. */
static int limit(const struct cgroup_tree *t, struct cgroup *cg, enum cgroup_controller c,
	uint64_t value, struct fault *f)
{
	static int (*const writers[CGROUP_CONTROLLER_MAX])(const struct cgroup_tree *t, int fd,
		uint64_t was, uint64_t value, struct fault *f) = {
		[CGROUP_MEMORY] = write_memory,
		[CGROUP_CPU] = write_cpu,
		[CGROUP_PIDS] = write_pids,
	};
	uint64_t was = cg->in_force[c];
	int fd = cgroup_leaf_fd(t, cg, c), r;

	if (fd < 0 || was == value)
		return 0;
	cg->in_force[c] = 0;
	r = writers[c](t, fd, was, value, f);
	if (r == 0)
		cg->in_force[c] = value;
	return r;
}

int cgroup_set_limits(const struct cgroup_tree *t, struct cgroup *cg,
	const struct cgroup_limits *lim, struct fault *f)
{
	/* Memory first: it is the one that can refuse a leaf that is in use. */
	int r = limit(t, cg, CGROUP_MEMORY, lim->memory_bytes, f);

	if (r == 0)
		r = limit(t, cg, CGROUP_CPU, lim->cpu_milli, f);
	return r == 0 ? limit(t, cg, CGROUP_PIDS, lim->pids, f) : r;
}

void cgroup_refill_cpu(struct cgroup *cg)
{
	cg->in_force[CGROUP_CPU] = 0;
}

/* v1's peak of tasks cannot begin anew, so that its group is made anew; unless there was one task
 * only, as there will be again. The kernel has much to do after a group has gone: some of that is
 * done when the next run needs the processor. */
static int renew_pids(const struct cgroup_tree *t, struct cgroup *cg, struct fault *f)
{
	int of = t->of[CGROUP_PIDS], r;

	if (of < 0 || cg->file[CGROUP_FILE_PIDS_PEAK] < 0)
		return 0;
	if (cgroup_tasks_peak(cg) == 1)
		return 0;
	r = sys.unlinkat(t->h[of].dir_fd, cg->name, AT_REMOVEDIR);
	if (r < 0)
		return fault_set(f, r, "remove in v1 hierarchy %s", t->h[of].mount);
	drop_fd(&cg->fd[of]);
	cg->in_force[CGROUP_PIDS] = 0;
	r = make_dir(&t->h[of], cg->name, &cg->fd[of], f);
	return r < 0 ? r : cgroup_open_files(t, cg, CGROUP_BIT(CGROUP_PIDS), f);
}

int cgroup_renew(
	const struct cgroup_tree *t, struct cgroup *cg, uint64_t memory_left, struct fault *f)
{
	/* Those whose peaks are reported: they must be v1's, and each in a hierarchy of its own. */
	if (t->of[CGROUP_MEMORY] <= 0 || t->of[CGROUP_PIDS] <= 0 ||
		t->of[CGROUP_MEMORY] == t->of[CGROUP_PIDS] ||
		t->of[CGROUP_CPU] == t->of[CGROUP_PIDS] ||
		t->of[CGROUP_CPUACCT] == t->of[CGROUP_PIDS])
		return fault_set(f, -EOPNOTSUPP, "cgroup %s", cg->name);
	if (cgroup_holds_more(cg, memory_left))
		return fault_set(f, -EBUSY, "cgroup %s holds memory", cg->name);
	/* Whoever asks cgroup_oom_happened() means since the beginning. */
	if (cgroup_oom_happened(t, cg))
		return fault_set(f, -EBUSY, "cgroup %s has seen a kill", cg->name);
	cg->sampled_peak = 0;
	return renew_pids(t, cg, f);
}

int cgroup_open_tasks(
	const struct cgroup_tree *t, const struct cgroup *cg, unsigned i, struct fault *f)
{
	int fd = sys.openat(cg->fd[i], "tasks", O_WRONLY | O_CLOEXEC, 0);

	return fd < 0 ? fault_set(f, fd, "cgroup %s: tasks in %s", cg->name, t->h[i].mount) : fd;
}

int cgroup_clone_fd(const struct cgroup *cg)
{
	return cg->fd[0];
}

int cgroup_kill(const struct cgroup *cg)
{
	return cgroup_write(cg->fd[0], "cgroup.kill", "1");
}

int cgroup_populated(const struct cgroup *cg)
{
	uint64_t populated;
	int r;

	if (cg->fd[0] < 0)
		return 0; /* cgroup_destroy() came that far: it removes this one first */
	r = cgroup_reread_key(cg->events_fd, "populated", &populated);
	if (r < 0)
		return r;
	return populated > 1 ? -EPROTO : (int)populated;
}

bool cgroup_oom_announced(const struct cgroup_tree *t, struct cgroup *cg)
{
	if (cg->oom_fd >= 0 && cgroup_ops_of(t, CGROUP_MEMORY)->oom_pending(cg->oom_fd))
		cg->oom_seen = true;
	return cg->oom_seen;
}

bool cgroup_oom_happened(const struct cgroup_tree *t, struct cgroup *cg)
{
	if (cg->oom_fd < 0)
		return false;
	return cgroup_oom_announced(t, cg) || cgroup_oom_kills(cg) > 0;
}

int cgroup_destroy(const struct cgroup_tree *t, struct cgroup *cg)
{
	int first = 0;

	/* The unified leaf is the first: while it is busy, so are the others. What is gone
	 * is marked by its closed descriptor, so that a second call goes on from there. */
	for (unsigned i = 0; i < t->count; i++) {
		int r;

		if (cg->fd[i] < 0)
			continue;
		r = sys.unlinkat(t->h[i].dir_fd, cg->name, AT_REMOVEDIR);
		if (r < 0 && r != -ENOENT) {
			if (first == 0)
				first = r;
			if (i == 0)
				break;
			continue;
		}
		drop_fd(&cg->fd[i]);
	}
	if (first < 0)
		return first;
	close_all(cg);
	return 0;
}

void cgroup_close(struct cgroup *cg)
{
	close_all(cg);
}
