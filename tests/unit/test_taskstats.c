/* Exit records: what is read out of one, and whether the kernel says in it what wait4() says. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "base/io.h"
#include "kernel/sys.h"
#include "kernel/taskstats.h"
#include "tests/lib/flaky.h"
#include "wire/cell.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/acct.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FAMILY 0x1234
#define PARENT 77
#define CHILD  4711
#define ROOM   4096

/* ---- Messages made by hand ---- */

struct message {
	_Alignas(8) unsigned char bytes[ROOM];
	size_t len;
};

static size_t put_attr(unsigned char *at, uint16_t type, const void *payload, size_t len)
{
	struct nlattr a = { (uint16_t)(NLA_HDRLEN + len), type };

	memcpy(at, &a, sizeof(a));
	memcpy(at + NLA_HDRLEN, payload, len);
	return NLA_ALIGN(NLA_HDRLEN + len);
}

static size_t put_half(unsigned char *at, uint16_t type, uint32_t pid, const struct taskstats *s)
{
	unsigned char inner[ROOM / 2];
	size_t n = put_attr(inner,
		type == TASKSTATS_TYPE_AGGR_PID ? TASKSTATS_TYPE_PID : TASKSTATS_TYPE_TGID, &pid,
		sizeof(pid));

	n += put_attr(inner + n, TASKSTATS_TYPE_STATS, s, sizeof(*s));
	return put_attr(at, type, inner, n);
}

static struct taskstats usual(void)
{
	return (struct taskstats){
		.version = 13,
		.ac_exitcode = 7 << 8,
		.ac_flag = AGROUP,
		.ac_pid = CHILD,
		.ac_tgid = CHILD,
		.ac_ppid = PARENT,
		.ac_minflt = 11,
		.ac_majflt = 2,
	};
}

static void make(struct message *m, const struct taskstats *s, bool group)
{
	struct genlmsghdr genl = { .cmd = TASKSTATS_CMD_NEW, .version = 1 };
	struct nlmsghdr head = { .nlmsg_type = FAMILY };

	memset(m, 0, sizeof(*m));
	m->len = NLMSG_HDRLEN + GENL_HDRLEN;
	m->len += put_half(m->bytes + m->len, TASKSTATS_TYPE_AGGR_PID, CHILD, s);
	if (group)
		m->len += put_half(m->bytes + m->len, TASKSTATS_TYPE_AGGR_TGID, CHILD, s);
	head.nlmsg_len = (uint32_t)m->len;
	memcpy(m->bytes, &head, sizeof(head));
	memcpy(m->bytes + NLMSG_HDRLEN, &genl, sizeof(genl));
}

static int parse(const struct message *m, struct taskstats_exit *ret)
{
	return taskstats_parse(m->bytes, m->len, FAMILY, PARENT, ret);
}

static int parse_stats(const struct taskstats *s)
{
	struct taskstats_exit e;
	struct message m;

	make(&m, s, false);
	return parse(&m, &e);
}

static void a_record_gives_number_status_and_faults(void **state)
{
	struct taskstats s = usual();
	struct taskstats_exit e;
	struct message m;

	(void)state;
	make(&m, &s, false);
	assert_int_equal(parse(&m, &e), 1);
	assert_int_equal(e.pid, CHILD);
	assert_int_equal(e.status, 7 << 8);
	assert_int_equal(e.minor_faults, 11);
	assert_int_equal(e.major_faults, 2);
	assert_false(e.had_threads || e.told);
	memcpy(s.ac_comm, CELL_TOLD_NAME, sizeof(CELL_TOLD_NAME));
	make(&m, &s, true);
	assert_int_equal(parse(&m, &e), 1);
	assert_true(e.had_threads && e.told);
}

