/* What is seen from outside of the cell: the kernel's files about its processes, its groups,
 * and what must not have been reached. Nothing in here asks the supervisor. */
#include "caller/selftest/selftest.h"

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

#define TEXT_MAX     65536
#define LEFT_WAIT_MS 2000 /* a process that was killed takes a moment to be gone */
#define PEOPLE_BELOW 65536

#define CLEANUP_DIR CLEANUP(close_dir) DIR

static void close_dir(DIR **dir)
{
	if (*dir)
		(void)closedir(*dir);
}

/* /proc/PID/NAME; "" when it cannot be read. */
static void read_of(pid_t pid, const char *name, char *text, size_t room)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	text[0] = '\0';
	if (io_read_text(AT_FDCWD, path, text, room) < 0)
		text[0] = '\0';
}

/* The value behind "\nKEY:" and blanks, up to the end of the line. */
static bool field(const char *text, const char *key, char *ret, size_t room)
{
	size_t len = strlen(key);

	for (const char *line = text; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (strncmp(line, key, len) != 0)
			continue;
		line += len + strspn(line + len, ": \t");
		(void)snprintf(ret, room, "%.*s", (int)strcspn(line, "\n"), line);
		return true;
	}
	ret[0] = '\0';
	return false;
}

static bool is_child(pid_t pid, pid_t parent)
{
	char text[8192], value[64];

	read_of(pid, "status", text, sizeof(text));
	return field(text, "PPid", value, sizeof(value)) && strtol(value, NULL, 10) == parent;
}

/* The pipe that is descriptor `fd` of that process; 0 when it is none. */
static uint64_t pipe_at(pid_t pid, const char *fd)
{
	char path[64], link[64];
	uint64_t inode = 0;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	return sscanf(link, "pipe:[%" SCNu64 "]", &inode) == 1 ? inode : 0;
}

/* Has it the program's stdin? The program has, and everything that it starts in here. */
static bool has_stdin(const struct selftest *s, pid_t pid)
{
	return s->cell.stdin_inode != 0 && pipe_at(pid, "0") == s->cell.stdin_inode;
}

/* Is it one of the pipes that the library has made in this process, to feed the program? */
static bool is_ours(uint64_t inode)
{
	CLEANUP_DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;

	while (inode != 0 && dir && (e = readdir(dir)))
		if (pipe_at(getpid(), e->d_name) == inode)
			return true;
	return false;
}

/* The next process of the list; 0 at its end. */
static pid_t next_pid(DIR *dir)
{
	const struct dirent *e;

	while ((e = readdir(dir))) {
		uint64_t n;

		if (io_parse_u64(e->d_name, &n) == 0)
			return (pid_t)n;
	}
	return 0;
}

pid_t selftest_host_supervisor(void)
{
	CLEANUP_DIR *dir = opendir("/proc");
	pid_t pid;

	while (dir && (pid = next_pid(dir)) > 0)
		if (is_child(pid, getpid()))
			return pid;
	return 0;
}

/* The supervisor's child that is fed by this process. */
static pid_t find_program(void)
{
	CLEANUP_DIR *dir = opendir("/proc");
	pid_t supervisor = selftest_host_supervisor(), pid;

	while (dir && supervisor > 0 && (pid = next_pid(dir)) > 0)
		if (is_child(pid, supervisor) && is_ours(pipe_at(pid, "0")))
			return pid;
	return 0;
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

	read_of(s->cell.pid, file, text, sizeof(text));
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

	if (!field(text, key, value, sizeof(value)))
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
	static char text[TEXT_MAX];
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

	read_of(s->cell.pid, "status", status, sizeof(status));
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		(void)field(status, keys[i], value, sizeof(value));
		(void)snprintf(name, sizeof(name), "seen.%s", keys[i]);
		selftest_sayf(s, name, "%s", value);
	}
	(void)field(status, "NSpid", value, sizeof(value));
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

	read_of(s->cell.pid, "setgroups", text, sizeof(text));
	selftest_sayf(s, "seen.setgroups", "%.*s", (int)strcspn(text, "\n"), text);
	read_of(s->cell.pid, "oom_score_adj", text, sizeof(text));
	selftest_sayf(s, "seen.oom_score", "%.*s", (int)strcspn(text, "\n"), text);
	read_of(s->cell.pid, "limits", text, sizeof(text));
	(void)field(text, "Max open files", value, sizeof(value));
	selftest_sayf(s, "seen.nofile", "%.*s", (int)strcspn(value, " "), value);
	(void)snprintf(path, sizeof(path), "/proc/%d/fd", (int)s->cell.pid);
	dir = opendir(path);
	while (dir && readdir(dir))
		count++;
	selftest_sayf(s, "seen.descriptors", "%u", count >= 2 ? count - 2 : 0);
}

