#include "kernel/cgroup_internal.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>

/* A file that not every kernel has: absent is as good as written. */
static int write_if_there(int fd, const char *file, const char *text)
{
	int r = cgroup_write(fd, file, text);

	return r == -ENOENT ? 0 : r;
}

static int limit_memory(int fd, uint64_t was, uint64_t bytes, bool swap, struct fault *f)
{
	uint64_t used;
	int r;

	(void)was; /* one file, written as a whole */

	/* A memory.max below what is in use would make the kernel kill to get there. */
	r = cgroup_read_u64(fd, "memory.current", &used);
	if (r < 0)
		return fault_set(f, r, "read memory.current");
	if (used > bytes)
		return fault_say(
			f, -EDQUOT, "%" PRIu64 " bytes in use, limit %" PRIu64, used, bytes);

	r = cgroup_write(fd, "memory.oom.group", "1");
	if (r < 0)
		return fault_set(f, r, "write memory.oom.group");
	if (swap) {
		r = cgroup_write(fd, "memory.swap.max", "0");
		if (r < 0)
			return fault_set(f, r, "write memory.swap.max");
		r = write_if_there(fd, "memory.zswap.max", "0");
		if (r < 0)
			return fault_set(f, r, "write memory.zswap.max");
	}
	r = cgroup_write_u64(fd, "memory.max", bytes);
	if (r < 0)
		return fault_set(f, r, "write memory.max");
	return 0;
}

static int limit_cpu(int fd, uint32_t milli, struct fault *f)
{
	uint64_t quota = cgroup_quota_us(milli);
	char text[48];
	int r;

	(void)snprintf(text, sizeof(text), "%" PRIu64 " %u", quota, CGROUP_PERIOD_US);
	r = cgroup_write(fd, "cpu.max", text);
	return r < 0 ? fault_set(f, r, "write %s to cpu.max", text) : 0;
}

static int open_oom(int fd, int *ret_fd, struct fault *f)
{
	cleanup_fd int oom_fd = sys.openat(fd, "memory.events", O_RDONLY | O_CLOEXEC, 0);
	uint64_t kills;
	int r;

	if (oom_fd < 0)
		return fault_set(f, oom_fd, "open memory.events");
	/* A file that was never read polls as changed. */
	r = cgroup_reread_key(oom_fd, "oom_kill", &kills);
	if (r < 0)
		return fault_set(f, r, "read memory.events");
	*ret_fd = take_fd(&oom_fd);
	return 0;
}

/* memory.events also changes for reasons that are no kill ("max"): only the count tells. */
static bool oom_pending(int oom_fd)
{
	uint64_t kills = 0;

	return cgroup_reread_key(oom_fd, "oom_kill", &kills) == 0 && kills > 0;
}

const struct cgroup_ops cgroup_v2_ops = {
	.memory_file = "memory.max",
	.cpu_file = "cpu.max",
	.pids_file = "pids.max",
	.swap_file = "memory.swap.max",
	.files = {
		[CGROUP_FILE_MEMORY_USED] = "memory.current",
		[CGROUP_FILE_MEMORY_PEAK] = "memory.peak",
		[CGROUP_FILE_MEMORY_EVENTS] = "memory.events",
		[CGROUP_FILE_CPU_THROTTLED] = "cpu.stat",
		[CGROUP_FILE_CPU_USED] = "cpu.stat",
		[CGROUP_FILE_PIDS_NOW] = "pids.current",
		[CGROUP_FILE_PIDS_PEAK] = "pids.peak",
		[CGROUP_FILE_PIDS_EVENTS] = "pids.events",
	},
	.peak_counter = MEMORY_COUNTER_V2_PEAK,
	.throttled_key = "throttled_usec",
	.throttled_per_us = 1,
	.limit_memory = limit_memory,
	.limit_cpu = limit_cpu,
	.open_oom = open_oom,
	.oom_pending = oom_pending,
};
