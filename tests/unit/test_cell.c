/* Fail the 1st, 2nd, 3rd... kernel call of building, starting and destroying a cell, on
 * the supervisor's side, in init and in enter. Whichever breaks: it is said, nothing is
 * left behind, and the next cell stands.
 *
 * Each try runs in a child of its own that plays the supervisor, because one of the calls
 * (the way back from a cell's pid namespace) must end the process when it fails.
 */
#include "tests/unit/unit.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/process.h"
#include "kernel/sys.h"
#include "priv/launch/cell.h"
#include "priv/supervisor/lease.h"
#include "tests/lib/flaky.h"
#include "tests/lib/flaky_box.h"
#include "wire/channel.h"
#include "wire/inputs.h"
#include "wire/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TIMEOUT_NS (20 * NS_PER_S)
#define CALLS_MAX  2000 /* far more than a cell makes: a loop that never ends is a bug */

extern const unsigned char box_flaky_start[], box_flaky_end[];

static struct {
	struct lease lease;
	struct cgroup_tree tree;
	struct cgroup inits;
	struct view view;
	struct cell_factory factory;
} host;

static const struct runtime runtime = {
	.name = "true",
	.main_file = "main",
	.argv = { "/usr/bin/true" },
	.roots = { "/usr/bin", "/usr/lib/x86_64-linux-gnu", "?/usr/lib64" },
	.full_proc = 1,
};

/* What a try tells its parent, in shared memory: it may end by abort(). */
struct report {
	bool reached; /* the armed call was made */
	bool stood;   /* the cell ran its program to the end */
	bool leaked;
	bool asked, kept; /* was the cage to be kept for another program, and was it? */
	char call[32];
	char fault[512];
};
static struct report *report;

/* Of what is sent and made from now on, as in struct attempt. */
int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __real_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __wrap_channel_pair(int ret_fds[2], int nonblock);
int __real_channel_pair(int ret_fds[2], int nonblock);
static unsigned unsent, unpaired;
static const struct cell *await_init_of; /* no MOUNT is sent before its init has ended */

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
{
	if (await_init_of && type == MSG_MOUNT) {
		struct pollfd p = { .fd = await_init_of->init.pidfd, .events = POLLIN };

		(void)poll(&p, 1, (int)(TIMEOUT_NS / NS_PER_MS));
	}
	if (unsent > 0 && --unsent == 0) {
		report->reached = true;
		return -ENOBUFS;
	}
	return __real_channel_send(fd, type, payload, fds);
}

int __wrap_channel_pair(int ret_fds[2], int nonblock)
{
	if (unpaired > 0 && --unpaired == 0) {
		report->reached = true;
		return -EMFILE;
	}
	return __real_channel_pair(ret_fds, nonblock);
}

struct attempt {
	int nth;           /* the call on the supervisor's side that fails; -1: none */
	bool in_used_cage; /* it is counted from the end of a cage's first program */
	bool removed;      /* the cage is being removed when it is to be kept */
	bool evicted;      /* the first program is none: its process is ended while it is parked */
	bool unforked;     /* main is started cold after a zygote was asked in vain */
	bool roomy;        /* the program asks for more memory than is usual */
	bool networked;    /* the cell has a network */
	/* Which message to the box cannot be sent, which channel not be made, counted as `nth`,
	 * but from 1 on; 0: none. */
	unsigned unsent, unpaired;
};
static const struct attempt good = { .nth = -1 }, good_again = { .nth = -1, .in_used_cage = true },
			    networked = { .nth = -1, .networked = true },
			    too_late = { .nth = -1, .in_used_cage = true, .removed = true };

static unsigned count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned n = 0;

	if (!dir)
		return 0;
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

/* Leaves of this instance in all hierarchies; the group itself holds only leaves and files. */
static unsigned count_leaves(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < host.tree.count; i++) {
		char path[64];
		DIR *dir;
		const struct dirent *e;

		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", host.tree.h[i].dir_fd);
		dir = opendir(path);
		assert_non_null(dir);
		while ((e = readdir(dir)))
			n += e->d_type == DT_DIR && e->d_name[0] == 'c' && e->d_name[1] >= '0' &&
			     e->d_name[1] <= '9';
		(void)closedir(dir);
	}
	return n;
}

static bool wait_for_end(struct cell *c)
{
	uint64_t deadline = clock_ns() + TIMEOUT_NS;

	while (clock_ns() < deadline) {
		struct pollfd p = { .fd = c->leaf.events_fd, .events = POLLPRI };

		if (cell_is_empty(c) && cell_remove(c, &host.factory))
			return true;
		(void)poll(&p, 1, 5);
	}
	return false;
}

