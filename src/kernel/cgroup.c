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

/* The leaf's directory in the hierarchy of controller `c`, -1 where there is none. */
static int leaf_fd(const struct cgroup_tree *t, const struct cgroup *cg, enum cgroup_controller c)
{
	return t->of[c] < 0 ? -1 : cg->fd[t->of[c]];
}

void cgroup_clear(struct cgroup *cg)
{
	*cg = (struct cgroup){ .events_fd = -1, .oom_fd = -1 };
	for (unsigned i = 0; i < CGROUP_HIERARCHIES_MAX; i++)
		cg->fd[i] = -1;
}

static void close_all(struct cgroup *cg)
{
	for (unsigned i = 0; i < CGROUP_HIERARCHIES_MAX; i++)
		drop_fd(&cg->fd[i]);
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
		(void)sys.unlinkat(h->dir_fd, name, AT_REMOVEDIR);
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

	fd = leaf_fd(t, cg, CGROUP_CPU);
	if (fd >= 0 && cgroup_ops_of(t, CGROUP_CPU)->begin_cpu)
		r = cgroup_ops_of(t, CGROUP_CPU)->begin_cpu(fd, f);
	if (r == 0)
		r = cgroup_set_limits(t, cg, lim, f);
	if (r < 0)
		return r;
	fd = leaf_fd(t, cg, CGROUP_MEMORY);
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
		/* Nothing ever ran in it, so that nothing can hold it. */
		(void)cgroup_destroy(t, &cg);
		close_all(&cg);
		(void)fault_wrap(f, "cgroup %s", name);
		return r;
	}
	*ret = cg;
	return 0;
}

static int limit_memory(
	const struct cgroup_tree *t, struct cgroup *cg, uint64_t bytes, struct fault *f)
{
	int fd = leaf_fd(t, cg, CGROUP_MEMORY), r;

	if (fd < 0 || cg->in_force.memory_bytes == bytes)
		return 0;
	cg->in_force.memory_bytes = 0;
	r = cgroup_ops_of(t, CGROUP_MEMORY)->limit_memory(fd, bytes, t->swap_accounting, f);
	if (r == 0)
		cg->in_force.memory_bytes = bytes;
	return r;
}

static int limit_cpu(
	const struct cgroup_tree *t, struct cgroup *cg, uint32_t milli, struct fault *f)
{
	int fd = leaf_fd(t, cg, CGROUP_CPU), r;

	if (fd < 0 || cg->in_force.cpu_milli == milli)
		return 0;
	cg->in_force.cpu_milli = 0;
	r = cgroup_ops_of(t, CGROUP_CPU)->limit_cpu(fd, milli, f);
	if (r == 0)
		cg->in_force.cpu_milli = milli;
	return r;
}

static int limit_pids(
	const struct cgroup_tree *t, struct cgroup *cg, uint32_t pids, struct fault *f)
{
	int fd = leaf_fd(t, cg, CGROUP_PIDS), r;

	if (fd < 0 || cg->in_force.pids == pids)
		return 0;
	cg->in_force.pids = 0;
	r = cgroup_write_u64(fd, "pids.max", pids);
	if (r < 0)
		return fault_set(f, r, "write pids.max");
	cg->in_force.pids = pids;
	return 0;
}

int cgroup_set_limits(const struct cgroup_tree *t, struct cgroup *cg,
	const struct cgroup_limits *lim, struct fault *f)
{
	/* Memory first: it is the one that can refuse a leaf that is in use. */
	int r = limit_memory(t, cg, lim->memory_bytes, f);

	if (r == 0)
		r = limit_cpu(t, cg, lim->cpu_milli, f);
	return r == 0 ? limit_pids(t, cg, lim->pids, f) : r;
}

void cgroup_refill_cpu(struct cgroup *cg)
{
	cg->in_force.cpu_milli = 0;
}

