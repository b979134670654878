/* The front as the supervisor's child: where it listens, and what is left when something of that
 * fails. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/process.h"
#include "kernel/sys.h"
#include "priv/supervisor/front.h"
#include "tests/lib/flaky.h"
#include "tests/unit/api_settings.h"
#include "tests/unit/count_fds.h"
#include "wire/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS_MAX     64
#define PROGRAM_BYTES (1 << 20)

int __wrap_listen(int fd, int backlog);
int __real_listen(int fd, int backlog);
int __wrap_chmod(const char *path, mode_t mode);
int __real_chmod(const char *path, mode_t mode);
int __wrap_getsockname(int fd, struct sockaddr *ret, socklen_t *len);
int __real_getsockname(int fd, struct sockaddr *ret, socklen_t *len);
int __wrap_socket(int domain, int type, int protocol);
int __real_socket(int domain, int type, int protocol);
int __wrap_channel_pair(int ret_fds[2], int both_nonblocking);
int __real_channel_pair(int ret_fds[2], int both_nonblocking);

int __wrap_mkostemp64(char *template, int flags);
int __real_mkostemp64(char *template, int flags);

static unsigned stores; /* that have been made with a name */

int __wrap_mkostemp64(char *template, int flags)
{
	int fd = __real_mkostemp64(template, flags);

	stores += fd >= 0;
	return fd;
}

static const char *fails = ""; /* the name of the call that does, after so many that do not */
static unsigned good;
static char dir[64], path[100];
static struct settings settings;
static struct front front;

static bool fails_now(const char *name)
{
	if (strcmp(fails, name) != 0)
		return false;
	if (good > 0) {
		good--;
		return false;
	}
	errno = EADDRINUSE;
	return true;
}

int __wrap_listen(int fd, int backlog)
{
	return fails_now("listen") ? -1 : __real_listen(fd, backlog);
}

int __wrap_chmod(const char *at, mode_t mode)
{
	return fails_now("chmod") ? -1 : __real_chmod(at, mode);
}

int __wrap_getsockname(int fd, struct sockaddr *ret, socklen_t *len)
{
	return fails_now("getsockname") ? -1 : __real_getsockname(fd, ret, len);
}

int __wrap_socket(int domain, int type, int protocol)
{
	return fails_now("socket") ? -1 : __real_socket(domain, type, protocol);
}

int __wrap_channel_pair(int ret_fds[2], int both_nonblocking)
{
	return fails_now("channel_pair") ? -EMFILE : __real_channel_pair(ret_fds, both_nonblocking);
}