/* Until the cell is READY (0) or has broken. */
static int build(struct cell *c)
{
	while (c->state == CELL_BUILDING || c->state == CELL_ENTERING) {
		struct pollfd p = {
			.fd = c->state == CELL_BUILDING ? c->init_channel : c->main_channel,
			.events = POLLIN,
		};
		int r;

		if (cell_awaits_fork(c))
			r = cell_unforked(c, &host.factory);
		else if (poll(&p, 1, (int)(TIMEOUT_NS / NS_PER_MS)) != 1)
			return -ETIMEDOUT;
		else
			r = cell_hear(c, &host.factory);
		if (r < 0)
			return r;
	}
	return 0;
}

static void put_file(FILE *to, const char *path, const char *text, uint32_t mode)
{
	const struct inputs_file file = { strlen(text), (uint32_t)strlen(path), mode };

	(void)fwrite(&file, sizeof(file), 1, to);
	(void)fwrite(path, strlen(path) + 1, 1, to);
	(void)fwrite(text, strlen(text), 1, to);
}

/* Inputs with all that takes a system call of its own: the program's file goes, directories and
 * a mode that the umask does not let through are made. */
static uint64_t write_inputs(int fd)
{
	const struct inputs_head head = { INPUTS_MAGIC, 1, 1, 2, 1, 0 };
	FILE *to = fdopen(dup(fd), "w");
	long len;

	if (!to)
		_exit(99);
	(void)fwrite(&head, sizeof(head), 1, to);
	(void)fwrite("arg\0A=1", sizeof("arg\0A=1"), 1, to);
	put_file(to, "a/b/program", "x", 0644);
	put_file(to, "file", "", 0777);
	len = ftell(to);
	if (fclose(to) != 0)
		_exit(99);
	return (uint64_t)len;
}

static void make_streams(int fds[MSG_FDS_MAX], int kept[3])
{
	fds[0] = memfd_create("code", MFD_CLOEXEC);
	fds[4] = memfd_create("report", MFD_CLOEXEC);
	assert_int_equal(ftruncate(fds[4], (off_t)REPORT_BYTES), 0);
	for (int i = 0; i < 3; i++) {
		int p[2];

		if (pipe2(p, O_CLOEXEC) < 0)
			_exit(99);
		fds[1 + i] = i == 0 ? p[0] : p[1];
		kept[i] = i == 0 ? p[1] : p[0];
	}
}

/* Release the program and see it end by itself with 0. */
static int run(struct cell *c, bool roomy, struct fault *f)
{
	struct msg_submit order = { .limits = { 10000000, (roomy ? 96 : 64) << 20, 0, 1000, 4 } };
	int fds[MSG_FDS_MAX], kept[3], r;

	make_streams(fds, kept);
	order.inputs_bytes = write_inputs(fds[0]);
	r = cell_start(c, &host.factory, &order, fds, f);
	for (int i = 0; i < MSG_FDS_MAX; i++)
		(void)close(fds[i]);
	while (r == 0 && !c->main_died) {
		struct pollfd p[2] = { { .fd = c->main_channel, .events = POLLIN },
			{ .fd = c->main.pidfd, .events = POLLIN } };

		if (poll(p, 2, (int)(TIMEOUT_NS / NS_PER_MS)) <= 0)
			r = -ETIMEDOUT;
		else if (c->main_channel >= 0 && p[0].revents)
			r = cell_hear(c, &host.factory);
		if (r > 0) {
			cell_hush(c);
			r = 0;
		}
		if (r == 0)
			(void)cell_reap_main(c);
	}
	for (int i = 0; i < 3; i++)
		(void)close(kept[i]);
	if (r == 0 && c->main_status != 0)
		r = -ECHILD;
	return r;
}

/* Another program in the cage of the first one. A cage that is not kept is no failure, as long
 * as nothing was armed to fail. */
static int run_again(struct cell *c, const struct attempt *a, struct fault *f)
{
	uint64_t deadline = clock_ns() + TIMEOUT_NS;
	int r;

	if (a->evicted)
		cell_evict(c);
	else
		cell_kill(c);
	while (!cell_is_empty(c) && clock_ns() < deadline)
		(void)poll(NULL, 0, 1);
	/* Its init has got a signal by now, but takes a while to die. */
	if (a->removed && cell_remove(c, &host.factory))
		return -EAGAIN;
	report->asked = true;
	report->kept = cell_vacate(c, &host.factory);
	if (!report->kept)
		return 0;
	r = cell_occupy(c, &host.factory, 8, f);
	if (r == 0)
		r = build(c);
	return r == 0 ? run(c, a->roomy, f) : r;
}

