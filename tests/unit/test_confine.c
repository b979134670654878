/* A process that has confined itself: what the host sees of it, and what it can still do.
 * Root. */
#include "unit.h"

#include "base/fault.h"
#include "kernel/confine.h"
#include "kernel/landlock.h"
#include "tests/lib/flaky.h"
#include "tests/lib/other_kernel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define TEST_UID    2000077
#define DEADLINE_MS 10000

static const struct confine_plan front = { CONFINE_FRONT, TEST_UID, 64, 0 };
static const struct confine_plan config = { CONFINE_CONFIG, TEST_UID, 16, 1 };

static const struct confine_plan gate = { .filter = CONFINE_GATE,
	.uid = TEST_UID,
	.open_files = 64,
	.forbid_new_files = 1,
	.keeps_network = 1 };

struct confined {
	pid_t pid;
	int fd; /* to the child: it reports, then runs `then` once a byte comes */
};

/* A child that confines itself, says so, and waits. `then` gets its end of the pair. */
static struct confined start(const struct confine_plan *plan, int (*then)(int fd))
{
	struct confined c;
	struct fault f = { 0 };
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (c.pid == 0) {
		const gid_t extra = 12345; /* something to lose */
		char go;

		(void)close(pair[0]);
		if (setgroups(1, &extra) < 0)
			_exit(96);
		(void)confine(plan, &f);
		if (send(pair[1], &f, sizeof(f), 0) != sizeof(f) || f.code)
			_exit(98);
		if (recv(pair[1], &go, 1, 0) != 1)
			_exit(97);
		_exit(then ? then(pair[1]) : 0);
	}
	(void)close(pair[1]);
	c.fd = pair[0];
	assert_int_equal(recv(c.fd, &f, sizeof(f), 0), sizeof(f));
	if (f.code)
		fail_msg("%s", f.text);
	return c;
}

static int finish(struct confined *c)
{
	int status;

	assert_int_equal(send(c->fd, "g", 1, 0), 1);
	assert_int_equal(waitpid(c->pid, &status, 0), c->pid);
	(void)close(c->fd);
	return status;
}

static void read_proc(pid_t pid, const char *name, char *text, size_t room)
{
	char path[64];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read(fd, text, room - 1);
	assert_true(n >= 0);
	text[n] = '\0';
	(void)close(fd);
}

/* ---- what the host sees ---- */

static void the_status_shows_that_nothing_is_left(void **state)
{
	static const char *const lines[] = {
		"\nUid:\t2000077\t2000077\t2000077\t2000077\n",
		"\nGid:\t2000077\t2000077\t2000077\t2000077\n",
		"\nGroups:\t \n",
		"\nCapInh:\t0000000000000000\n",
		"\nCapPrm:\t0000000000000000\n",
		"\nCapEff:\t0000000000000000\n",
		"\nCapBnd:\t0000000000000000\n",
		"\nCapAmb:\t0000000000000000\n",
		"\nNoNewPrivs:\t1\n",
		"\nSeccomp:\t2\n",
	};
	struct confined c = start(&front, NULL);
	char text[4096];

	(void)state;
	read_proc(c.pid, "status", text, sizeof(text));
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (!strstr(text, lines[i]))
			fail_msg("no line %s in %s", lines[i], text);
	}
	assert_int_equal(finish(&c), 0);
}

static void the_root_is_one_empty_read_only_mount(void **state)
{
	struct confined c = start(&front, NULL);
	char text[4096], path[64];
	int entries = 0;
	DIR *dir;

	(void)state;
	(void)snprintf(path, sizeof(path), "/proc/%d/root/", (int)c.pid);
	dir = opendir(path);
	assert_non_null(dir);
	while (readdir(dir))
		entries++;
	(void)closedir(dir);
	assert_int_equal(entries, 2); /* . and .. */

	read_proc(c.pid, "mountinfo", text, sizeof(text));
	assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* one line */
	assert_non_null(strstr(text, " / / ro,nosuid,nodev,noexec"));
	assert_int_equal(finish(&c), 0);
}

static bool has_our(const char *kind, pid_t pid)
{
	char path[64], mine[64] = "", its[64] = "";

	(void)snprintf(path, sizeof(path), "/proc/self/ns/%s", kind);
	assert_true(readlink(path, mine, sizeof(mine) - 1) > 0);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)pid, kind);
	assert_true(readlink(path, its, sizeof(its) - 1) > 0);
	return strcmp(mine, its) == 0;
}

