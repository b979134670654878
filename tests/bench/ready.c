#include "client.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_NS    3000000ull /* between two looks */
#define STILL_WANT 2          /* looks in a row that see the same */
#define GIVE_UP_NS 20000000000ull

struct look {
	unsigned cells;
	uint64_t sum; /* pids and the nanoseconds that they have run: changes with either */
};

static size_t read_at(int dir_fd, const char *path, char *bytes, size_t size)
{
	int fd = openat(dir_fd, path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, bytes, size - 1);

	if (fd >= 0)
		close(fd);
	bytes[n < 0 ? 0 : n] = '\0';
	return n < 0 ? 0 : (size_t)n;
}

static void add_process(struct look *l, unsigned long pid)
{
	char path[64], text[128];

	snprintf(path, sizeof(path), "/proc/%lu/schedstat", pid);
	read_at(AT_FDCWD, path, text, sizeof(text));
	l->sum += pid * 1000003 + strtoull(text, NULL, 10);
}

static struct look look(DIR *dir)
{
	struct look l = { 0 };
	struct dirent *e;

	rewinddir(dir);
	while ((e = readdir(dir))) {
		char path[300], pids[512], *at = pids, *end;

		if (e->d_name[0] != 'c' || strspn(e->d_name + 1, "0123456789") == 0)
			continue;
		snprintf(path, sizeof(path), "%s/cgroup.procs", e->d_name);
		if (read_at(dirfd(dir), path, pids, sizeof(pids)) == 0)
			continue;
		l.cells++;
		for (unsigned long pid; (pid = strtoul(at, &end, 10)) > 0; at = end)
			add_process(&l, pid);
	}
	return l;
}

/* The supervisor does not tell how many cells are ready; the kernel does, from outside, and
 * without waking anybody who is being measured. */
bool ready_wait(const char *dir, unsigned cells)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	uint64_t end = now_ns() + GIVE_UP_NS;
	struct look before = { 0 };
	unsigned still = 0;
	DIR *d = opendir(dir);

	while (d && still < STILL_WANT && now_ns() < end) {
		struct look l = look(d);

		still = l.cells >= cells && l.sum == before.sum ? still + 1 : 0;
		before = l;
		nanosleep(&pause, NULL);
	}
	if (d)
		closedir(d);
	return still >= STILL_WANT;
}