/* At the end of a page that cannot be read on, so that a byte too many is a crash. */
static void a_record_that_is_cut_off_is_refused_at_every_length(void **state)
{
	unsigned char *pages =
		mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct taskstats s = usual();
	struct taskstats_exit e;
	struct message m;

	(void)state;
	assert_true(pages != MAP_FAILED && mprotect(pages + ROOM, ROOM, PROT_NONE) == 0);
	make(&m, &s, true);
	for (size_t len = 0; len < m.len; len++) {
		unsigned char *at = pages + ROOM - len;

		memcpy(at, m.bytes, len);
		assert_int_equal(taskstats_parse(at, len, FAMILY, PARENT, &e), -EBADMSG);
		/* The same with a header that claims no more than there is. */
		if (len < NLMSG_HDRLEN)
			continue;
		memcpy(at, &(uint32_t){ (uint32_t)len }, sizeof(uint32_t));
		assert_true(taskstats_parse(at, len, FAMILY, PARENT, &e) != 1 ||
			    (e.pid == CHILD && e.status == 7 << 8));
	}
	(void)munmap(pages, 2 * ROOM);
}

static void no_byte_that_is_changed_leads_out_of_the_message(void **state)
{
	unsigned char *pages =
		mmap(NULL, 2 * ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct taskstats s = usual();
	struct taskstats_exit e;
	struct message m;
	unsigned seed = 1;

	(void)state;
	assert_true(pages != MAP_FAILED && mprotect(pages + ROOM, ROOM, PROT_NONE) == 0);
	make(&m, &s, true);
	for (unsigned i = 0; i < 200000; i++) {
		unsigned char *at = pages + ROOM - m.len;

		memcpy(at, m.bytes, m.len);
		for (int k = 0; k < 3; k++)
			at[(unsigned)rand_r(&seed) % (k ? 48 : m.len)] =
				(unsigned char)rand_r(&seed);
		(void)taskstats_parse(at, m.len, FAMILY, PARENT, &e);
	}
	(void)munmap(pages, 2 * ROOM);
}

static void other_families_and_commands_are_passed_over(void **state)
{
	struct taskstats s = usual();
	struct taskstats_exit e;
	struct message m;

	(void)state;
	make(&m, &s, false);
	assert_int_equal(taskstats_parse(m.bytes, m.len, FAMILY + 1, PARENT, &e), 0);
	m.bytes[NLMSG_HDRLEN] = TASKSTATS_CMD_GET;
	assert_int_equal(parse(&m, &e), 0);
}

static void only_the_main_thread_as_the_last_one_of_a_child_counts(void **state)
{
	struct taskstats s = usual();

	(void)state;
	s.ac_flag = 0;
	assert_int_equal(parse_stats(&s), 0);
	s = usual();
	s.ac_tgid = CHILD - 1;
	assert_int_equal(parse_stats(&s), 0);
	s = usual();
	s.ac_ppid = PARENT + 1;
	assert_int_equal(parse_stats(&s), 0);
}

static void a_structure_that_is_laid_out_otherwise_is_refused(void **state)
{
	struct taskstats s = usual();

	(void)state;
	s.version = 11;
	assert_int_equal(parse_stats(&s), -EBADMSG);
	s.version = 15;
	assert_int_equal(parse_stats(&s), -EBADMSG);
	s.version = 17;
	assert_int_equal(parse_stats(&s), 1);
	s.ac_pid = CHILD + 1; /* and not where the attribute says */
	assert_int_equal(parse_stats(&s), -EBADMSG);
}

/* ---- Real ends ---- */

static struct taskstats_feed feed;

static int open_feed(void **state)
{
	struct fault f = { 0 };

	(void)state;
	if (taskstats_open(&feed, &f) < 0)
		fail_msg("%s", f.text);
	return 0;
}

static int close_feed(void **state)
{
	(void)state;
	taskstats_close(&feed);
	return 0;
}

static void *spin(void *arg)
{
	for (;;)
		(void)pause();
	return arg;
}

static void *end_all(void *arg)
{
	exit((int)(intptr_t)arg);
}

static void *end_later(void *arg)
{
	(void)usleep(20000);
	return arg;
}

/* When the main thread is dead, and waits for the others to be reaped with it. */
static void *end_after_main(void *arg)
{
	char path[64], text[512] = "";

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	while (!strstr(text, ") Z ")) {
		if (io_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
			text[0] = '\0';
	}
	return arg;
}

static void *exec_other(void *arg)
{
	(void)execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
	return arg;
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg) != 0)
		_exit(99);
}