static int ask_in_vain(void *ctx, struct cell *c, int channel_fd)
{
	(void)ctx;
	(void)c;
	(void)channel_fd;
	return 0; /* the answer comes later: cell_unforked() */
}

static void arm(const struct attempt *a)
{
	if (a->nth >= 0)
		flaky_arm((unsigned)a->nth, EIO);
	unsent = a->unsent;
	unpaired = a->unpaired;
}

/* Which network namespace this process is in. */
static ino_t network_namespace(void)
{
	struct stat st;

	return stat("/proc/self/ns/net", &st) == 0 ? st.st_ino : 0;
}

/* One cell's whole life, in this process. */
static void try_cell(const struct attempt *a)
{
	unsigned before = count_entries("/proc/self/fd");
	ino_t namespace = network_namespace();
	struct fault f = { 0 };
	static struct cell c; /* static: too large for a careful stack */
	int r;

	c = (struct cell){ .state = CELL_NONE };
	if (await_init_of)
		await_init_of = &c;
	host.factory.network = a->networked;
	if (a->unforked)
		host.factory.fork_main = ask_in_vain;
	if (!a->in_used_cage)
		arm(a);
	r = cell_create(&c, &host.factory, 0, 7, &f);
	if (r == 0)
		r = build(&c);
	if (r == 0 && !a->evicted)
		r = run(&c, a->roomy, &f);
	if (a->in_used_cage) {
		if (r < 0)
			return; /* not what is tried here: *report says that it did not stand */
		arm(a);
		r = run_again(&c, a, &f);
	}
	(void)snprintf(report->fault, sizeof(report->fault), "%s", f.code ? f.text : c.fault.text);
	cell_kill(&c);
	report->reached |= flaky_disarm();
	(void)snprintf(report->call, sizeof(report->call), "%s", flaky_name());
	report->stood = r == 0;
	report->leaked = !wait_for_end(&c) || count_entries("/proc/self/fd") != before ||
			 network_namespace() != namespace;
}