static void its_namespaces_are_its_own(void **state)
{
	static const char *const kinds[] = { "mnt", "net", "ipc", "uts" };
	struct confined c = start(&front, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		assert_false(has_our(kinds[i], c.pid));
	assert_int_equal(finish(&c), 0);
}

static struct sockaddr_in listener; /* somebody's, in our network */

static int connects(int fd)
{
	int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)fd;
	if (s < 0 || connect(s, (struct sockaddr *)&listener, sizeof(listener)) < 0)
		return 1;
	return socket(AF_INET, SOCK_RAW, IPPROTO_ICMP) < 0 && errno == EPERM ? 0 : 2;
}

static int listens(int fd)
{
	(void)fd;
	return listen(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), 1) + 3;
}

static void a_gate_keeps_its_network_to_connect_from_and_nothing_else(void **state)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), status;
	socklen_t len = sizeof(listener);
	struct confined c;

	(void)state;
	listener.sin_family = AF_INET;
	listener.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(fd, (struct sockaddr *)&listener, len), 0);
	assert_int_equal(listen(fd, 1), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&listener, &len), 0);
	c = start(&gate, connects);
	assert_true(has_our("net", c.pid));
	assert_false(has_our("mnt", c.pid) || has_our("ipc", c.pid) || has_our("uts", c.pid));
	assert_int_equal(finish(&c), 0);
	c = start(&gate, listens);
	status = finish(&c);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
	(void)close(fd);
}

static void its_limits_are_lowered(void **state)
{
	static const char *const lines[] = {
		"\nMax file size             0                    0    ",
		"\nMax processes             0                    0    ",
		"\nMax open files            16                   16   ",
	};
	struct confined c = start(&config, NULL);
	char text[4096], core_line[64];
	struct rlimit core;

	(void)state;
	read_proc(c.pid, "limits", text, sizeof(text)); /* prlimit() wants CAP_SYS_RESOURCE */
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		if (!strstr(text, lines[i]))
			fail_msg("no line %s in %s", lines[i], text);
	}

	assert_int_equal(getrlimit(RLIMIT_CORE, &core), 0);
	(void)snprintf(core_line, sizeof(core_line), "\nMax core file size        %d ",
		core.rlim_max < 1 ? 0 : 1);
	assert_non_null(strstr(text, core_line));
	assert_int_equal(finish(&c), 0);
}

static int writes_file(int fd)
{
	(void)fd;
	return write(STDERR_FILENO, "x", 1) < 0 && errno == EFBIG ? 0 : 1;
}

static void a_log_that_is_a_file_loses_a_line_and_not_the_process(void **state)
{
	FILE *file = tmpfile();
	int saved = dup(STDERR_FILENO), status;
	struct confined c;

	(void)state;
	assert_non_null(file);
	assert_true(saved >= 0);
	assert_int_equal(dup2(fileno(file), STDERR_FILENO), STDERR_FILENO);
	c = start(&config, writes_file);
	(void)dup2(saved, STDERR_FILENO);
	(void)close(saved);
	(void)fclose(file);
	status = finish(&c);
	assert_int_equal(status, 0);
}

/* ---- what it can and cannot do ---- */

static int works(int fd)
{
	int memfd = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING), pipes[2];

	if (memfd < 0 || write(memfd, "x", 1) != 1)
		return 1;
	if (fcntl(memfd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return 2;
	if (pipe2(pipes, O_CLOEXEC | O_NONBLOCK) < 0)
		return 3;
	return send(fd, "x", 1, 0) == 1 ? 0 : 4;
}

static void the_front_can_do_its_work(void **state)
{
	struct confined c = start(&front, works);

	(void)state;
	assert_int_equal(finish(&c), 0);
}

static int opens(int fd)
{
	static const char *const paths[] = { "/", ".", "..", "/proc/self/status", "/dev/null",
		"/etc/passwd" };

	(void)fd;
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		if (open(paths[i], O_RDONLY) >= 0 || errno != ENOENT)
			return 1 + (int)i;
	}
	return 0;
}

