/* The files of a leaf, of both versions, on plain files of the same names: what is written
 * where, what is read from where, and what becomes of each answer that a kernel may give. A host
 * has one version only, and no host gives them all. */
#include "unit.h"

#include "folder.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/cgroup_internal.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define MIB (UINT64_C(1) << 20)

static char folder[] = "/tmp/glovebox-files-XXXXXX";
static int dir = -1;
static struct sys_ops real;

/* The next `times` calls of that name answer so. */
static struct {
	int code;
	unsigned times;
} writes, reads;

static ssize_t stubborn_write(int fd, const void *bytes, size_t len)
{
	if (writes.times > 0 && writes.times-- > 0)
		return writes.code;
	return real.write(fd, bytes, len);
}

static ssize_t stubborn_read(int fd, void *bytes, size_t room)
{
	if (reads.times > 0 && reads.times-- > 0)
		return reads.code;
	return real.read(fd, bytes, room);
}

static ssize_t stubborn_pread(int fd, void *bytes, size_t room, off_t at)
{
	if (reads.times > 0 && reads.times-- > 0)
		return reads.code;
	return real.pread(fd, bytes, room, at);
}

static int set_up(void **state)
{
	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/glovebox-files-XXXXXX");
	if (!mkdtemp(folder))
		return -1;
	dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	real = sys;
	sys.write = stubborn_write;
	sys.read = stubborn_read;
	sys.pread = stubborn_pread;
	writes.times = reads.times = 0;
	return dir < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	(void)state;
	sys = real;
	drop_fd(&dir);
	return remove_folder(folder);
}

static void put(const char *name, const char *text)
{
	cleanup_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
}

static void expect_text(const char *name, const char *text)
{
	cleanup_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char found[64] = "";

	assert_true(fd >= 0 && read(fd, found, sizeof(found) - 1) >= 0);
	assert_string_equal(found, text);
}

static void take_away(const char *name)
{
	assert_int_equal(unlinkat(dir, name, 0), 0);
}

static const char *const v2_files[] = { "memory.oom.group", "memory.swap.max", "memory.max",
	"cpu.max" };

static void put_v2(void)
{
	for (unsigned i = 0; i < 4; i++)
		put(v2_files[i], "");
	put("memory.current", "1048576\n");
	put("memory.events", "low 0\noom 2\noom_kill 0\noom_group_kill 0\n");
}

/* ---- v2 ---- */

static void limits_of_v2_are_written_to_its_files(void **state)
{
	struct fault f = { 0 };

	(void)state;
	put_v2();
	put("memory.zswap.max", "");
	assert_int_equal(cgroup_v2_ops.limit_memory(dir, 0, 64 * MIB, true, &f), 0);
	expect_text("memory.max", "67108864");
	expect_text("memory.swap.max", "0");
	expect_text("memory.zswap.max", "0");
	expect_text("memory.oom.group", "1");
	assert_int_equal(cgroup_v2_ops.limit_cpu(dir, 500, &f), 0);
	expect_text("cpu.max", "50000 100000");
	/* The kernel's least quota. */
	put("cpu.max", "");
	assert_int_equal(cgroup_v2_ops.limit_cpu(dir, 1, &f), 0);
	expect_text("cpu.max", "1000 100000");
}

static void without_swap_accounting_only_memory_is_limited(void **state)
{
	struct fault f = { 0 };

	(void)state;
	put_v2();
	take_away("memory.swap.max");
	assert_int_equal(cgroup_v2_ops.limit_memory(dir, 0, 64 * MIB, false, &f), 0);
	expect_text("memory.max", "67108864");
}

static void a_kernel_without_zswap_is_none_worse(void **state)
{
	struct fault f = { 0 };

	(void)state;
	put_v2();
	assert_int_equal(cgroup_v2_ops.limit_memory(dir, 0, 64 * MIB, true, &f), 0);
	assert_int_equal(mkdirat(dir, "memory.zswap.max", 0700), 0);
	assert_int_equal(cgroup_v2_ops.limit_memory(dir, 0, 64 * MIB, true, &f), -EISDIR);
	assert_non_null(strstr(f.text, "memory.zswap.max"));
}

