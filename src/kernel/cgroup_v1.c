#include "kernel/cgroup_internal.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/eventfd.h>

#define SOCKET_UNIT (UINT64_C(1) << 20)

static int write_limit(int fd, const char *file, uint64_t bytes, struct fault *f)
{
	int r = cgroup_write_u64(fd, file, bytes);

	/* v1 says EBUSY where it could not free enough; it never kills for a limit. */
	if (r == -EBUSY)
		return fault_say(f, -EDQUOT, "more is in use than %" PRIu64 " in %s", bytes, file);
	return r < 0 ? fault_set(f, r, "write %" PRIu64 " to %s", bytes, file) : 0;
}

/* Socket buffers are not in memory.limit here, but under a limit of their own, which is off
 * until it is written. A quarter: they come on top. Whole MiB: it need not follow each page that
 * the other limit is moved by. */
static uint64_t socket_bytes(uint64_t bytes)
{
	return (bytes / 4 + SOCKET_UNIT - 1) / SOCKET_UNIT * SOCKET_UNIT;
}

static int limit_sockets(int fd, uint64_t was, uint64_t bytes, struct fault *f)
{
	int r;

	if (was > 0 && socket_bytes(was) == socket_bytes(bytes))
		return 0;
	r = write_limit(fd, "memory.kmem.tcp.limit_in_bytes", socket_bytes(bytes), NULL);
	/* ENOENT: a kernel without that counter. */
	return r < 0 && r != -ENOENT ? fault_set(f, r, "write memory.kmem.tcp.limit_in_bytes") : 0;
}

/* memory.memsw.limit (memory plus swap) may never be below memory.limit, not even for a
 * moment: EINVAL. So it goes first on the way up, and last on the way down. */
static int limit_memory(int fd, uint64_t was, uint64_t bytes, bool swap, struct fault *f)
{
	static const char plain[] = "memory.limit_in_bytes", both[] = "memory.memsw.limit_in_bytes";
	uint64_t now = was;
	int r = limit_sockets(fd, was, bytes, f);

	if (r < 0)
		return r;
	if (!swap)
		return write_limit(fd, plain, bytes, f);
	r = was > 0 ? 0 : cgroup_read_u64(fd, both, &now);
	if (r < 0)
		return fault_set(f, r, "read %s", both);
	r = write_limit(fd, bytes > now ? both : plain, bytes, f);
	if (r < 0)
		return r;
	return write_limit(fd, bytes > now ? plain : both, bytes, f);
}

static int begin_cpu(int fd, struct fault *f)
{
	int r = cgroup_write_u64(fd, "cpu.cfs_period_us", CGROUP_PERIOD_US);

	return r < 0 ? fault_set(f, r, "write cpu.cfs_period_us") : 0;
}

static int limit_cpu(int fd, uint32_t milli, struct fault *f)
{
	uint64_t quota = cgroup_quota_us(milli);
	int r;

	r = cgroup_write_u64(fd, "cpu.cfs_quota_us", quota);
	if (r == -EINVAL)
		return fault_say(f, r,
			"cpu.cfs_quota_us: %u thousandths of a CPU are more than the groups above "
			"allow",
			milli);
	return r < 0 ? fault_set(f, r, "write cpu.cfs_quota_us") : 0;
}

/* "eventfd-number control-file-number" asks for an event at each OOM. The kernel keeps
 * the registration after the control file was closed. */
static int open_oom(int fd, int *ret_fd, struct fault *f)
{
	cleanup_fd int control_fd = -1;
	cleanup_fd int oom_fd = -1;
	char text[32];
	int r;

	control_fd = sys.openat(fd, "memory.oom_control", O_RDONLY | O_CLOEXEC, 0);
	if (control_fd < 0)
		return fault_set(f, control_fd, "open memory.oom_control");
	oom_fd = sys.eventfd2(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (oom_fd < 0)
		return fault_set(f, oom_fd, "eventfd");
	(void)snprintf(text, sizeof(text), "%d %d", oom_fd, control_fd);
	r = cgroup_write(fd, "cgroup.event_control", text);
	if (r < 0)
		return fault_set(f, r, "write cgroup.event_control");
	*ret_fd = take_fd(&oom_fd);
	return 0;
}

static bool oom_pending(int oom_fd)
{
	uint64_t events = 0;

	return sys.read(oom_fd, &events, sizeof(events)) == sizeof(events) && events > 0;
}

const struct cgroup_ops cgroup_v1_ops = {
	.memory_file = "memory.limit_in_bytes",
	.cpu_file = "cpu.cfs_quota_us",
	.pids_file = "pids.max",
	.swap_file = "memory.memsw.limit_in_bytes",
	.files = {
		[CGROUP_FILE_MEMORY_USED] = "memory.usage_in_bytes",
		[CGROUP_FILE_MEMORY_PEAK] = "memory.max_usage_in_bytes",
		[CGROUP_FILE_MEMORY_EVENTS] = "memory.oom_control",
		[CGROUP_FILE_CPU_THROTTLED] = "cpu.stat",
		[CGROUP_FILE_CPU_USED] = "cpuacct.usage",
		[CGROUP_FILE_CPU_USER] = "cpuacct.usage_user",
		[CGROUP_FILE_CPU_SYSTEM] = "cpuacct.usage_sys",
		[CGROUP_FILE_PIDS_NOW] = "pids.current",
		[CGROUP_FILE_PIDS_PEAK] = "pids.peak",
		[CGROUP_FILE_PIDS_EVENTS] = "pids.events",
	},
	.peak_counter = MEMORY_COUNTER_V1_PEAK,
	.throttled_key = "throttled_time",
	.throttled_per_us = 1000,
	.limit_memory = limit_memory,
	.begin_cpu = begin_cpu,
	.limit_cpu = limit_cpu,
	.open_oom = open_oom,
	.oom_pending = oom_pending,
};
