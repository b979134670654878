/* A line for each group, the unified one first, as that is where processes are ended:
 *
 *     MADE /sys/fs/cgroup/memory/some/base/glovebox.3
 *
 * MADE is the number of parts before the last that the instance itself made.
 */
#include "kernel/cgroup_internal.h"

#include "base/own.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>

#define LINE_MAX_ (2 * CGROUP_PATH_MAX + 64)

static bool fits_in_a_line(const struct cgroup_hierarchy *h)
{
	/* Not a path: a mount that goes with its last descriptor. */
	return h->mount[0] == '/' && !strchr(h->mount, '\n') && !strchr(h->base, '\n');
}

void cgroup_record(const struct cgroup_tree *t, char ret[CGROUP_RECORD_MAX])
{
	size_t n = 0;

	ret[0] = '\0';
	for (unsigned i = 0; i < t->count; i++) {
		const struct cgroup_hierarchy *h = &t->h[i];
		const char *base = strcmp(h->base, "/") == 0 ? "" : h->base;

		if (fits_in_a_line(h) && n < CGROUP_RECORD_MAX - LINE_MAX_)
			n += (size_t)snprintf(ret + n, CGROUP_RECORD_MAX - n, "%u %s%s/%s\n",
				h->made, h->mount, base, t->name);
	}
}

static bool is_cgroup(int fd)
{
	struct statfs fs;

	return sys.fstatfs(fd, &fs) == 0 &&
	       (fs.f_type == CGROUP2_SUPER_MAGIC || fs.f_type == CGROUP_SUPER_MAGIC);
}

/* Cut the last part off `path`; what was cut, or NULL. */
static const char *cut_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (!slash || slash == path)
		return NULL;
	*slash = '\0';
	return slash + 1;
}

static int sweep_group(char *path, unsigned made, const char *expected)
{
	const char *name = cut_last(path);
	cleanup_fd int base_fd = -1;
	int r;

	if (!name || strcmp(name, expected) != 0)
		return 0;
	base_fd = cgroup_open_dir(AT_FDCWD, path);
	if (base_fd < 0)
		return base_fd == -ENOENT ? 0 : base_fd;
	if (!is_cgroup(base_fd))
		return 0;
	r = cgroup_remove_instance(base_fd, name, clock_ns() + CGROUP_SWEEP_NS);
	/* Another instance may be using them: then the record has to stay. It ends at the mount
	 * point at the latest, which is busy. */
	for (; r == 0 && made > 0; made--) {
		r = sys.unlinkat(AT_FDCWD, path, AT_REMOVEDIR);
		if (r == -ENOENT)
			r = 0;
		if (!cut_last(path))
			break;
	}
	return r;
}

int cgroup_sweep_record(const char *text, unsigned number)
{
	char expected[32];
	int first = 0;

	(void)snprintf(expected, sizeof(expected), CGROUP_PREFIX "%u", number);
	while (*text) {
		size_t len = strcspn(text, "\n");
		char line[LINE_MAX_], *path;
		unsigned long made;
		int r;

		/* A line without its end was not written to the end. */
		if (text[len] != '\n')
			break;
		(void)snprintf(line, sizeof(line), "%.*s", (int)len, text);
		text += len + 1;
		made = strtoul(line, &path, 10);
		if (len >= sizeof(line) || path == line || path[0] != ' ' || path[1] != '/')
			continue;
		r = sweep_group(path + 1, (unsigned)made, expected);
		if (first == 0)
			first = r;
	}
	return first;
}