static void end_0(void)
{
	_exit(0);
}
static void end_7(void)
{
	_exit(7);
}
static void end_255(void)
{
	_exit(255);
}
static void end_by_the_bare_call(void)
{
	(void)syscall(SYS_exit, 5);
}
static void end_by_kill(void)
{
	(void)raise(SIGKILL);
}
static void end_by_term(void)
{
	(void)raise(SIGTERM);
}
static void end_with_a_core(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	(void)setrlimit(RLIMIT_CORE, &all);
	(void)signal(SIGABRT, SIG_DFL);
	abort();
}
static void end_without_a_core(void)
{
	const struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(SIGSEGV, SIG_DFL);
	(void)raise(SIGSEGV);
}
static void end_with_a_thread_alive(void)
{
	start(spin, NULL);
	exit(3);
}
static void end_by_another_thread(void)
{
	start(end_all, (void *)(intptr_t)6);
	(void)spin(NULL);
}
static void end_of_main_before_the_others(void)
{
	start(end_after_main, NULL);
	pthread_exit(NULL);
}
static void end_after_the_others(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, end_later, NULL) == 0)
		(void)pthread_join(t, NULL);
	_exit(8);
}
static void end_after_an_exec_by_another_thread(void)
{
	start(exec_other, NULL);
	(void)spin(NULL);
}
static void end_after_a_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(1);
	(void)waitpid(pid, NULL, 0);
	_exit(4);
}
static void end_after_a_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(1);
	_exit(10); /* the child is dead, and nobody's but init's */
}

enum told {
	ALWAYS, /* there is a record */
	MAYBE,  /* which thread is the last is chance */
	NEVER
};

static const struct {
	const char *name;
	void (*run)(void);
	enum told told;
	bool threads;
} ends[] = {
	{ "0", end_0, ALWAYS, false },
	{ "7", end_7, ALWAYS, false },
	{ "255", end_255, ALWAYS, false },
	{ "bare exit", end_by_the_bare_call, ALWAYS, false },
	{ "SIGKILL", end_by_kill, ALWAYS, false },
	{ "SIGTERM", end_by_term, ALWAYS, false },
	{ "core", end_with_a_core, ALWAYS, false },
	{ "no core", end_without_a_core, ALWAYS, false },
	{ "thread alive", end_with_a_thread_alive, MAYBE, true },
	{ "by another thread", end_by_another_thread, MAYBE, true },
	{ "main first", end_of_main_before_the_others, NEVER, true },
	{ "main last", end_after_the_others, ALWAYS, true },
	{ "exec by another thread", end_after_an_exec_by_another_thread, ALWAYS, true },
	{ "after a child", end_after_a_child, ALWAYS, false },
	{ "after a vfork", end_after_a_vfork, ALWAYS, false },
};

/* The end of `pid`, waited for: then its record has been sent. */
static int reap(pid_t pid, struct rusage *ret_usage)
{
	int status;

	assert_int_equal(wait4(pid, &status, 0, ret_usage), pid);
	return status;
}

static pid_t run(void (*program)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		program();
		_exit(98);
	}
	assert_true(pid > 0);
	return pid;
}

static void remove_all(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	assert_non_null(dir);
	while ((e = readdir(dir)))
		(void)unlinkat(dirfd(dir), e->d_name, 0);
	(void)closedir(dir);
	assert_int_equal(rmdir(path), 0);
}

