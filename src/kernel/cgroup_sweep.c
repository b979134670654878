#include "kernel/cgroup_internal.h"

#include "base/clock.h"
#include "base/own.h"
#include "kernel/sys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#define RETRY_MS  2
#define SWEEP_MAX 64 /* instances in one sweep; the next start takes the rest */

typedef int visit_fn(int dir_fd, const char *name, void *ctx);

/* Call `visit` for each child group until it fails. */
static int each_child(int dir_fd, visit_fn *visit, void *ctx)
{
	cleanup_fd int fd = cgroup_open_dir(dir_fd, ".");
	const struct dirent *e;
	DIR *dir;
	int r = 0;

	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	(void)take_fd(&fd); /* closedir() closes it */
	while (r == 0 && (e = readdir(dir))) {
		if (e->d_type == DT_DIR && e->d_name[0] != '.')
			r = visit(dir_fd, e->d_name, ctx);
	}
	(void)closedir(dir);
	return r;
}

/* Our own process can only be in a leaf of this name. When in doubt it is. */
static bool may_hold_us(int dir_fd, const char *name)
{
	bool us = true, others;

	if (strcmp(name, CGROUP_SUPERVISOR) != 0)
		return false;
	return cgroup_read_procs(dir_fd, &us, &others) < 0 || us;
}

static int kill_child(int dir_fd, const char *name, void *ctx)
{
	cleanup_fd int fd = cgroup_open_dir(dir_fd, name);

	(void)ctx;
	if (fd >= 0 && !may_hold_us(fd, name))
		(void)cgroup_write(fd, "cgroup.kill", "1");
	return 0;
}

/* Wait until no process is left. On v1 there is nothing to wait for: every process of
 * ours is in the unified hierarchy too, and leaves all of them at the same moment. */
static void await_empty(int fd, uint64_t deadline_ns)
{
	cleanup_fd int events_fd = sys.openat(fd, "cgroup.events", O_RDONLY | O_CLOEXEC, 0);
	uint64_t populated = 1;

	while (events_fd >= 0 && cgroup_reread_key(events_fd, "populated", &populated) == 0 &&
		populated) {
		struct pollfd p = { .fd = events_fd, .events = POLLPRI };

		if (sys.poll(&p, 1, clock_ms_until(deadline_ns)) <= 0)
			return; /* also when it fails: again at once would be for ever */
	}
}

static int remove_dir(int dir_fd, const char *name, uint64_t deadline_ns)
{
	int r;

	/* A group whose last process is a zombie is busy a moment longer. */
	while ((r = sys.unlinkat(dir_fd, name, AT_REMOVEDIR)) == -EBUSY && clock_ns() < deadline_ns)
		(void)sys.poll(NULL, 0, RETRY_MS);
	return r == -ENOENT ? 0 : r;
}

static int remove_child(int dir_fd, const char *name, void *ctx)
{
	const uint64_t *deadline_ns = ctx;
	cleanup_fd int fd = cgroup_open_dir(dir_fd, name);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	if (may_hold_us(fd, name))
		return 0;
	await_empty(fd, *deadline_ns);
	return remove_dir(dir_fd, name, *deadline_ns);
}

int cgroup_empty_instance(int dir_fd, uint64_t deadline_ns)
{
	int r = each_child(dir_fd, kill_child, NULL);

	return r < 0 ? r : each_child(dir_fd, remove_child, &deadline_ns);
}

int cgroup_remove_instance(int base_fd, const char *name, uint64_t deadline_ns)
{
	cleanup_fd int fd = cgroup_open_dir(base_fd, name);

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	(void)cgroup_empty_instance(fd, deadline_ns);
	return remove_dir(base_fd, name, deadline_ns);
}

struct found {
	const struct cgroup_tree *t;
	bool (*is_dead)(unsigned number, void *ctx);
	void *ctx;
	unsigned numbers[SWEEP_MAX];
	unsigned count;
};

static int note_dead(int dir_fd, const char *name, void *ctx)
{
	struct found *found = ctx;
	unsigned number;

	(void)dir_fd;
	if (!cgroup_instance_number(name, &number) || strcmp(name, found->t->name) == 0)
		return 0;
	for (unsigned i = 0; i < found->count; i++) {
		if (found->numbers[i] == number)
			return 0;
	}
	if (found->count < SWEEP_MAX && found->is_dead(number, found->ctx))
		found->numbers[found->count++] = number;
	return 0;
}

int cgroup_sweep(
	const struct cgroup_tree *t, bool (*is_dead)(unsigned number, void *ctx), void *ctx)
{
	struct found found = { .t = t, .is_dead = is_dead, .ctx = ctx };
	uint64_t deadline_ns = clock_ns() + CGROUP_SWEEP_NS;
	bool gone[SWEEP_MAX];
	int swept = 0;

	for (unsigned i = 0; i < t->count; i++) {
		cleanup_fd int base_fd = cgroup_open_dir(t->h[i].dir_fd, "..");

		if (base_fd >= 0)
			(void)each_child(base_fd, note_dead, &found);
	}
	memset(gone, 1, sizeof(gone));
	for (unsigned i = 0; i < t->count; i++) {
		cleanup_fd int base_fd = cgroup_open_dir(t->h[i].dir_fd, "..");

		for (unsigned n = 0; base_fd >= 0 && n < found.count; n++) {
			char name[32];

			(void)snprintf(name, sizeof(name), CGROUP_PREFIX "%u", found.numbers[n]);
			if (cgroup_remove_instance(base_fd, name, deadline_ns) < 0)
				gone[n] = false;
		}
	}
	for (unsigned n = 0; n < found.count; n++)
		swept += gone[n];
	return swept;
}