/* v1's peak of tasks cannot begin anew, but its group costs little to make. */
static int renew_pids(const struct cgroup_tree *t, struct cgroup *cg, struct fault *f)
{
	int of = t->of[CGROUP_PIDS], r;

	if (of < 0 || !cgroup_has(cg->fd[of], "pids.peak"))
		return 0;
	r = sys.unlinkat(t->h[of].dir_fd, cg->name, AT_REMOVEDIR);
	if (r < 0)
		return fault_set(f, r, "remove in v1 hierarchy %s", t->h[of].mount);
	drop_fd(&cg->fd[of]);
	cg->in_force.pids = 0;
	return make_dir(&t->h[of], cg->name, &cg->fd[of], f);
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
	if (cgroup_holds_more(t, cg, memory_left))
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

/* As the kernel counts them, in a leaf that has the memory controller. */
static uint64_t oom_kills(const struct cgroup_tree *t, int fd)
{
	uint64_t kills = 0;

	(void)cgroup_read_key(fd, cgroup_ops_of(t, CGROUP_MEMORY)->oom_file, "oom_kill", &kills);
	return kills;
}

bool cgroup_oom_happened(const struct cgroup_tree *t, struct cgroup *cg)
{
	if (cg->oom_fd < 0)
		return false;
	return cgroup_oom_announced(t, cg) || oom_kills(t, leaf_fd(t, cg, CGROUP_MEMORY)) > 0;
}

uint64_t cgroup_cpu_us(const struct cgroup_tree *t, const struct cgroup *cg)
{
	int fd = leaf_fd(t, cg, CGROUP_CPUACCT);
	uint64_t value = 0;

	if (fd < 0)
		return 0;
	if (t->h[t->of[CGROUP_CPUACCT]].version == 2)
		return cgroup_read_key(fd, "cpu.stat", "usage_usec", &value) < 0 ? 0 : value;
	return cgroup_read_u64(fd, "cpuacct.usage", &value) < 0 ? 0 : value / 1000;
}

/* In all, and user and system time apart. */
static void read_cpu(const struct cgroup_tree *t, int fd, struct cgroup_usage *ret)
{
	char text[CGROUP_TEXT_MAX];

	if (t->h[t->of[CGROUP_CPUACCT]].version == 2) {
		if (cgroup_read_values(fd, "cpu.stat", text, sizeof(text)) < 0)
			return;
		(void)cgroup_parse_key(text, "usage_usec", &ret->cpu_us);
		(void)cgroup_parse_key(text, "user_usec", &ret->user_us);
		(void)cgroup_parse_key(text, "system_usec", &ret->system_us);
		return;
	}
	(void)cgroup_read_u64(fd, "cpuacct.usage", &ret->cpu_us);
	ret->cpu_us /= 1000;
	(void)cgroup_read_u64(fd, "cpuacct.usage_user", &ret->user_us);
	(void)cgroup_read_u64(fd, "cpuacct.usage_sys", &ret->system_us);
	ret->user_us /= 1000;
	ret->system_us /= 1000;
}

uint64_t cgroup_memory_bytes(const struct cgroup_tree *t, const struct cgroup *cg)
{
	int fd = leaf_fd(t, cg, CGROUP_MEMORY);
	uint64_t used;

	if (fd < 0 || cgroup_read_u64(fd, cgroup_ops_of(t, CGROUP_MEMORY)->used_file, &used) < 0)
		return 0;
	return used;
}

bool cgroup_holds_more(const struct cgroup_tree *t, const struct cgroup *cg, uint64_t bytes)
{
	int fd = leaf_fd(t, cg, CGROUP_MEMORY);
	uint64_t used;

	if (fd < 0)
		return false;
	return cgroup_read_u64(fd, cgroup_ops_of(t, CGROUP_MEMORY)->used_file, &used) < 0 ||
	       used > bytes;
}

int cgroup_tasks(const struct cgroup_tree *t, const struct cgroup *cg, uint64_t *ret)
{
	int fd = leaf_fd(t, cg, CGROUP_PIDS);

	return fd < 0 ? -ENOENT : cgroup_read_u64(fd, "pids.current", ret);
}

uint32_t cgroup_tasks_peak(const struct cgroup_tree *t, const struct cgroup *cg)
{
	int fd = leaf_fd(t, cg, CGROUP_PIDS);
	uint64_t peak;

	if (fd < 0 || cgroup_read_u64(fd, "pids.peak", &peak) < 0)
		return 0;
	return peak > UINT32_MAX ? UINT32_MAX : (uint32_t)peak;
}

void cgroup_reset_peak(const struct cgroup_tree *t, const struct cgroup *cg)
{
	int fd = leaf_fd(t, cg, CGROUP_MEMORY);

	if (fd >= 0 && t->h[t->of[CGROUP_MEMORY]].version == 1)
		(void)cgroup_write(fd, "memory.max_usage_in_bytes", "0");
}

void cgroup_sample(const struct cgroup_tree *t, struct cgroup *cg)
{
	uint64_t used = cgroup_memory_bytes(t, cg);

	if (used > cg->sampled_peak)
		cg->sampled_peak = used;
}

static uint64_t throttled_us(const struct cgroup_tree *t, int fd)
{
	const struct cgroup_ops *ops = cgroup_ops_of(t, CGROUP_CPU);
	uint64_t units = 0;

	(void)cgroup_read_key(fd, "cpu.stat", ops->throttled_key, &units);
	return units / ops->throttled_per_us;
}

static void read_memory(
	const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	int fd = leaf_fd(t, cg, CGROUP_MEMORY);
	const struct cgroup_ops *ops;

	if (fd < 0)
		return;
	ops = cgroup_ops_of(t, CGROUP_MEMORY);
	ret->oom_kills = oom_kills(t, fd);
	if (cgroup_read_u64(fd, ops->peak_file, &ret->memory_peak_bytes) == 0) {
		ret->memory_counter = ops->peak_counter;
		return;
	}
	ret->memory_peak_bytes = cg->sampled_peak;
	ret->memory_counter = cg->sampled_peak ? MEMORY_COUNTER_SAMPLED : MEMORY_COUNTER_NONE;
}

void cgroup_read_counters(
	const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	int fd = leaf_fd(t, cg, CGROUP_CPUACCT);

	*ret = (struct cgroup_usage){ .memory_counter = MEMORY_COUNTER_NONE };
	if (fd >= 0)
		read_cpu(t, fd, ret);
	fd = leaf_fd(t, cg, CGROUP_CPU);
	if (fd >= 0)
		ret->throttled_us = throttled_us(t, fd);
	fd = leaf_fd(t, cg, CGROUP_PIDS);
	if (fd >= 0)
		(void)cgroup_read_key(fd, "pids.events", "max", &ret->pids_refused);
}

void cgroup_read_usage(
	const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	cgroup_read_counters(t, cg, ret);
	read_memory(t, cg, ret);
	ret->pids_peak = cgroup_tasks_peak(t, cg);
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