static void the_record_of_an_end_says_what_wait4_says(void **state)
{
	char dir[] = "/tmp/taskstats.XXXXXX", here[ROOM];

	(void)state;
	assert_non_null(getcwd(here, sizeof(here)));
	assert_non_null(mkdtemp(dir)); /* for the core */
	assert_int_equal(chdir(dir), 0);
	for (unsigned i = 0; i < 20 * sizeof(ends) / sizeof(ends[0]); i++) {
		unsigned k = i % (sizeof(ends) / sizeof(ends[0]));
		struct taskstats_exit e = { .pid = 0 };
		pid_t pid = run(ends[k].run);
		struct rusage usage;
		int status = reap(pid, &usage), r = taskstats_next(&feed, &e);

		if ((ends[k].told == ALWAYS && r != 1) || (ends[k].told == NEVER && r != 0))
			fail_msg("%s: %d", ends[k].name, r);
		if (r != 1)
			continue;
		if (e.pid != pid || e.status != status || e.had_threads != ends[k].threads)
			fail_msg("%s: %#x, wait4 says %#x", ends[k].name, e.status, status);
		assert_int_equal(taskstats_next(&feed, &e), 0);
	}
	assert_int_equal(chdir(here), 0);
	remove_all(dir);
}

static void the_faults_of_awaited_children_are_added_as_wait4_does(void **state)
{
	struct taskstats_exit e;
	struct rusage usage;
	siginfo_t info;
	pid_t pid = run(end_after_a_child);
	long alone;

	(void)state;
	/* Dead, but not reaped. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(taskstats_next(&feed, &e), 1);
	alone = (long)e.minor_faults;
	assert_int_equal(taskstats_add_children(&e), 0);
	(void)reap(pid, &usage);
	assert_true((long)e.minor_faults > alone);
	/* The end itself can meet a page or two after the record. */
	assert_in_range(usage.ru_minflt - (long)e.minor_faults, 0, 2);
	assert_int_equal(usage.ru_majflt, e.major_faults);
	assert_int_equal(taskstats_add_children(&e), -ESRCH);
}

static void a_process_that_has_its_memory_is_not_looked_into(void **state)
{
	struct taskstats_exit e = { .pid = getpid() };

	(void)state;
	assert_int_equal(taskstats_add_children(&e), -EBUSY);
}

/* Many ends of processes that are not the caller's children: not even a wake-up. */
static void the_ends_of_others_are_thrown_away_by_the_kernel(void **state)
{
	struct pollfd p = { .fd = feed.fd, .events = POLLIN };
	uint64_t heard = feed.heard, lost = feed.lost;
	struct taskstats_exit e;
	pid_t pid = fork();
	struct rusage usage;
	siginfo_t info;

	(void)state;
	if (pid == 0) {
		for (int i = 0; i < 2000; i++) {
			pid_t other = fork();

			if (other == 0)
				_exit(0);
			(void)waitpid(other, NULL, 0);
		}
		(void)raise(SIGSTOP);
		_exit(0);
	}
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOWAIT), 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	(void)kill(pid, SIGCONT);
	(void)reap(pid, &usage);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(taskstats_next(&feed, &e), 1);
	assert_int_equal(e.pid, pid);
	assert_int_equal(feed.heard, heard + 1);
	assert_int_equal(feed.lost, lost);
}

/* Root of the host can send to the socket what looks like a record; its port gives it away. */
static void what_another_process_sends_is_passed_over(void **state)
{
	struct sockaddr_nl to = { 0 };
	socklen_t len = sizeof(to);
	struct pollfd p = { .fd = feed.fd, .events = POLLIN };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_GENERIC);
	struct taskstats s = usual();
	struct taskstats_exit e;
	struct message m;

	(void)state;
	s.ac_ppid = (uint32_t)getpid();
	make(&m, &s, false);
	memcpy(m.bytes + offsetof(struct nlmsghdr, nlmsg_type), &feed.family, sizeof(feed.family));
	assert_int_equal(taskstats_parse(m.bytes, m.len, feed.family, getpid(), &e), 1);
	assert_int_equal(getsockname(feed.fd, (struct sockaddr *)&to, &len), 0);
	assert_int_equal(sendto(fd, m.bytes, m.len, 0, (struct sockaddr *)&to, sizeof(to)), m.len);
	assert_int_equal(poll(&p, 1, 0), 1); /* it is there */
	assert_int_equal(taskstats_next(&feed, &e), 0);
	(void)close(fd);
}

