#include "tests/lib/leaf.h"

#include "kernel/cgroup_internal.h"
#include "tests/unit/unit.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

void leaf_join_v1(const struct cgroup_tree *t, const struct cgroup *cg, pid_t pid)
{
	for (unsigned i = 1; i < t->count; i++) {
		int r = cgroup_write_u64(cg->fd[i], "cgroup.procs", (uint64_t)pid);

		if (r < 0)
			fail_msg("join %s in %s: %s", cg->name, t->h[i].mount, strerror(-r));
	}
}

void leaf_touch(size_t bytes)
{
	char *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(3);
	for (size_t i = 0; i < bytes; i += 4096)
		((volatile char *)p)[i] = 1;
}
