/* What is seen from outside of the cell: the kernel's files about its processes, its groups,
 * and what must not have been reached. Nothing in here asks the supervisor. */
#include "caller/selftest/host_files.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "wire/selftest.h"

#include <dirent.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <pwd.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define PEOPLE_BELOW 65536

/* Has it the program's stdin? The program has, and everything that it starts in here. */
static bool has_stdin(const struct selftest *s, pid_t pid)
{
	return s->cell.stdin_inode != 0 && host_pipe_at(pid, "0") == s->cell.stdin_inode;
}

/* ---- what is laid out ---- */

static int listen_tcp(struct selftest *s)
{
	struct sockaddr_in a = {
		.sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK),
	};
	socklen_t len = sizeof(a);

	s->tcp_fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->tcp_fd < 0 || bind(s->tcp_fd, (struct sockaddr *)&a, len) < 0 ||
		listen(s->tcp_fd, 4) < 0 || getsockname(s->tcp_fd, (struct sockaddr *)&a, &len) < 0)
		return -errno;
	s->tcp_port = ntohs(a.sin_port);
	return 0;
}

static int listen_abstract(struct selftest *s)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t len = strlen(s->abstract);

	memcpy(a.sun_path + 1, s->abstract, len);
	s->abstract_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->abstract_fd < 0 ||
		bind(s->abstract_fd, (struct sockaddr *)&a,
			(socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + len)) < 0 ||
		listen(s->abstract_fd, 4) < 0)
		return -errno;
	return 0;
}

/* A file that everybody on the host may read. */
static int make_canary(const struct selftest *s)
{
	cleanup_fd int fd = open(s->canary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	if (fd < 0)
		return -errno;
	return fchmod(fd, 0644) < 0 ? -errno : io_write_all(fd, "canary\n", 7);
}

int selftest_host_open(struct selftest *s)
{
	uint32_t number;
	int r;

	s->tcp_fd = s->abstract_fd = -1;
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -EIO;
	(void)snprintf(s->canary, sizeof(s->canary), SELFTEST_DIR "/canary.%08" PRIx32, number);
	(void)snprintf(s->abstract, sizeof(s->abstract), "glovebox-%08" PRIx32, number);
	r = make_canary(s);
	if (r == 0)
		r = listen_tcp(s);
	if (r == 0)
		r = listen_abstract(s);
	if (r < 0)
		error(0, -r, "prepare the self-test");
	return r;
}

void selftest_host_close(struct selftest *s)
{
	if (s->canary[0])
		(void)unlink(s->canary);
	drop_fd(&s->tcp_fd);
	drop_fd(&s->abstract_fd);
}

static const char *visitor(int fd)
{
	cleanup_fd int came = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

	return came >= 0 ? "somebody" : errno == EAGAIN ? "nobody" : "unknown";
}

void selftest_host_visitors(struct selftest *s)
{
	selftest_sayf(s, "seen.net.tcp", "%s", visitor(s->tcp_fd));
	selftest_sayf(s, "seen.net.abstract", "%s", visitor(s->abstract_fd));
}

/* ---- the program that stands still ---- */

static void look_at_namespaces(struct selftest *s)
{
	static const char *const names[] = { "user", "pid", "mnt", "ipc", "uts", "cgroup", "net" };

	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		char path[64], link[64], name[32];
		ssize_t n;

		(void)snprintf(path, sizeof(path), "/proc/%d/ns/%s", (int)s->cell.pid, names[i]);
		(void)snprintf(name, sizeof(name), "seen.ns.%s", names[i]);
		n = readlink(path, link, sizeof(link) - 1);
		link[n > 0 ? n : 0] = '\0';
		selftest_sayf(s, name, "%s", link);
	}
}

/* Two lines of one id each, none of them root's. */
static void look_at_map(struct selftest *s, const char *file, const char *name)
{
	unsigned long inside, outside, count, lines = 0;
	bool wide = false;
	char text[1024];

	host_read(s->cell.pid, file, text, sizeof(text));
	for (char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		char *end;

		inside = strtoul(p, &end, 10);
		outside = strtoul(end, &end, 10);
		count = strtoul(end, &end, 10);
		lines++;
		wide |= count != 1 || outside < PEOPLE_BELOW || inside > PEOPLE_BELOW;
	}
	selftest_sayf(s, name, "%s", lines == 2 && !wide ? "two ids" : "something else");
}

