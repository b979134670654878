/* The cell's control groups, as the host sees them, and what is left of the instance's. */
#include "caller/selftest/host_files.h"

#include "base/clock.h"
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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
		if (controller[0] ? host_has_word(controllers, controller)
				  : controllers[0] == '\0') {
			(void)snprintf(ret, room, "%s", path);
			return true;
		}
	}
	return false;
}

/* Where the hierarchy with that controller ("" for v2) is mounted whole. */
static bool mounted_at(const char *controller, char *ret, size_t room)
{
	static char text[HOST_TEXT_MAX];

	if (io_read_text(AT_FDCWD, "/proc/self/mountinfo", text, sizeof(text)) < 0)
		return false;
	for (const char *p = text; *p; p += strcspn(p, "\n"), p += *p == '\n') {
		struct host_mount m;

		if (!host_parse_mount(p, &m))
			continue;
		if (controller[0] ? strcmp(m.type, "cgroup") == 0 &&
					    host_has_word(m.super, controller)
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

void host_look_at_groups(struct selftest *s)
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
void host_find_tops(struct selftest *s)
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
	uint64_t until = clock_ns() + HOST_WAIT_MS * NS_PER_MS;

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
