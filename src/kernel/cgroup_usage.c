#include "kernel/cgroup_internal.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>

static const enum cgroup_controller controller_of[CGROUP_FILE_MAX] = {
	[CGROUP_FILE_MEMORY_USED] = CGROUP_MEMORY,
	[CGROUP_FILE_MEMORY_PEAK] = CGROUP_MEMORY,
	[CGROUP_FILE_MEMORY_EVENTS] = CGROUP_MEMORY,
	[CGROUP_FILE_CPU_THROTTLED] = CGROUP_CPU,
	[CGROUP_FILE_CPU_USED] = CGROUP_CPUACCT,
	[CGROUP_FILE_CPU_USER] = CGROUP_CPUACCT,
	[CGROUP_FILE_CPU_SYSTEM] = CGROUP_CPUACCT,
	[CGROUP_FILE_PIDS_NOW] = CGROUP_PIDS,
	[CGROUP_FILE_PIDS_PEAK] = CGROUP_PIDS,
	[CGROUP_FILE_PIDS_EVENTS] = CGROUP_PIDS,
};

/* The peak begins anew for the descriptor through which it is written (v2) or for all (v1);
 * before 6.12, v2's cannot be written, and the kernel says so at once. */
static int open_file(int dir_fd, const char *name, enum cgroup_file file)
{
	int fd = -EINVAL;

	if (file == CGROUP_FILE_MEMORY_PEAK)
		fd = sys.openat(dir_fd, name, O_RDWR | O_CLOEXEC, 0);
	return fd == -EINVAL ? sys.openat(dir_fd, name, O_RDONLY | O_CLOEXEC, 0) : fd;
}

int cgroup_open_files(
	const struct cgroup_tree *t, struct cgroup *cg, unsigned controllers, struct fault *f)
{
	for (unsigned i = 0; i < CGROUP_FILE_MAX; i++) {
		enum cgroup_controller c = controller_of[i];
		int dir_fd = cgroup_leaf_fd(t, cg, c), fd;
		const char *name;

		if (!(controllers & CGROUP_BIT(c)))
			continue;
		drop_fd(&cg->file[i]);
		name = dir_fd < 0 ? NULL : cgroup_ops_of(t, c)->files[i];
		fd = name ? open_file(dir_fd, name, i) : -ENOENT;
		if (fd < 0 && fd != -ENOENT)
			return fault_set(f, fd, "open %s", name);
		cg->file[i] = fd < 0 ? -1 : fd;
	}
	return 0;
}

static int read_text(const struct cgroup *cg, enum cgroup_file i, char text[CGROUP_TEXT_MAX])
{
	return cg->file[i] < 0 ? -ENOENT : cgroup_reread(cg->file[i], text, CGROUP_TEXT_MAX);
}

static int read_u64(const struct cgroup *cg, enum cgroup_file i, uint64_t *ret)
{
	char text[CGROUP_TEXT_MAX];
	int r = read_text(cg, i, text);

	return r < 0 ? r : io_parse_u64(text, ret);
}

static int read_key(const struct cgroup *cg, enum cgroup_file i, const char *key, uint64_t *ret)
{
	return cg->file[i] < 0 ? -ENOENT : cgroup_reread_key(cg->file[i], key, ret);
}

uint64_t cgroup_oom_kills(const struct cgroup *cg)
{
	uint64_t kills = 0;

	(void)read_key(cg, CGROUP_FILE_MEMORY_EVENTS, "oom_kill", &kills);
	return kills;
}

static bool cpu_is_v2(const struct cgroup_tree *t)
{
	return t->of[CGROUP_CPUACCT] >= 0 && t->h[t->of[CGROUP_CPUACCT]].version == 2;
}

uint64_t cgroup_cpu_us(const struct cgroup_tree *t, const struct cgroup *cg)
{
	uint64_t value = 0;

	if (cpu_is_v2(t))
		(void)read_key(cg, CGROUP_FILE_CPU_USED, "usage_usec", &value);
	else if (read_u64(cg, CGROUP_FILE_CPU_USED, &value) == 0)
		value /= 1000; /* v1 counts nanoseconds */
	return value;
}