static void no_file_can_be_opened(void **state)
{
	struct confined c = start(&front, opens);

	(void)state;
	assert_int_equal(finish(&c), 0);
}

static int lingers(int fd)
{
	const struct linger on = { .l_onoff = 1, .l_linger = 3600 };

	return setsockopt(fd, SOL_SOCKET, SO_LINGER, &on, sizeof(on)) < 0 && errno == EPERM ? 0 : 1;
}

/* Whoever closes such a socket waits for its peer: the front passes descriptors on. */
static void no_socket_can_be_made_to_block_its_last_close(void **state)
{
	struct confined c = start(&front, lingers);

	(void)state;
	assert_int_equal(finish(&c), 0);
}

static int makes_socket(int fd)
{
	(void)fd;
	return socket(AF_INET, SOCK_STREAM, 0);
}

static int forks(int fd)
{
	(void)fd;
	return fork();
}

static int executes(int fd)
{
	char *const argv[] = { NULL };

	(void)fd;
	return execve("/bin/true", argv, argv);
}

static int kills_parent(int fd)
{
	(void)fd;
	return kill(getppid(), 0);
}

static int maps_code(int fd)
{
	(void)fd;
	return mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) ==
	       MAP_FAILED;
}

static void attacks_end_the_process(void **state)
{
	static int (*const attacks[])(
		int) = { makes_socket, forks, executes, kills_parent, maps_code };
	static const struct confine_plan *const plans[] = { &front, &config };

	(void)state;
	for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++) {
		for (size_t k = 0; k < 2; k++) {
			struct confined c = start(plans[k], attacks[i]);
			int status = finish(&c);

			if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSYS)
				fail_msg("attack %zu ended with status %#x", i, status);
			assert_false(WCOREDUMP(status));
		}
	}
}

static pid_t victim_pid;

static int signals_victim(int fd)
{
	(void)fd;
	return syscall(SYS_tgkill, victim_pid, victim_pid, SIGABRT) < 0 && errno == EPERM ? 0 : 1;
}

/* The one signal that its filter knows, and another process of the same uid: Landlock. */
static void not_even_its_own_kind_can_be_signalled(void **state)
{
	struct confined victim, attacker;

	(void)state;
	victim = start(&front, NULL);
	victim_pid = victim.pid;
	attacker = start(&front, signals_victim);
	assert_int_equal(finish(&attacker), 0);
	assert_int_equal(finish(&victim), 0);
}

static int aborts(int fd)
{
	(void)fd;
	(void)signal(SIGSEGV, SIG_DFL); /* cmocka's */
	abort();
}

static void abort_is_seen_as_such(void **state)
{
	struct confined c = start(&front, aborts);
	int status = finish(&c);

	(void)state;
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_false(WCOREDUMP(status));
}

/* Its filter knows no signal at all: whatever the kernel's Landlock has, gates have one uid. */
static void a_gate_signals_no_other_and_its_abort_ends_it(void **state)
{
	struct confined victim, attacker;
	int status;

	(void)state;
	victim = start(&gate, NULL);
	victim_pid = victim.pid;
	attacker = start(&gate, signals_victim);
	assert_int_equal(finish(&attacker), 0);
	assert_int_equal(finish(&victim), 0);
	attacker = start(&gate, aborts);
	status = finish(&attacker);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
	assert_false(WCOREDUMP(status));
}

/* ---- what happens when things go wrong ---- */

static void uid_0_is_refused_before_anything_happens(void **state)
{
	static const struct confine_plan root = { CONFINE_FRONT, 0, 64, 0 };
	struct confine_plan nobody = root; /* the kernel takes -1 for "as it is" */
	struct fault f = { 0 };

	(void)state;
	nobody.uid = (uint32_t)-1;
	assert_int_equal(confine(&root, &f), -EINVAL);
	assert_int_equal(confine(&nobody, &f), -EINVAL);
	assert_int_equal(access("/proc/self/status", R_OK), 0);
}

/* A grandchild that confines itself with its parent's death as its own; the parent goes
 * once it has heard of it. */