/* ---- mounts ---- */

/* One line of mountinfo: "ID PARENT DEV ROOT POINT OPTIONS … - TYPE SOURCE SUPER". */
struct mount_line {
	char point[256], options[256], type[32], super[512];
};

static bool parse_mount(const char *line, struct mount_line *ret)
{
	const char *dash = strstr(line, " - ");
	size_t len = strcspn(line, "\n");

	*ret = (struct mount_line){ 0 };
	if (!dash || (size_t)(dash - line) >= len)
		return false;
	if (sscanf(line, "%*s %*s %*s %*s %255s %255s", ret->point, ret->options) != 2)
		return false;
	return sscanf(dash, " - %31s %*s %511s", ret->type, ret->super) == 2;
}

static bool has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == '\0'))
			return true;
	}
	return false;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

#define WRITABLE_MAX 8

/* What a cell is made of: overlays that are read-only, its own tmpfs and proc, and covers. */
static bool is_own(const struct mount_line *m)
{
	return strcmp(m->type, "overlay") == 0 || strcmp(m->type, "tmpfs") == 0 ||
	       strcmp(m->type, "proc") == 0;
}

static void look_at_mounts(struct selftest *s)
{
	static char text[TEXT_MAX];
	char writable[WRITABLE_MAX][256] = { { 0 } }, list[SELFTEST_GOT_MAX] = "";
	const char *root = "none", *foreign = "own";
	unsigned count = 0;
	size_t at = 0;

	read_of(s->cell.pid, "mountinfo", text, sizeof(text));
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		struct mount_line m;

		if (!parse_mount(p, &m))
			continue;
		if (!is_own(&m))
			foreign = "foreign";
		if (strcmp(m.point, "/") == 0)
			root = strcmp(m.type, "overlay") == 0 && has_word(m.options, "ro")
				       ? "overlay ro"
				       : "something else";
		if (has_word(m.options, "rw") && count < WRITABLE_MAX)
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

/* ---- groups ---- */

/* The path of the group in the hierarchy with that controller ("" for v2), from the lines
 * "N:CONTROLLERS:PATH" of /proc/PID/cgroup. */
static bool group_path(const char *groups, const char *controller, char *ret, size_t room)
{
	for (const char *p = groups; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		char controllers[256] = "", path[1024] = "";
		size_t number = strcspn(p, ":"), len;

		p += number + 1;
		len = strcspn(p, ":");
		(void)snprintf(controllers, sizeof(controllers), "%.*s", (int)len, p);
		p += len + 1;
		(void)snprintf(path, sizeof(path), "%.*s", (int)strcspn(p, "\n"), p);
		if (controller[0] ? has_word(controllers, controller) : controllers[0] == '\0') {
			(void)snprintf(ret, room, "%s", path);
			return true;
		}
	}
	return false;
}

/* Where the hierarchy with that controller ("" for v2) is mounted whole. */
static bool mounted_at(const char *controller, char *ret, size_t room)
{
	static char text[TEXT_MAX];

	if (io_read_text(AT_FDCWD, "/proc/self/mountinfo", text, sizeof(text)) < 0)
		return false;
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		struct mount_line m;

		if (!parse_mount(p, &m))
			continue;
		if (controller[0] ? strcmp(m.type, "cgroup") == 0 && has_word(m.super, controller)
				  : strcmp(m.type, "cgroup2") == 0) {
			(void)snprintf(ret, room, "%s", m.point);
			return true;
		}
	}
	return false;
}