static void a_limit_of_v2_below_what_is_in_use_is_not_written(void **state)
{
	struct fault f = { 0 };

	(void)state;
	put_v2();
	assert_int_equal(cgroup_v2_ops.limit_memory(dir, 0, MIB, true, &f), 0);
	put("memory.max", "");
	assert_int_equal(cgroup_v2_ops.limit_memory(dir, 0, MIB - 1, true, &f), -EDQUOT);
	expect_text("memory.max", "");
}

static void each_file_of_v2_that_is_missing_is_named(void **state)
{
	struct fault f = { 0 };

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		int r;

		put_v2();
		take_away(v2_files[i]);
		r = i < 3 ? cgroup_v2_ops.limit_memory(dir, 0, 64 * MIB, true, &f)
			  : cgroup_v2_ops.limit_cpu(dir, 500, &f);
		assert_int_equal(r, -ENOENT);
		assert_non_null(strstr(f.text, v2_files[i]));
	}
	put_v2();
	take_away("memory.current");
	assert_int_equal(cgroup_v2_ops.limit_memory(dir, 0, 64 * MIB, true, &f), -ENOENT);
	put("memory.current", "many\n");
	assert_int_equal(cgroup_v2_ops.limit_memory(dir, 0, 64 * MIB, true, &f), -EINVAL);
}

static void only_a_counted_kill_of_v2_is_an_oom(void **state)
{
	cleanup_fd int oom_fd = -1;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(cgroup_v2_ops.open_oom(dir, &oom_fd, &f), -ENOENT);
	put("memory.events", "low 0\n");
	assert_int_equal(cgroup_v2_ops.open_oom(dir, &oom_fd, &f), -ENOENT);
	assert_int_equal(oom_fd, -1);
	put_v2();
	assert_int_equal(cgroup_v2_ops.open_oom(dir, &oom_fd, &f), 0);
	assert_false(cgroup_v2_ops.oom_pending(oom_fd));
	put("memory.events", "oom 2\noom_kill 1\n");
	assert_true(cgroup_v2_ops.oom_pending(oom_fd));
	put("memory.events", "oom_kill x\n");
	assert_false(cgroup_v2_ops.oom_pending(oom_fd));
}

/* ---- a whole leaf ---- */

static void open_leaf(struct cgroup_tree *t, struct cgroup *cg, int version)
{
	struct fault f = { 0 };

	*t = (struct cgroup_tree){ .count = 1, .h = { { .version = version } } };
	cgroup_clear(cg);
	cg->fd[0] = fcntl(dir, F_DUPFD_CLOEXEC, 0);
	assert_int_equal(cgroup_open_files(t, cg, CGROUP_ALL, &f), 0);
}

static void what_a_leaf_of_v2_has_used_is_read(void **state)
{
	struct cgroup_usage u = { 0 };
	struct cgroup_tree t;
	struct cgroup cg;

	(void)state;
	put_v2();
	put("memory.peak", "2097152\n");
	put("memory.events", "oom_kill 3\n");
	put("cpu.stat", "usage_usec 70\nuser_usec 50\nsystem_usec 20\nthrottled_usec 9\n");
	put("pids.current", "4\n");
	put("pids.peak", "5000000000\n");
	put("pids.events", "max 6\n");
	open_leaf(&t, &cg, 2);
	cgroup_read_usage(&t, &cg, &u);
	assert_int_equal(u.cpu_us, 70);
	assert_int_equal(u.user_us, 50);
	assert_int_equal(u.system_us, 20);
	assert_int_equal(u.throttled_us, 9);
	assert_int_equal(u.memory_peak_bytes, 2 * MIB);
	assert_int_equal(u.memory_counter, MEMORY_COUNTER_V2_PEAK);
	assert_int_equal(u.oom_kills, 3);
	assert_int_equal(u.pids_refused, 6);
	assert_int_equal(u.pids_peak, UINT32_MAX); /* more than there is room for */
	assert_int_equal(cgroup_cpu_us(&t, &cg), 70);
	assert_int_equal(cgroup_memory_bytes(&cg), MIB);
	assert_true(cgroup_holds_more(&cg, MIB - 1));
	assert_false(cgroup_holds_more(&cg, MIB));
	cgroup_close(&cg);
}