static void start_orphan(int report_fd)
{
	char byte;
	int pair[2];
	pid_t pid;

	if (pipe(pair) < 0)
		_exit(1);
	pid = fork();
	if (pid == 0) {
		struct fault f = { 0 };
		struct pollfd never = { .fd = -1 };

		(void)close(pair[0]);
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (confine(&front, &f) < 0 || write(pair[1], "x", 1) != 1)
			_exit(1);
		(void)!write(report_fd, "x", 1);
		(void)poll(&never, 1, 2 * DEADLINE_MS);
		_exit(0);
	}
	(void)close(pair[1]);
	_exit(pid > 0 && read(pair[0], &byte, 1) == 1 ? 0 : 1);
}

static void it_still_dies_with_its_parent(void **state)
{
	int report[2], status;
	struct pollfd p;
	char byte;
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(report), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		start_orphan(report[1]);
	(void)close(report[1]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);

	/* End of file is the death of the last process that had the other end. */
	p = (struct pollfd){ .fd = report[0], .events = POLLIN };
	while (poll(&p, 1, DEADLINE_MS) == 1 && read(report[0], &byte, 1) > 0)
		continue;
	assert_int_equal(p.revents & POLLHUP, POLLHUP);
	(void)close(report[0]);
}

/* 0: call `n` failed and confine() said so. 1: there is no call `n`. Above: a mistake. */
static int fail_call(unsigned n)
{
	struct fault f = { 0 };
	int r;

	flaky_arm(n, EIO);
	r = confine(&front, &f);
	if (!flaky_disarm())
		return r == 0 ? 1 : 2;
	if (strcmp(flaky_name(), "close") == 0)
		return 0; /* made all the same */
	if (r == 0)
		return 3;
	return f.code == r && strncmp(f.text, "confine: ", 9) == 0 ? 0 : 4;
}

static void whichever_call_fails_confine_fails(void **state)
{
	unsigned n;
	int status = 0;

	(void)state;
	for (n = 0; WEXITSTATUS(status) == 0; n++) {
		pid_t pid = fork();

		assert_true(pid >= 0);
		if (pid == 0)
			_exit(fail_call(n));
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFEXITED(status));
		if (WEXITSTATUS(status) > 1)
			fail_msg("call %u fails: answer %d", n, WEXITSTATUS(status));
	}
	assert_true(n > 30);
}

static bool without_landlock(long number, const long args[6], long *ret)
{
	(void)args;
	*ret = -EOPNOTSUPP;
	return number == SYS_landlock_create_ruleset;
}

static void on_a_host_without_landlock_the_rest_is_enough(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct fault f = { 0 };

		other_kernel(without_landlock);
		_exit(confine(&front, &f) == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/* A Landlock that is there and refuses is no host without one. */
static void without_its_readable_directory_it_does_not_begin(void **state)
{
	struct confine_plan plan = config;
	int status;
	pid_t pid;

	(void)state;
	plan.readable_fd = 99; /* nothing is open there */
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct fault f = { 0 };
		int r = close(99) < 0 ? confine(&plan, &f) : 0;

		_exit(r < 0 && r != -EOPNOTSUPP && strstr(f.text, "landlock") ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_status_shows_that_nothing_is_left),
		cmocka_unit_test(the_root_is_one_empty_read_only_mount),
		cmocka_unit_test(its_namespaces_are_its_own),
		cmocka_unit_test(a_gate_keeps_its_network_to_connect_from_and_nothing_else),
		cmocka_unit_test(its_limits_are_lowered),
		cmocka_unit_test(a_log_that_is_a_file_loses_a_line_and_not_the_process),
		cmocka_unit_test(the_front_can_do_its_work),
		cmocka_unit_test(no_file_can_be_opened),
		cmocka_unit_test(no_socket_can_be_made_to_block_its_last_close),
		cmocka_unit_test(attacks_end_the_process),
		cmocka_unit_test(not_even_its_own_kind_can_be_signalled),
		cmocka_unit_test(abort_is_seen_as_such),
		cmocka_unit_test(a_gate_signals_no_other_and_its_abort_ends_it),
		cmocka_unit_test(uid_0_is_refused_before_anything_happens),
		cmocka_unit_test(on_a_host_without_landlock_the_rest_is_enough),
		cmocka_unit_test(without_its_readable_directory_it_does_not_begin),
		cmocka_unit_test(it_still_dies_with_its_parent),
		cmocka_unit_test(whichever_call_fails_confine_fails),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