static void a_full_buffer_loses_records_and_nothing_else(void **state)
{
	const int little = 1, much = 1 << 20;
	uint64_t lost = feed.lost;
	struct taskstats_exit e;
	struct rusage usage;
	unsigned heard = 0;
	pid_t pid;

	(void)state;
	assert_int_equal(setsockopt(feed.fd, SOL_SOCKET, SO_RCVBUF, &little, sizeof(little)), 0);
	for (int i = 0; i < 50; i++)
		(void)reap(run(end_7), &usage);
	while (taskstats_next(&feed, &e) == 1) {
		assert_int_equal(e.status, 7 << 8);
		heard++;
	}
	assert_in_range(heard, 1, 49);
	assert_true(feed.lost > lost);
	assert_int_equal(setsockopt(feed.fd, SOL_SOCKET, SO_RCVBUFFORCE, &much, sizeof(much)), 0);
	pid = run(end_7);
	(void)reap(pid, &usage);
	assert_int_equal(taskstats_next(&feed, &e), 1);
	assert_int_equal(e.pid, pid);
}

static void what_comes_after_it_was_seen_empty_is_younger_than_that(void **state)
{
	struct taskstats_exit e;
	struct rusage usage;
	uint64_t seen;

	(void)state;
	assert_int_equal(taskstats_next(&feed, &e), 0);
	seen = feed.empty_ns;
	(void)reap(run(end_0), &usage);
	assert_int_equal(taskstats_next(&feed, &e), 1);
	assert_int_equal(feed.empty_ns, seen); /* a record says nothing about what came before */
	assert_int_equal(taskstats_next(&feed, &e), 0);
	assert_true(feed.empty_ns > seen);
}

static unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}

static void whichever_call_of_opening_fails_nothing_is_left(void **state)
{
	unsigned before = count_fds(), failed = 0, n = 0;

	(void)state;
	for (;; n++) {
		struct taskstats_feed t;
		struct fault f = { 0 };
		bool reached;
		int r;

		flaky_arm(n, EIO);
		r = taskstats_open(&t, &f);
		reached = flaky_disarm();
		if (r == 0)
			taskstats_close(&t);
		else
			assert_non_null(strstr(f.text, "taskstats: "));
		failed += r < 0;
		assert_int_equal(count_fds(), before);
		if (!reached)
			break;
	}
	/* Without the larger buffer it goes on. */
	assert_int_equal(failed, n - 1);
	assert_true(n > 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_gives_number_status_and_faults),
		cmocka_unit_test(a_record_that_is_cut_off_is_refused_at_every_length),
		cmocka_unit_test(no_byte_that_is_changed_leads_out_of_the_message),
		cmocka_unit_test(other_families_and_commands_are_passed_over),
		cmocka_unit_test(only_the_main_thread_as_the_last_one_of_a_child_counts),
		cmocka_unit_test(a_structure_that_is_laid_out_otherwise_is_refused),
		cmocka_unit_test_setup_teardown(
			the_record_of_an_end_says_what_wait4_says, open_feed, close_feed),
		cmocka_unit_test_setup_teardown(
			the_faults_of_awaited_children_are_added_as_wait4_does, open_feed,
			close_feed),
		cmocka_unit_test(a_process_that_has_its_memory_is_not_looked_into),
		cmocka_unit_test_setup_teardown(
			the_ends_of_others_are_thrown_away_by_the_kernel, open_feed, close_feed),
		cmocka_unit_test_setup_teardown(
			what_another_process_sends_is_passed_over, open_feed, close_feed),
		cmocka_unit_test_setup_teardown(
			a_full_buffer_loses_records_and_nothing_else, open_feed, close_feed),
		cmocka_unit_test_setup_teardown(
			what_comes_after_it_was_seen_empty_is_younger_than_that, open_feed,
			close_feed),
		cmocka_unit_test(whichever_call_of_opening_fails_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