/* The one number that stands four times in the line; -1 when they differ. */
static int64_t one_id(const char *text, const char *key)
{
	char value[128], *end = value;
	long first, next;

	if (!host_field(text, key, value, sizeof(value)))
		return -1;
	first = strtol(value, &end, 10);
	for (int i = 0; i < 3; i++) {
		next = strtol(end, &end, 10);
		if (next != first)
			return -1;
	}
	return first;
}

/* Does a range of that file ("NAME:FIRST:COUNT") hold the id? */
static bool is_subordinate(const char *file, int64_t id)
{
	static char text[HOST_TEXT_MAX];
	ssize_t n = io_read_text(AT_FDCWD, file, text, sizeof(text));

	if (n < 0)
		return n != -ENOENT; /* what cannot be read may hold it */
	for (char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		size_t name = strcspn(p, ":\n");
		char *end = p + name;
		long first, count;

		if (*end != ':')
			continue;
		first = strtol(end + 1, &end, 10);
		count = *end == ':' ? strtol(end + 1, &end, 10) : 0;
		if (id >= first && id < first + count)
			return true;
	}
	return false;
}

static void look_at_ids(struct selftest *s, const char *status)
{
	static const char one[] = "one, nobody's", none[] = "nobody's";
	int64_t uid = one_id(status, "Uid"), gid = one_id(status, "Gid");

	selftest_sayf(s, "seen.uid", "%s",
		uid < 0                ? "several"
		: getpwuid((uid_t)uid) ? "an account's"
				       : one);
	selftest_sayf(s, "seen.gid", "%s",
		gid < 0                ? "several"
		: getgrgid((gid_t)gid) ? "a group's"
				       : one);
	selftest_sayf(
		s, "seen.subuid", "%s", is_subordinate("/etc/subuid", uid) ? "somebody's" : none);
	selftest_sayf(
		s, "seen.subgid", "%s", is_subordinate("/etc/subgid", gid) ? "somebody's" : none);
	selftest_sayf(
		s, "seen.range", "%s", uid >= PEOPLE_BELOW && gid >= PEOPLE_BELOW ? "yes" : "no");
}

static void look_at_status(struct selftest *s)
{
	static const char *const keys[] = { "CapInh", "CapPrm", "CapEff", "CapBnd", "NoNewPrivs",
		"Seccomp" };
	char status[8192], value[256], name[32];
	unsigned levels = 0;

	host_read(s->cell.pid, "status", status, sizeof(status));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		(void)host_field(status, keys[i], value, sizeof(value));
		(void)snprintf(name, sizeof(name), "seen.%s", keys[i]);
		selftest_sayf(s, name, "%s", value);
	}
	(void)host_field(status, "NSpid", value, sizeof(value));
	for (const char *p = value; *p; p += strspn(p, "\t "), levels++)
		p += strcspn(p, "\t ");
	selftest_sayf(s, "seen.pid.levels", "%u", levels);
	look_at_ids(s, status);
}

static void look_at_numbers(struct selftest *s)
{
	char text[8192], value[128], path[64];
	CLEANUP_DIR *dir = NULL;
	unsigned count = 0;

	host_read(s->cell.pid, "setgroups", text, sizeof(text));
	selftest_sayf(s, "seen.setgroups", "%.*s", (int)strcspn(text, "\n"), text);
	host_read(s->cell.pid, "oom_score_adj", text, sizeof(text));
	selftest_sayf(s, "seen.oom_score", "%.*s", (int)strcspn(text, "\n"), text);
	host_read(s->cell.pid, "limits", text, sizeof(text));
	(void)host_field(text, "Max open files", value, sizeof(value));
	selftest_sayf(s, "seen.nofile", "%.*s", (int)strcspn(value, " "), value);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)s->cell.pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		count++;
	selftest_sayf(s, "seen.descriptors", "%u", count >= 2 ? count - 2 : 0);
}

/* ---- mounts ---- */

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