/* Run a try in a child of its own. */
static int try_in_child(const struct attempt *a)
{
	int status;
	pid_t pid;

	memset(report, 0, sizeof(*report));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		(void)signal(SIGABRT, SIG_DFL);
		/* Where it dies on purpose only the name of the call tells. */
		try_cell(a);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

/* What the next start does for a supervisor that died: its processes are dead already
 * (init by its parent's death), the leaf is removed as soon as the kernel lets go. */
static void sweep_leaf(void)
{
	uint64_t deadline = clock_ns() + TIMEOUT_NS;

	while (count_leaves() > 0) {
		assert_true(clock_ns() < deadline);
		for (unsigned i = 0; i < host.tree.count; i++)
			for (int id = 7; id <= 8; id++)
				(void)unlinkat(
					host.tree.h[i].dir_fd, id == 7 ? "c7" : "c8", AT_REMOVEDIR);
		(void)poll(NULL, 0, 1);
	}
}

static void use_box(uint32_t role, uint32_t nth, int code)
{
	const size_t len = (size_t)(box_flaky_end - box_flaky_start);
	struct fault f = { 0 };
	unsigned char *copy = malloc(len);
	struct flaky_box *block;

	assert_non_null(copy);
	memcpy(copy, box_flaky_start, len);
	block = memmem(copy, len, FLAKY_BOX_MAGIC, sizeof(FLAKY_BOX_MAGIC));
	assert_non_null(block);
	block->role = role;
	block->nth = nth;
	block->code = code;
	drop_fd(&host.factory.box_image_fd);
	assert_int_equal(process_image("box", copy, len, &host.factory.box_image_fd, &f), 0);
	free(copy);
}

static void expect_a_good_cell(const char *after, unsigned n)
{
	int status = try_in_child(&good);

	if (status != 0 || !report->stood || report->leaked)
		fail_msg("the cell after %s %u: %s", after, n, report->fault);
}

static const struct cgroup_limits inits_limits = { 64 << 20, 1000, 64 };

static int set_up(void **state)
{
	struct fault f = { 0 };

	(void)state;
	(void)signal(SIGPIPE, SIG_IGN); /* as the supervisor does */
	report = mmap(
		NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (report == MAP_FAILED)
		return -1;
	host.factory.box_image_fd = -1;
	if (lease_take(&host.lease, &f) < 0 ||
		cgroup_tree_open(&host.tree, host.lease.number, "", &f) < 0 ||
		cgroup_create(&host.tree, "inits", &inits_limits, &host.inits, &f) < 0 ||
		mount_make_private(&f) < 0 || view_open(&host.view, &runtime, &f) < 0) {
		print_error("%s\n", f.text);
		return -1;
	}
	host.factory = (struct cell_factory){
		.tree = &host.tree,
		.inits = &host.inits,
		.usual = { 10000000, 64 << 20, 0, 1000, 8 },
		.view = &host.view,
		.runtime = &runtime,
		.box_image_fd = -1,
		.uid_base = 2000000 + host.lease.number * LEASE_UIDS,
		.workspace_inodes = 64,
		.runs_max = 2,
	};
	use_box(0, 0, 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	(void)cgroup_destroy(&host.tree, &host.inits);
	cgroup_tree_close(&host.tree);
	lease_release(&host.lease);
	return 0;
}

static void a_cell_stands_runs_and_leaves_nothing(void **state)
{
	(void)state;
	expect_a_good_cell("none", 0);
	assert_int_equal(count_leaves(), 0);
}

static void a_used_cage_serves_another_program_and_leaves_nothing(void **state)
{
	(void)state;
	assert_int_equal(try_in_child(&good_again), 0);
	if (!report->kept || !report->stood || report->leaked)
		fail_msg("kept %d: %s", report->kept, report->fault);
	assert_int_equal(count_leaves(), 0);
}

static int (*real_openat)(int dir_fd, const char *path, int flags, mode_t mode);

static int openat_without_checkpoints(int dir_fd, const char *path, int flags, mode_t mode)
{
	return strstr(path, "ns_last_pid") ? -ENOENT : real_openat(dir_fd, path, flags, mode);
}

static void without_ns_last_pid_a_cage_serves_once(void **state)
{
	(void)state;
	real_openat = sys.openat;
	sys.openat = openat_without_checkpoints;
	assert_int_equal(try_in_child(&good_again), 0);
	sys.openat = real_openat;
	if (!report->stood || !report->asked || report->kept || report->leaked)
		fail_msg("stood %d, kept %d: %s", report->stood, report->kept, report->fault);
}

static int openat_that_loses_checkpoints(int dir_fd, const char *path, int flags, mode_t mode)
{
	static unsigned asked;

	if (strstr(path, "ns_last_pid") && asked++ > 0)
		return -ENOENT;
	return real_openat(dir_fd, path, flags, mode);
}

/* Its numbers would go on where the first program's ended. */
static void a_used_cage_whose_numbering_cannot_begin_anew_takes_no_program(void **state)
{
	(void)state;
	real_openat = sys.openat;
	sys.openat = openat_that_loses_checkpoints;
	assert_int_equal(try_in_child(&good_again), 0);
	sys.openat = real_openat;
	assert_true(report->kept && !report->stood && !report->leaked);
	assert_non_null(strstr(report->fault, "ns_last_pid"));
}

static void a_cage_that_is_being_removed_is_not_kept(void **state)
{
	unsigned asked = 0;

	(void)state;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(try_in_child(&too_late), 0);
		asked += report->asked;
		if (report->kept || report->leaked)
			fail_msg("kept %d, leaked %d", report->kept, report->leaked);
		assert_int_equal(count_leaves(), 0);
	}
	assert_true(asked > 0); /* the others were gone already */
}

/* Returns how many calls there are; at least `least` of them must be missed. */
static unsigned fail_in_supervisor(struct attempt a, unsigned least)
{
	bool in_used_cage = a.in_used_cage;
	unsigned n, failed = 0;

	for (n = 0; n < CALLS_MAX; n++) {
		int status;

		a.nth = (int)n;
		status = try_in_child(&a);

		if (WIFSIGNALED(status)) {
			/* The one call after which the process may not go on. Its children die
			 * with it; the leaf is the next start's to sweep. */
			assert_int_equal(WTERMSIG(status), SIGABRT);
			sweep_leaf();
			failed++;
			continue;
		}
		assert_int_equal(status, 0);
		if (!report->reached)
			break;
		if (report->leaked)
			fail_msg("call %u (%s) failed and something is left", n, report->call);
		if (!report->stood && report->fault[0] == '\0')
			fail_msg("call %u (%s) failed and nothing was said", n, report->call);
		/* A cage that is not kept is missed, too. */
		failed += !report->stood || (in_used_cage && !report->kept);
		assert_int_equal(count_leaves(), 0);
	}
	assert_in_range(failed, least, n);
	return n;
}

static void whichever_call_of_the_supervisor_fails_nothing_is_left(void **state)
{
	unsigned n = fail_in_supervisor(good, 70);

	(void)state;
	assert_in_range(n, 90, CALLS_MAX - 1); /* v1 groups take more of them */
	expect_a_good_cell("call", n);
}

static void whichever_call_fails_in_a_used_cage_nothing_is_left(void **state)
{
	unsigned n = fail_in_supervisor(good_again, 35);

	(void)state;
	assert_in_range(n, 50, CALLS_MAX - 1);
	expect_a_good_cell("call", n);
}

static void whichever_call_fails_after_an_eviction_nothing_is_left(void **state)
{
	const struct attempt evicted = { .in_used_cage = true, .evicted = true };
	unsigned n = fail_in_supervisor(evicted, 35);

	(void)state;
	assert_in_range(n, 50, CALLS_MAX - 1);
	expect_a_good_cell("call", n);
}

static void whichever_call_fails_in_the_place_of_a_fork_nothing_is_left(void **state)
{
	const struct attempt unforked = { .unforked = true };
	unsigned n = fail_in_supervisor(unforked, 70);

	(void)state;
	assert_in_range(n, 90, CALLS_MAX - 1);
	expect_a_good_cell("call", n);
}

static void whichever_call_fails_before_a_larger_program_nothing_is_left(void **state)
{
	const struct attempt roomy = { .roomy = true };
	unsigned n = fail_in_supervisor(roomy, 70);

	(void)state;
	expect_a_good_cell("call", n);
}

static void a_cell_with_a_network_stands_runs_and_leaves_nothing(void **state)
{
	(void)state;
	assert_int_equal(try_in_child(&networked), 0);
	if (!report->stood || report->leaked)
		fail_msg("stood %d, leaked %d: %s", report->stood, report->leaked, report->fault);
	assert_int_equal(count_leaves(), 0);
}

static void whichever_call_fails_of_a_cell_with_a_network_nothing_is_left(void **state)
{
	unsigned n = fail_in_supervisor(networked, 70);

	(void)state;
	assert_in_range(n, 90, CALLS_MAX - 1);
	expect_a_good_cell("call", n);
}

static int openat_without_tun(int dir_fd, const char *path, int flags, mode_t mode)
{
	return strcmp(path, "/dev/net/tun") == 0 ? -ENOENT : real_openat(dir_fd, path, flags, mode);
}

static void a_host_without_tun_devices_is_told_what_may_bring_them(void **state)
{
	(void)state;
	real_openat = sys.openat;
	sys.openat = openat_without_tun;
	assert_int_equal(try_in_child(&networked), 0);
	sys.openat = real_openat;
	assert_false(report->stood || report->leaked);
	assert_non_null(strstr(report->fault, "`modprobe tun` may bring it"));
}

/* `which` of `a` goes up from 1. Returns how many of them there are. */
static unsigned fail_each(struct attempt *a, unsigned *which)
{
	for (*which = 1; *which < CALLS_MAX; ++*which) {
		assert_int_equal(try_in_child(a), 0);
		if (!report->reached)
			break;
		if (report->stood || report->leaked || report->fault[0] == '\0')
			fail_msg("%u failed: stood %d, leaked %d, \"%s\"", *which, report->stood,
				report->leaked, report->fault);
		assert_int_equal(count_leaves(), 0);
	}
	expect_a_good_cell("what was not sent or made", *which);
	return *which - 1;
}

static void whichever_message_cannot_be_sent_the_program_does_not_run(void **state)
{
	struct attempt first = good, again = good_again, with_tun = networked;
	unsigned n;

	(void)state;
	/* BUILD and each MOUNT; JOIN, RENEW, the writable mounts, ENTER; START. */
	n = fail_each(&first, &first.unsent);
	assert_in_range(n, 10, CALLS_MAX - 2);
	assert_int_equal(fail_each(&with_tun, &with_tun.unsent), n + 1);
	assert_in_range(fail_each(&again, &again.unsent), 4, CALLS_MAX - 2);
}

static void without_a_channel_there_is_no_cell(void **state)
{
	struct attempt a = good;

	(void)state;
	assert_int_equal(fail_each(&a, &a.unpaired), 2);
}

static void what_init_has_said_counts_more_than_what_could_not_be_sent_to_it(void **state)
{
	static const struct cell any;

	(void)state;
	use_box(1, 0, EIO);
	await_init_of = &any;
	assert_int_equal(try_in_child(&good), 0);
	await_init_of = NULL;
	use_box(0, 0, 0);
	assert_false(report->stood || report->leaked);
	if (!strstr(report->fault, "Input/output error"))
		fail_msg("%s", report->fault);
}

/* A failed close() is none: so many of them in a row are the end. */
#define STOOD_MAX 4

static void try_in_box(uint32_t role, unsigned nth, const struct attempt *a, const char *name)
{
	use_box(role, nth, EIO);
	assert_int_equal(try_in_child(a), 0);
	if (report->leaked)
		fail_msg("%s call %u failed and something is left", name, nth);
	if (!report->stood && report->fault[0] == '\0')
		fail_msg("%s call %u failed and nothing was said", name, nth);
	assert_int_equal(count_leaves(), 0);
}

static void fail_in_box(uint32_t role, const struct attempt *a, const char *name, unsigned at_least)
{
	unsigned n, failed = 0, stood = 0;

	for (n = 0; n < CALLS_MAX && stood < STOOD_MAX; n++) {
		try_in_box(role, n, a, name);
		stood = report->stood ? stood + 1 : 0;
		failed += !report->stood;
	}
	assert_true(n < CALLS_MAX);
	assert_true(failed >= at_least);
	use_box(0, 0, 0);
	expect_a_good_cell(name, n);
}

static void whichever_call_of_init_fails_the_cell_does_not_stand(void **state)
{
	(void)state;
	fail_in_box(1, &good, "init", 200);
}

/* Those of which its interface is made, after its mounts: a socket of IPv4, address, network, MTU, up, route;
 * a socket of IPv6, and where the kernel has that number, address and route. */
static void whichever_call_of_init_fails_the_network_does_not_stand(void **state)
{
	cleanup_fd int ipv6 = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	unsigned n = 60, failed = 0;

	(void)state;
	for (bool is_network = false; n < CALLS_MAX && (failed == 0 || is_network); n++) {
		try_in_box(1, n, &networked, "init");
		is_network = strstr(report->fault, "init: network: ") != NULL;
		failed += is_network;
	}
	assert_in_range(failed, ipv6 >= 0 ? 10 : 8, 11);
	use_box(0, 0, 0);
	expect_a_good_cell("init", n);
}

static void whichever_call_of_enter_fails_the_program_does_not_run(void **state)
{
	(void)state;
	fail_in_box(2, &good, "enter", 200);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cell_stands_runs_and_leaves_nothing),
		cmocka_unit_test(whichever_call_of_the_supervisor_fails_nothing_is_left),
		cmocka_unit_test(a_used_cage_serves_another_program_and_leaves_nothing),
		cmocka_unit_test(without_ns_last_pid_a_cage_serves_once),
		cmocka_unit_test(a_used_cage_whose_numbering_cannot_begin_anew_takes_no_program),
		cmocka_unit_test(a_cage_that_is_being_removed_is_not_kept),
		cmocka_unit_test(whichever_call_fails_in_a_used_cage_nothing_is_left),
		cmocka_unit_test(whichever_call_fails_after_an_eviction_nothing_is_left),
		cmocka_unit_test(whichever_call_fails_in_the_place_of_a_fork_nothing_is_left),
		cmocka_unit_test(whichever_call_fails_before_a_larger_program_nothing_is_left),
		cmocka_unit_test(a_cell_with_a_network_stands_runs_and_leaves_nothing),
		cmocka_unit_test(whichever_call_fails_of_a_cell_with_a_network_nothing_is_left),
		cmocka_unit_test(a_host_without_tun_devices_is_told_what_may_bring_them),
		cmocka_unit_test(whichever_message_cannot_be_sent_the_program_does_not_run),
		cmocka_unit_test(without_a_channel_there_is_no_cell),
		cmocka_unit_test(what_init_has_said_counts_more_than_what_could_not_be_sent_to_it),
		cmocka_unit_test(whichever_call_of_init_fails_the_cell_does_not_stand),
		cmocka_unit_test(whichever_call_of_init_fails_the_network_does_not_stand),
		cmocka_unit_test(whichever_call_of_enter_fails_the_program_does_not_run),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