/* In all, and user and system time apart. */
static void read_cpu(const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	char text[CGROUP_TEXT_MAX];

	if (cpu_is_v2(t)) {
		if (read_text(cg, CGROUP_FILE_CPU_USED, text) < 0)
			return;
		(void)cgroup_parse_key(text, "usage_usec", &ret->cpu_us);
		(void)cgroup_parse_key(text, "user_usec", &ret->user_us);
		(void)cgroup_parse_key(text, "system_usec", &ret->system_us);
		return;
	}
	(void)read_u64(cg, CGROUP_FILE_CPU_USED, &ret->cpu_us);
	ret->cpu_us /= 1000;
	(void)read_u64(cg, CGROUP_FILE_CPU_USER, &ret->user_us);
	(void)read_u64(cg, CGROUP_FILE_CPU_SYSTEM, &ret->system_us);
	ret->user_us /= 1000;
	ret->system_us /= 1000;
}

uint64_t cgroup_memory_bytes(const struct cgroup *cg)
{
	uint64_t used;

	return read_u64(cg, CGROUP_FILE_MEMORY_USED, &used) < 0 ? 0 : used;
}

bool cgroup_holds_more(const struct cgroup *cg, uint64_t bytes)
{
	uint64_t used;
	int r = read_u64(cg, CGROUP_FILE_MEMORY_USED, &used);

	return r == 0 ? used > bytes : r != -ENOENT; /* -ENOENT: there is no such controller */
}

int cgroup_tasks(const struct cgroup *cg, uint64_t *ret)
{
	return read_u64(cg, CGROUP_FILE_PIDS_NOW, ret);
}

uint32_t cgroup_tasks_peak(const struct cgroup *cg)
{
	uint64_t peak;

	if (read_u64(cg, CGROUP_FILE_PIDS_PEAK, &peak) < 0)
		return 0;
	return peak > UINT32_MAX ? UINT32_MAX : (uint32_t)peak;
}

void cgroup_reset_peak(const struct cgroup *cg)
{
	if (cg->file[CGROUP_FILE_MEMORY_PEAK] >= 0)
		(void)sys.write(cg->file[CGROUP_FILE_MEMORY_PEAK], "0", 1);
}

void cgroup_sample(struct cgroup *cg)
{
	uint64_t used = cgroup_memory_bytes(cg);

	if (used > cg->sampled_peak)
		cg->sampled_peak = used;
}

static uint64_t throttled_us(const struct cgroup_tree *t, const struct cgroup *cg)
{
	const struct cgroup_ops *ops = cgroup_ops_of(t, CGROUP_CPU);
	uint64_t units = 0;

	(void)read_key(cg, CGROUP_FILE_CPU_THROTTLED, ops->throttled_key, &units);
	return units / ops->throttled_per_us;
}

static void read_memory(
	const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	if (t->of[CGROUP_MEMORY] < 0)
		return;
	ret->oom_kills = cgroup_oom_kills(cg);
	if (read_u64(cg, CGROUP_FILE_MEMORY_PEAK, &ret->memory_peak_bytes) == 0) {
		ret->memory_counter = cgroup_ops_of(t, CGROUP_MEMORY)->peak_counter;
		return;
	}
	ret->memory_peak_bytes = cg->sampled_peak;
	ret->memory_counter = cg->sampled_peak ? MEMORY_COUNTER_SAMPLED : MEMORY_COUNTER_NONE;
}

void cgroup_read_counters(
	const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	*ret = (struct cgroup_usage){ .memory_counter = MEMORY_COUNTER_NONE };
	read_cpu(t, cg, ret);
	if (t->of[CGROUP_CPU] >= 0)
		ret->throttled_us = throttled_us(t, cg);
	(void)read_key(cg, CGROUP_FILE_PIDS_EVENTS, "max", &ret->pids_refused);
}

void cgroup_read_usage(
	const struct cgroup_tree *t, const struct cgroup *cg, struct cgroup_usage *ret)
{
	cgroup_read_counters(t, cg, ret);
	read_memory(t, cg, ret);
	ret->pids_peak = cgroup_tasks_peak(cg);
}