/* The directory of the cell's group that has this controller, v1 or v2. */
static bool group_dir(const struct selftest *s, const char *controller, char *ret, size_t room)
{
	char mount[256], path[1024];

	if ((group_path(s->cell.groups, controller, path, sizeof(path)) &&
		    mounted_at(controller, mount, sizeof(mount))) ||
		(group_path(s->cell.groups, "", path, sizeof(path)) &&
			mounted_at("", mount, sizeof(mount)))) {
		(void)snprintf(ret, room, "%s%s", mount, path);
		return true;
	}
	return false;
}

/* The first number of a file of the group; false when there is none, as in "max" or "-1". */
static bool group_number(
	const struct selftest *s, const char *controller, const char *file, uint64_t *ret)
{
	char dir[1400], path[1500], text[128];

	if (!group_dir(s, controller, dir, sizeof(dir)))
		return false;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	if (io_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
		return false;
	text[strcspn(text, " \n")] = '\0';
	return io_parse_u64(text, ret) == 0;
}

static bool group_has(const struct selftest *s, const char *controller, const char *file)
{
	char dir[1400], path[1500];

	if (!group_dir(s, controller, dir, sizeof(dir)))
		return false;
	(void)snprintf(path, sizeof(path), "%s/%s", dir, file);
	return access(path, F_OK) == 0;
}

static bool host_has_swap(void)
{
	char text[4096];
	ssize_t n = io_read_text(AT_FDCWD, "/proc/swaps", text, sizeof(text));
	const char *line = n > 0 ? strchr(text, '\n') : NULL;

	return n == -EFBIG || (line && line[1] != '\0');
}

/* The kernel's "none" of v1 is a number beyond all memory. */
#define BOUND_MAX (UINT64_C(1) << 40)

static bool is_bounded(
	const struct selftest *s, const char *controller, const char *v1, const char *v2)
{
	uint64_t n;

	return (group_number(s, controller, v1, &n) || group_number(s, controller, v2, &n)) &&
	       n < BOUND_MAX;
}

static const char *swap_state(const struct selftest *s)
{
	static const char v1[] = "memory.memsw.limit_in_bytes", v2[] = "memory.swap.max";

	if (group_has(s, "memory", v1) || group_has(s, "memory", v2))
		return is_bounded(s, "memory", v1, v2) ? "bounded" : "unbounded";
	return host_has_swap() ? "not accounted" : "no swap";
}

static const char *bounded(bool is)
{
	return is ? "bounded" : "unbounded";
}

static void look_at_groups(struct selftest *s)
{
	char dir[256];

	selftest_sayf(s, "seen.memory", "%s",
		bounded(is_bounded(s, "memory", "memory.limit_in_bytes", "memory.max")));
	selftest_sayf(
		s, "seen.cpu", "%s", bounded(is_bounded(s, "cpu", "cpu.cfs_quota_us", "cpu.max")));
	selftest_sayf(s, "seen.pids", "%s", bounded(is_bounded(s, "pids", "pids.max", "pids.max")));
	selftest_sayf(s, "seen.swap", "%s", swap_state(s));
	if (!mounted_at("", dir, sizeof(dir)))
		selftest_impossible(
			s, "seen.kill", "cgroup2 is mounted where only the supervisor sees it");
	else
		selftest_sayf(s, "seen.kill", "%s",
			group_has(s, "", "cgroup.kill") ? "yes" : "no cgroup.kill");
}

/* The directory of the instance's group in each hierarchy. */
static void find_tops(struct selftest *s)
{
	static const char *const controllers[SELFTEST_TOPS] = { "", "memory", "cpu", "pids" };

	for (unsigned i = 0; i < SELFTEST_TOPS; i++) {
		struct selftest_top *top = &s->cell.tops[i];
		struct stat st;
		char *slash;

		top->path[0] = '\0';
		if (!group_dir(s, controllers[i], top->path, sizeof(top->path)))
			continue;
		slash = strrchr(top->path, '/');
		if (slash)
			*slash = '\0';
		if (!strstr(top->path, "/glovebox.") || stat(top->path, &st) < 0)
			top->path[0] = '\0';
		else
			top->inode = st.st_ino;
	}
}

void selftest_host_find(struct selftest *s)
{
	s->cell.pid = find_program();
	s->cell.stdin_inode = s->cell.pid > 0 ? pipe_at(s->cell.pid, "0") : 0;
	if (s->cell.pid == 0)
		return;
	read_of(s->cell.pid, "cgroup", s->cell.groups, sizeof(s->cell.groups));
	find_tops(s);
}

/* A warm program is a fork of an interpreter that has the supervisor's module in it. */
static void look_at_start(struct selftest *s)
{
	static char text[1 << 20];
	bool warm;

	read_of(s->cell.pid, "maps", text, sizeof(text));
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
	look_at_groups(s);
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
	while ((pid = next_pid(dir)) > 0)
		found += pid != getpid() && has_stdin(s, pid);
	return found;
}

unsigned selftest_host_left(const struct selftest *s)
{
	uint64_t until = clock_ns() + LEFT_WAIT_MS * NS_PER_MS;
	unsigned left = selftest_host_living(s);

	while (left > 0 && clock_ns() < until) {
		(void)poll(NULL, 0, 5);
		left = selftest_host_living(s);
	}
	return left;
}

static bool knows_tops(const struct selftest *s)
{
	for (unsigned i = 0; i < SELFTEST_TOPS; i++)
		if (s->cell.tops[i].path[0])
			return true;
	return false;
}

/* Is a process in that group? A file that cannot be read is none, as of one that has gone. */
static bool has_process(const char *dir)
{
	char path[1700], text[64];

	(void)snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	text[0] = '\0';
	return io_read_text(AT_FDCWD, path, text, sizeof(text)) == -EFBIG || text[0] != '\0';
}

static bool is_populated(const char *top)
{
	CLEANUP_DIR *dir = opendir(top);
	const struct dirent *e;
	char path[1700];

	if (has_process(top))
		return true;
	while (dir && (e = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "%s/%s", top, e->d_name);
		if (e->d_type == DT_DIR && e->d_name[0] != '.' && has_process(path))
			return true;
	}
	return false;
}

/* Groups of this instance that are still there, or of them those that hold a process. */
static unsigned count_tops(const struct selftest *s, bool populated)
{
	unsigned found = 0;

	for (unsigned i = 0; i < SELFTEST_TOPS; i++) {
		const struct selftest_top *top = &s->cell.tops[i];
		struct stat st;

		if (top->path[0] && stat(top->path, &st) == 0 && st.st_ino == top->inode)
			found += !populated || is_populated(top->path);
	}
	return found;
}

/* An empty group that the supervisor could not remove in time is swept by the next start. */
void selftest_host_end(struct selftest *s)
{
	uint64_t until = clock_ns() + LEFT_WAIT_MS * NS_PER_MS;

	selftest_sayf(
		s, "end.supervisor", "%s", selftest_host_supervisor() == 0 ? "gone" : "there");
	while (count_tops(s, true) > 0 && clock_ns() < until)
		(void)poll(NULL, 0, 5);
	selftest_sayf(s, "end.groups", "%s",
		!knows_tops(s)         ? "unknown"
		: count_tops(s, true)  ? "processes"
		: count_tops(s, false) ? "empty"
				       : "gone");
}