static int begin(void **state)
{
	(void)state;
	log_setup("test", LOG_LEVEL_ERR);
	(void)snprintf(dir, sizeof(dir), "/tmp/gbx-front-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(path, sizeof(path), "%s/s", dir);
	settings = api_settings;
	settings.listen = (struct listen_address){ .kind = LISTEN_UNIX };
	(void)snprintf(settings.listen.path, sizeof(settings.listen.path), "%s", path);
	fails = "";
	good = 0;
	front_clear(&front);
	return 0;
}

static int end(void **state)
{
	(void)state;
	front_unlisten(&front, &settings);
	assert_int_equal(rmdir(dir), 0); /* no file is left in it */
	return 0;
}

static void use_ip(uint32_t kind)
{
	settings.listen = (struct listen_address){ .kind = kind };
	assert_int_equal(inet_pton(kind == LISTEN_INET ? AF_INET : AF_INET6,
				 kind == LISTEN_INET ? "127.0.0.1" : "::1", settings.listen.ip),
		1);
}

static void a_port_of_its_own_is_told(void **state)
{
	char url[64], want[64];
	struct fault f = { 0 };

	(void)state;
	use_ip(LISTEN_INET);
	assert_int_equal(front_listen(&front, &settings, &f), 0);
	assert_true(front.port > 0);
	front_url(&front, &settings, url, sizeof(url));
	(void)snprintf(want, sizeof(want), "http://127.0.0.1:%u", front.port);
	assert_string_equal(url, want);
}

static void ipv6_is_listened_to_and_written_in_brackets(void **state)
{
	struct sockaddr_in6 bound;
	socklen_t len = sizeof(bound);
	char url[64], want[64];
	struct fault f = { 0 };
	int only = 0;

	(void)state;
	use_ip(LISTEN_INET6);
	if (front_listen(&front, &settings, &f) < 0)
		fail_msg("%s", f.text);
	assert_int_equal(__real_getsockname(front.listen_fd, (struct sockaddr *)&bound, &len), 0);
	assert_int_equal(ntohs(bound.sin6_port), front.port);
	len = sizeof(only);
	assert_int_equal(getsockopt(front.listen_fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, &len), 0);
	assert_int_equal(only, 1);
	front_url(&front, &settings, url, sizeof(url));
	(void)snprintf(want, sizeof(want), "http://[::1]:%u", front.port);
	assert_string_equal(url, want);
}

static void a_socket_file_is_roots_and_its_groups_and_goes_with_the_server(void **state)
{
	struct fault f = { 0 };
	struct stat st;

	(void)state;
	assert_int_equal(front_listen(&front, &settings, &f), 0);
	assert_int_equal(lstat(path, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0660);
	front_unlisten(&front, &settings);
	assert_int_equal(access(path, F_OK), -1);
}

static void where_listening_fails_no_socket_file_is_left(void **state)
{
	const char *const calls[] = { "socket", "chmod", "listen", "getsockname" };
	unsigned before = count_fds();

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		struct fault f = { 0 };

		fails = calls[i];
		assert_int_equal(front_listen(&front, &settings, &f), -EADDRINUSE);
		assert_non_null(strstr(f.text, path));
		assert_int_equal(front.listen_fd, -1);
		if (access(path, F_OK) == 0)
			fail_msg("%s failed, and %s is there", calls[i], path);
		assert_int_equal(count_fds(), before);
	}
	use_ip(LISTEN_INET);
	fails = "listen";
	assert_int_equal(front_listen(&front, &settings, &(struct fault){ 0 }), -EADDRINUSE);
	assert_int_equal(count_fds(), before);
}

static int bind_there(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = __real_socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	return fd;
}

static void a_folder_that_is_not_there_is_said_with_the_address(void **state)
{
	struct fault f = { 0 };

	(void)state;
	(void)snprintf(settings.listen.path, sizeof(settings.listen.path), "%s/none/s", dir);
	assert_int_equal(front_listen(&front, &settings, &f), -ENOENT);
	assert_non_null(strstr(f.text, "/none/s: No such file"));
}

static void a_file_that_a_dead_server_left_is_replaced(void **state)
{
	struct fault f = { 0 };

	(void)state;
	(void)close(bind_there());
	assert_int_equal(front_listen(&front, &settings, &f), 0);
}

static void what_somebody_else_has_there_is_left(void **state)
{
	cleanup_fd int other = bind_there();
	struct fault f = { 0 };
	int fd;

	(void)state;
	/* A server that lives, also when it has no room for another connection. */
	assert_int_equal(__real_listen(other, 1), 0);
	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(front_listen(&front, &settings, &f), -EADDRINUSE);
		assert_int_equal(access(path, F_OK), 0);
	}
	/* One that is dead, and no socket to find that out with. */
	drop_fd(&other);
	fails = "socket";
	good = 1;
	assert_int_equal(front_listen(&front, &settings, &f), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
	fails = "";
	/* Somebody's file. */
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	assert_int_equal(front_listen(&front, &settings, &f), -EADDRINUSE);
	assert_int_equal(unlink(path), 0);
}

static int small_program(void)
{
	static char bytes[PROGRAM_BYTES];
	cleanup_fd int from = open("/bin/true", O_RDONLY | O_CLOEXEC);
	ssize_t n = read(from, bytes, sizeof(bytes));
	struct fault f = { 0 };
	int fd = -1;

	assert_true(n > 0 && n < PROGRAM_BYTES);
	assert_int_equal(process_image("true", bytes, (size_t)n, &fd, &f), 0);
	return fd;
}

static void whichever_call_of_its_start_fails_no_front_is_left(void **state)
{
	cleanup_fd int image = small_program();
	unsigned before = count_fds(), failed = 0;

	(void)state;
	fails = "channel_pair";
	settings.artifact_store = 1 << 20;
	(void)snprintf(settings.artifact_dir, sizeof(settings.artifact_dir), "/tmp");
	for (unsigned n = 0; n < CALLS_MAX; n++) {
		struct fault f = { 0 };
		bool reached;
		int r;

		if (n > 0)
			fails = "";
		flaky_arm(n > 0 ? n - 1 : CALLS_MAX, EIO);
		r = front_start(&front, image, &settings, &f);
		reached = flaky_disarm();
		assert_true(r == 0 || f.text[0]);
		failed += r < 0;
		if (r == 0)
			front_end(&front);
		assert_int_equal(count_fds(), before);
		assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
		if (n > 0 && !reached)
			break;
	}
	/* Its channel; the pipe of its log; the child's pipe, clone3 and release. Without a file for
	 * what is kept of runs it starts all the same. */
	assert_int_equal(failed, 5);
}

static struct sys_ops real;
static int refused_code;

/* A file system that has no files without a name. */
static int without_tmpfile(int dir_fd, const char *at, int flags, mode_t mode)
{
	if ((flags & O_TMPFILE) == O_TMPFILE)
		return refused_code;
	return real.openat(dir_fd, at, flags, mode);
}

static void a_store_needs_no_file_system_with_files_without_a_name(void **state)
{
	cleanup_fd int image = small_program();
	const int codes[] = { -EOPNOTSUPP, -EISDIR };
	unsigned before = count_fds();

	(void)state;
	settings.artifact_store = 1 << 20;
	for (unsigned i = 0; i < 4; i++) {
		struct fault f = { 0 };

		/* In the end there is no such folder, and it starts all the same. */
		(void)snprintf(settings.artifact_dir, sizeof(settings.artifact_dir), "%s%s", dir,
			i < 2 ? "" : "/none");
		refused_code = codes[i % 2];
		real = sys;
		sys.openat = without_tmpfile;
		assert_int_equal(front_start(&front, image, &settings, &f), 0);
		sys = real;
		front_end(&front);
		assert_int_equal(stores, i < 2 ? i + 1 : 2);
		assert_int_equal(count_fds(), before);
	}
}

/* A front is there for long: none should be without a store for what passes in a moment. */
static void a_shortage_is_no_reason_to_be_without_a_store(void **state)
{
	cleanup_fd int image = small_program();
	const int codes[] = { -EMFILE, -ENFILE, -ENOMEM };
	unsigned before = count_fds();

	(void)state;
	settings.artifact_store = 1 << 20;
	(void)snprintf(settings.artifact_dir, sizeof(settings.artifact_dir), "%s", dir);
	for (unsigned i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		struct fault f = { 0 };

		refused_code = codes[i];
		real = sys;
		sys.openat = without_tmpfile;
		assert_int_equal(front_start(&front, image, &settings, &f), codes[i]);
		sys = real;
		assert_non_null(strstr(f.text, dir));
		assert_int_equal(count_fds(), before);
	}
}

/* A log whose other end is ours, with as much in it as it holds. */
static int fill_log(size_t bytes)
{
	static const char line[] =
		"lvl=info proc=front ev=x 0123456789012345678901234567890123456\n";
	int pair[2];

	assert_int_equal(pipe2(pair, O_CLOEXEC | O_NONBLOCK), 0);
	front.log_fd = pair[0];
	for (size_t n = 0; n < bytes && write(pair[1], line, sizeof(line) - 1) > 0;)
		n += sizeof(line) - 1;
	return pair[1];
}

static void an_empty_log_is_no_end_and_a_closed_one_is(void **state)
{
	int writer = fill_log(0);

	(void)state;
	assert_true(front_relay_log(&front)); /* EAGAIN */
	assert_int_equal(write(writer, "x\n", 2), 2);
	assert_true(front_relay_log(&front));
	(void)close(writer);
	assert_false(front_relay_log(&front));
	drop_fd(&front.log_fd);
	assert_false(front_relay_log(&front)); /* EBADF */
}

static void its_last_words_have_a_bound(void **state)
{
	int writer = fill_log(1 << 20);

	(void)state;
	front_end(&front); /* its end does not come: somebody holds the log open */
	assert_int_equal(front.log_fd, -1);
	front_end(&front); /* again: nothing */
	(void)close(writer);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_port_of_its_own_is_told),
		CASE(ipv6_is_listened_to_and_written_in_brackets),
		CASE(a_socket_file_is_roots_and_its_groups_and_goes_with_the_server),
		CASE(where_listening_fails_no_socket_file_is_left),
		CASE(a_folder_that_is_not_there_is_said_with_the_address),
		CASE(a_file_that_a_dead_server_left_is_replaced),
		CASE(what_somebody_else_has_there_is_left),
		CASE(whichever_call_of_its_start_fails_no_front_is_left),
		CASE(a_store_needs_no_file_system_with_files_without_a_name),
		CASE(a_shortage_is_no_reason_to_be_without_a_store),
		CASE(an_empty_log_is_no_end_and_a_closed_one_is),
		CASE(its_last_words_have_a_bound),
	};

	return cmocka_run_group_tests_name("supervisor_front", tests, NULL, NULL);
}