static void without_a_peak_the_largest_sample_is_told(void **state)
{
	struct cgroup_usage u = { 0 };
	struct cgroup_tree t;
	struct cgroup cg;

	(void)state;
	put_v2();
	open_leaf(&t, &cg, 2);
	put("memory.current", "1000\n");
	cgroup_sample(&cg);
	put("memory.current", "10\n");
	cgroup_sample(&cg);
	cgroup_read_usage(&t, &cg, &u);
	assert_int_equal(u.memory_peak_bytes, 1000);
	assert_int_equal(u.memory_counter, MEMORY_COUNTER_SAMPLED);
	cgroup_close(&cg);
}

static void what_the_kernel_does_not_tell_is_nothing(void **state)
{
	struct cgroup_usage u = { .pids_peak = 1 };
	struct cgroup_tree t;
	struct cgroup cg;
	uint64_t tasks;

	(void)state;
	open_leaf(&t, &cg, 2);
	cgroup_read_usage(&t, &cg, &u);
	assert_int_equal(u.cpu_us, 0);
	assert_int_equal(u.memory_counter, MEMORY_COUNTER_NONE);
	assert_int_equal(cgroup_cpu_us(&t, &cg), 0);
	assert_int_equal(cgroup_memory_bytes(&cg), 0);
	assert_false(cgroup_holds_more(&cg, 0));
	assert_int_equal(cgroup_tasks(&cg, &tasks), -ENOENT);
	assert_int_equal(cgroup_tasks_peak(&cg), 0);
	cgroup_close(&cg);
}

static void a_leaf_of_v1_counts_nanoseconds(void **state)
{
	struct cgroup_usage u = { 0 };
	struct cgroup_tree t;
	struct cgroup cg;

	(void)state;
	put("memory.usage_in_bytes", "1\n");
	put("memory.max_usage_in_bytes", "2\n");
	put("memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 4\n");
	put("cpu.stat", "nr_periods 0\nthrottled_time 5000\n");
	put("cpuacct.usage", "70000\n");
	put("cpuacct.usage_user", "50000\n");
	put("cpuacct.usage_sys", "20000\n");
	open_leaf(&t, &cg, 1);
	cgroup_read_usage(&t, &cg, &u);
	assert_int_equal(u.cpu_us, 70);
	assert_int_equal(u.user_us, 50);
	assert_int_equal(u.system_us, 20);
	assert_int_equal(u.throttled_us, 5);
	assert_int_equal(u.memory_counter, MEMORY_COUNTER_V1_PEAK);
	assert_int_equal(u.oom_kills, 4);
	assert_int_equal(cgroup_cpu_us(&t, &cg), 70);
	cgroup_close(&cg);
}

/* ---- v1 ---- */

static void put_v1(void)
{
	put("memory.limit_in_bytes", "");
	put("memory.memsw.limit_in_bytes", "1048576\n");
}

static void a_limit_of_v1_is_tried_again_after_a_signal(void **state)
{
	struct fault f = { 0 };

	(void)state;
	put_v1();
	/* Its own retry, below which is that of cgroup_write(). */
	writes.code = -EINTR;
	writes.times = 3;
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 0, 64 * MIB, false, &f), 0);
	expect_text("memory.limit_in_bytes", "67108864");
	writes.code = -EBUSY;
	writes.times = 1;
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 0, MIB, false, &f), -EDQUOT);
}

