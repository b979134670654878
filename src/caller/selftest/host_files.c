#include "caller/selftest/host_files.h"

#include "base/io.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void host_read(pid_t pid, const char *name, char *text, size_t room)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	text[0] = '\0';
	if (io_read_text(AT_FDCWD, path, text, room) < 0)
		text[0] = '\0';
}

bool host_field(const char *text, const char *key, char *ret, size_t room)
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

	host_read(pid, "status", text, sizeof(text));
	return host_field(text, "PPid", value, sizeof(value)) && strtol(value, NULL, 10) == parent;
}

uint64_t host_pipe_at(pid_t pid, const char *fd)
{
	char path[64], link[64];
	uint64_t inode = 0;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, fd);
	n = readlink(path, link, sizeof(link) - 1);
	link[n > 0 ? n : 0] = '\0';
	return sscanf(link, "pipe:[%" SCNu64 "]", &inode) == 1 ? inode : 0;
}

/* Is it one of the pipes that the library has made in this process, to feed the program? */
static bool is_ours(uint64_t inode)
{
	CLEANUP_DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;

	while (inode != 0 && dir && (e = readdir(dir)))
		if (host_pipe_at(getpid(), e->d_name) == inode)
			return true;
	return false;
}

pid_t host_next_pid(DIR *dir)
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

	while (dir && (pid = host_next_pid(dir)) > 0)
		if (is_child(pid, getpid()))
			return pid;
	return 0;
}

pid_t host_find_program(void)
{
	CLEANUP_DIR *dir = opendir("/proc");
	pid_t supervisor = selftest_host_supervisor(), pid;

	while (dir && supervisor > 0 && (pid = host_next_pid(dir)) > 0)
		if (is_child(pid, supervisor) && is_ours(host_pipe_at(pid, "0")))
			return pid;
	return 0;
}

bool host_parse_mount(const char *line, struct host_mount *ret)
{
	const char *dash = strstr(line, " - ");
	size_t len = strcspn(line, "\n");

	*ret = (struct host_mount){ 0 };
	if (!dash || (size_t)(dash - line) >= len)
		return false;
	if (sscanf(line, "%*s %*s %*s %*s %255s %255s", ret->point, ret->options) != 2)
		return false;
	return sscanf(dash, " - %31s %*s %511s", ret->type, ret->super) == 2;
}

bool host_has_word(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *p = list; p; p = strchr(p, ',')) {
		p += *p == ',';
		if (strncmp(p, word, len) == 0 && (p[len] == ',' || p[len] == '\0'))
			return true;
	}
	return false;
}