#define WRITABLE_MAX 8

/* What a cell is made of: overlays that are read-only, its own tmpfs and proc, and covers. */
static bool is_own(const struct host_mount *m)
{
	return strcmp(m->type, "overlay") == 0 || strcmp(m->type, "tmpfs") == 0 ||
	       strcmp(m->type, "proc") == 0;
}

static void look_at_mounts(struct selftest *s)
{
	static char text[HOST_TEXT_MAX];
	char writable[WRITABLE_MAX][256] = { { 0 } }, list[SELFTEST_GOT_MAX] = "";
	const char *root = "none", *foreign = "own";
	unsigned count = 0;
	size_t at = 0;

	host_read(s->cell.pid, "mountinfo", text, sizeof(text));
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		struct host_mount m;

		if (!host_parse_mount(p, &m))
			continue;
		if (!is_own(&m))
			foreign = "foreign";
		if (strcmp(m.point, "/") == 0)
			root = strcmp(m.type, "overlay") == 0 && host_has_word(m.options, "ro")
				       ? "overlay ro"
				       : "something else";
		if (host_has_word(m.options, "rw") && count < WRITABLE_MAX)
			(void)snprintf(writable[count++], sizeof(writable[0]), "%s", m.point);
	}
	qsort(writable, count, sizeof(writable[0]), by_text);
	for (unsigned i = 0; i < count && at < sizeof(list); i++)
		at += (size_t)snprintf(
			list + at, sizeof(list) - at, "%s%s", i ? " " : "", writable[i]);
	selftest_sayf(s, "seen.overlay", "%s", root);
	selftest_sayf(s, "seen.writable", "%s", list);
	selftest_sayf(s, "seen.mounts", "%s", text[0] ? foreign : "unknown");
}

void selftest_host_find(struct selftest *s)
{
	s->cell.pid = host_find_program();
	s->cell.stdin_inode = s->cell.pid > 0 ? host_pipe_at(s->cell.pid, "0") : 0;
	if (s->cell.pid == 0)
		return;
	host_read(s->cell.pid, "cgroup", s->cell.groups, sizeof(s->cell.groups));
	host_find_tops(s);
}

/* A warm program is a fork of an interpreter that has the supervisor's module in it. */
static void look_at_start(struct selftest *s)
{
	static char text[1 << 20];
	bool warm;

	host_read(s->cell.pid, "maps", text, sizeof(text));
	warm = strstr(text, "_glovebox") != NULL;
	if (s->way == SELFTEST_WARM && !warm)
		selftest_impossible(s, "seen.start",
			"there is no warm interpreter: this was tried from cold twice");
	else
		selftest_sayf(s, "seen.start", "%s",
			!text[0]                            ? "unknown"
			: warm == (s->way == SELFTEST_WARM) ? "as meant"
							    : "otherwise");
}

void selftest_host_look(struct selftest *s)
{
	if (s->cell.pid == 0)
		return; /* everything that would be said now stays unsaid, which fails */
	look_at_start(s);
	look_at_namespaces(s);
	look_at_map(s, "uid_map", "seen.uid_map");
	look_at_map(s, "gid_map", "seen.gid_map");
	look_at_status(s);
	look_at_numbers(s);
	look_at_mounts(s);
	host_look_at_groups(s);
}

/* ---- what is left ---- */

/* What is dead and not reaped yet executes nothing, and has no descriptor either. */
unsigned selftest_host_living(const struct selftest *s)
{
	CLEANUP_DIR *dir = opendir("/proc");
	unsigned found = 0;
	pid_t pid;

	/* Not knowing must not pass for none. */
	if (!dir || s->cell.stdin_inode == 0)
		return 9999;
	while ((pid = host_next_pid(dir)) > 0)
		found += pid != getpid() && has_stdin(s, pid);
	return found;
}

unsigned selftest_host_left(const struct selftest *s)
{
	uint64_t until = clock_ns() + HOST_WAIT_MS * NS_PER_MS;
	unsigned left = selftest_host_living(s);

	while (left > 0 && clock_ns() < until) {
		(void)poll(NULL, 0, 5);
		left = selftest_host_living(s);
	}
	return left;
}