static void memory_and_swap_of_v1_go_up_and_down_in_the_right_order(void **state)
{
	struct fault f = { 0 };

	(void)state;
	put_v1();
	writes.code = -EINVAL;
	writes.times = 1; /* whichever is written first */
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 0, 64 * MIB, true, &f), -EINVAL);
	assert_non_null(strstr(f.text, "memsw"));
	writes.times = 1;
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 0, MIB / 2, true, &f), -EINVAL);
	assert_null(strstr(f.text, "memsw"));
	take_away("memory.memsw.limit_in_bytes");
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 0, MIB, true, &f), -ENOENT);
}

static void the_limit_of_sockets_may_be_missing_but_not_fail(void **state)
{
	struct fault f = { 0 };

	(void)state;
	put_v1();
	put("memory.kmem.tcp.limit_in_bytes", "");
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 0, 64 * MIB, false, &f), 0);
	expect_text("memory.kmem.tcp.limit_in_bytes", "16777216");
	writes.code = -EIO;
	writes.times = 1;
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 0, 64 * MIB, false, &f), -EIO);
}

/* What a parked program holds differs by some pages from one to the next. */
static void a_limit_that_is_known_moves_by_pages_in_two_writes(void **state)
{
	struct fault f = { 0 };

	(void)state;
	put("memory.limit_in_bytes", "");
	put("memory.memsw.limit_in_bytes", "not read");
	put("memory.kmem.tcp.limit_in_bytes", "kept");
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 65 * MIB, 65 * MIB + 4096, true, &f), 0);
	expect_text("memory.limit_in_bytes", "68161536");
	expect_text("memory.memsw.limit_in_bytes", "68161536");
	expect_text("memory.kmem.tcp.limit_in_bytes", "kept");
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 65 * MIB, 128 * MIB, true, &f), 0);
	expect_text("memory.kmem.tcp.limit_in_bytes", "33554432");
	put("memory.memsw.limit_in_bytes", "not read");
	assert_int_equal(cgroup_v1_ops.limit_memory(dir, 0, MIB, true, &f), -EINVAL);
}

static void a_quota_that_the_groups_above_forbid_is_explained(void **state)
{
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(cgroup_v1_ops.begin_cpu(dir, &f), -ENOENT);
	assert_int_equal(cgroup_v1_ops.limit_cpu(dir, 500, &f), -ENOENT);
	put("cpu.cfs_quota_us", "");
	writes.code = -EINVAL;
	writes.times = 1;
	assert_int_equal(cgroup_v1_ops.limit_cpu(dir, 500, &f), -EINVAL);
	assert_non_null(strstr(f.text, "groups above"));
	assert_int_equal(cgroup_v1_ops.limit_cpu(dir, 500, &f), 0);
	expect_text("cpu.cfs_quota_us", "50000");
}

/* ---- one file ---- */

static void a_signal_interrupts_neither_reading_nor_writing(void **state)
{
	char text[16];
	uint64_t value;

	(void)state;
	put("f", "");
	writes.code = reads.code = -EINTR;
	writes.times = 2;
	assert_int_equal(cgroup_write(dir, "f", "17"), 0);
	reads.times = 2;
	assert_int_equal(cgroup_read(dir, "f", text, sizeof(text)), 2);
	reads.times = 2;
	assert_int_equal(cgroup_read_u64(dir, "f", &value), 0);
	assert_int_equal(value, 17);
}

static void half_a_write_is_none(void **state)
{
	(void)state;
	put("f", "");
	writes.code = 1;
	writes.times = 1;
	assert_int_equal(cgroup_write(dir, "f", "17"), -EIO);
}

static void an_error_of_the_kernel_is_passed_on(void **state)
{
	char text[16];
	uint64_t value;
	int code = 0;
	char path[64];

	(void)state;
	put("f", "17");
	reads.code = -EIO;
	reads.times = 1;
	assert_int_equal(cgroup_read(dir, "f", text, sizeof(text)), -EIO);
	reads.times = 1;
	assert_int_equal(cgroup_read_u64(dir, "f", &value), -EIO);
	(void)snprintf(path, sizeof(path), "%s/f", folder);
	reads.times = 1;
	assert_null(cgroup_slurp(path, &code));
	assert_int_equal(code, -EIO);
	(void)snprintf(path, sizeof(path), "%s/none", folder);
	assert_null(cgroup_slurp(path, &code));
	assert_int_equal(code, -ENOENT);
	assert_int_equal(cgroup_read(dir, "none", text, sizeof(text)), -ENOENT);
}

static void a_text_that_does_not_fit_is_not_cut(void **state)
{
	char text[4];

	(void)state;
	put("f", "123");
	assert_int_equal(cgroup_read(dir, "f", text, sizeof(text)), 3);
	put("f", "1234");
	assert_int_equal(cgroup_read(dir, "f", text, sizeof(text)), -EFBIG);
}

static void a_file_of_any_length_is_slurped_up_to_a_bound(void **state)
{
	cleanup_free char *text = NULL;
	char path[64];
	int code = 0;
	struct stat st;
	cleanup_fd int fd = -1;

	(void)state;
	put("f", "x");
	(void)snprintf(path, sizeof(path), "%s/f", folder);
	fd = openat(dir, "f", O_WRONLY | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 100000), 0);
	text = cgroup_slurp(path, &code);
	assert_non_null(text);
	assert_memory_equal(text + 99998, "\0", 2);
	assert_int_equal(ftruncate(fd, 8 << 20), 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_null(cgroup_slurp(path, &code));
	assert_int_equal(code, -EFBIG);
}

static void a_list_of_processes_tells_us_from_others(void **state)
{
	bool us, others;
	char text[64];

	(void)state;
	put("cgroup.procs", "");
	assert_int_equal(cgroup_read_procs(dir, &us, &others), 0);
	assert_false(us || others);
	(void)snprintf(text, sizeof(text), "%d\n", (int)getpid());
	put("cgroup.procs", text);
	assert_int_equal(cgroup_read_procs(dir, &us, &others), 0);
	assert_true(us && !others);
	(void)snprintf(text, sizeof(text), "1\n%d\n", (int)getpid());
	put("cgroup.procs", text);
	assert_int_equal(cgroup_read_procs(dir, &us, &others), 0);
	assert_true(us && others);
	put("cgroup.procs", "1 2\n");
	assert_int_equal(cgroup_read_procs(dir, &us, &others), -EINVAL);
	put("cgroup.procs", "one\n");
	assert_int_equal(cgroup_read_procs(dir, &us, &others), -EINVAL);
	take_away("cgroup.procs");
	assert_int_equal(cgroup_read_procs(dir, &us, &others), -ENOENT);
}

#define files_test(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		files_test(limits_of_v2_are_written_to_its_files),
		files_test(without_swap_accounting_only_memory_is_limited),
		files_test(a_kernel_without_zswap_is_none_worse),
		files_test(a_limit_of_v2_below_what_is_in_use_is_not_written),
		files_test(each_file_of_v2_that_is_missing_is_named),
		files_test(only_a_counted_kill_of_v2_is_an_oom),
		files_test(what_a_leaf_of_v2_has_used_is_read),
		files_test(without_a_peak_the_largest_sample_is_told),
		files_test(what_the_kernel_does_not_tell_is_nothing),
		files_test(a_leaf_of_v1_counts_nanoseconds),
		files_test(a_limit_of_v1_is_tried_again_after_a_signal),
		files_test(memory_and_swap_of_v1_go_up_and_down_in_the_right_order),
		files_test(the_limit_of_sockets_may_be_missing_but_not_fail),
		files_test(a_limit_that_is_known_moves_by_pages_in_two_writes),
		files_test(a_quota_that_the_groups_above_forbid_is_explained),
		files_test(a_signal_interrupts_neither_reading_nor_writing),
		files_test(half_a_write_is_none),
		files_test(an_error_of_the_kernel_is_passed_on),
		files_test(a_text_that_does_not_fit_is_not_cut),
		files_test(a_file_of_any_length_is_slurped_up_to_a_bound),
		files_test(a_list_of_processes_tells_us_from_others),
	};

	return cmocka_run_group_tests_name("cgroup_files", tests, NULL, NULL);
}
