#include "priv/supervisor/layers.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/caps.h"
#include "kernel/landlock.h"
#include "kernel/process.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"
#include "priv/supervisor/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define PROBE_TIMEOUT_MS 10000

/* Open files, rounded up: what the supervisor has when idle (49 were seen); a channel and a
 * pidfd for each zygote of images; while it makes one cell (its
 * mounts, and the copy of everything that a child parks before its exec); for each cell (a
 * directory in each hierarchy, two events, two channels, two pidfds, three mounts, and the
 * five of a SUBMIT, a filter's listener, and what tells of its network). A program gets 256 where there are so many (box/enter/steps.c). */
#define FILES_IDLE    60u
#define FILES_ZYGOTES (2u * LINEAGE_ZYGOTES * LINES_MAX)
#define FILES_BUILD   40u
#define FILES_RUN     (CGROUP_HIERARCHIES_MAX + CGROUP_FILE_MAX + 16u + NETSTATE_FILES)
#define FILES_PROGRAM 256u

static void yes(struct layers *l, enum layer layer)
{
	l->tried |= LAYER_BIT(layer);
	l->in_force |= LAYER_BIT(layer);
}

/* The layer's fault, to be filled. */
static struct fault *no(struct layers *l, enum layer layer)
{
	l->tried |= LAYER_BIT(layer);
	return &l->why[layer];
}

static void judge(struct layers *l, enum layer layer, int r, const char *what)
{
	if (r >= 0)
		yes(l, layer);
	else
		(void)fault_set(no(l, layer), r, "%s", what);
}

int layers_probe_caps(struct layers *l, struct fault *f)
{
	uint64_t missing = START_CAPABILITIES & ~caps_permitted();
	char names[256];

	*l = (struct layers){ .in_force = 0 };
	if (missing == 0) {
		yes(l, LAYER_CAPS);
		return 0;
	}
	caps_names(missing, names, sizeof(names));
	(void)fault_say(no(l, LAYER_CAPS), -EPERM, "root has not %s", names);
	return layers_explain(l, 0, f);
}

static void probe_namespaces(struct layers *l)
{
	static const struct {
		enum layer layer;
		uint64_t flag;
		const char *name;
	} list[] = {
		{ LAYER_USER_NS, CLONE_NEWUSER, "clone(CLONE_NEWUSER)" },
		{ LAYER_PID_NS, CLONE_NEWPID, "clone(CLONE_NEWPID)" },
		{ LAYER_MOUNT_NS, CLONE_NEWNS, "clone(CLONE_NEWNS)" },
		{ LAYER_IPC_NS, CLONE_NEWIPC, "clone(CLONE_NEWIPC)" },
		{ LAYER_UTS_NS, CLONE_NEWUTS, "clone(CLONE_NEWUTS)" },
		{ LAYER_CGROUP_NS, CLONE_NEWCGROUP, "clone(CLONE_NEWCGROUP)" },
		{ LAYER_NET_NS, CLONE_NEWNET, "clone(CLONE_NEWNET)" },
	};

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		judge(l, list[i].layer, process_try_namespaces(list[i].flag), list[i].name);
}

static void probe_confinement(struct layers *l)
{
	int pidfd;

	judge(l, LAYER_NNP, sys.prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), "PR_GET_NO_NEW_PRIVS");
	judge(l, LAYER_SECCOMP, seccomp_available(), "SECCOMP_RET_ERRNO");
	judge(l, LAYER_LANDLOCK, landlock_abi() > 0 ? 0 : -EOPNOTSUPP, "landlock_create_ruleset");
	pidfd = sys.pidfd_open(getpid(), 0);
	judge(l, LAYER_WATCHDOG, pidfd, "pidfd_open");
	drop_fd(&pidfd);
}

static void probe_rlimits(struct layers *l, const struct settings *s)
{
	rlim_t needed =
		FILES_IDLE + FILES_ZYGOTES + FILES_BUILD + (s->max_runs + s->pool_size) * FILES_RUN;
	struct rlimit now = { 0 };
	int r = sys.prlimit(0, RLIMIT_NOFILE, NULL, &now);

	if (needed < FILES_PROGRAM)
		needed = FILES_PROGRAM;
	if (r == 0 && now.rlim_max < needed)
		(void)fault_say(no(l, LAYER_RLIMITS), -EMFILE,
			"the hard limit of open files is %lu; max-runs %u and pool-size %u need "
			"%lu",
			(unsigned long)now.rlim_max, s->max_runs, s->pool_size,
			(unsigned long)needed);
	else
		judge(l, LAYER_RLIMITS, r, "hard limit of open files");
}

void layers_probe_kernel(struct layers *l, const struct settings *s)
{
	char pattern[128];

	probe_namespaces(l);
	probe_confinement(l);
	probe_rlimits(l, s);
	if (s->uid_range_taken)
		(void)fault_say(no(l, LAYER_UIDS), -EBUSY,
			"a user, group or subordinate range lies in %u-%u or at %u", s->uid_base,
			s->uid_base + 65535, CONFIG_UID);
	else
		yes(l, LAYER_UIDS);
	if (io_read_text(AT_FDCWD, "/proc/sys/kernel/core_pattern", pattern, sizeof(pattern)) > 0)
		l->core_pattern_piped = pattern[0] == '|' || pattern[0] == '@';
}

/* No swap on the host is as good as swap accounting. */
static bool host_has_swap(void)
{
	char text[4096];
	ssize_t n = io_read_text(AT_FDCWD, "/proc/swaps", text, sizeof(text));
	const char *line = n > 0 ? strchr(text, '\n') : NULL;

	return n == -EFBIG || (line && line[1] != '\0');
}

void layers_probe_cgroups(struct layers *l, const struct cgroup_tree *t)
{
	static const struct {
		enum layer layer;
		enum cgroup_controller controller;
		const char *name;
	} list[] = {
		{ LAYER_MEMORY, CGROUP_MEMORY, "no hierarchy offers the memory controller" },
		{ LAYER_CPU, CGROUP_CPU, "no hierarchy offers the cpu controller" },
		{ LAYER_PIDS, CGROUP_PIDS, "no hierarchy offers the pids controller" },
	};

	for (size_t i = 0; i < ARRAY_LEN(list); i++)
		judge(l, list[i].layer, t->of[list[i].controller] >= 0 ? 0 : -ENOENT, list[i].name);
	judge(l, LAYER_SWAP, t->swap_accounting || !host_has_swap() ? 0 : -EOPNOTSUPP,
		"there is swap and the kernel does not account for it");
	judge(l, LAYER_KILL, faccessat(t->h[0].dir_fd, "cgroup.kill", W_OK, 0) < 0 ? -errno : 0,
		"cgroup.kill");
}

/* Feed the cell what it says until it is parked. */
static int build(struct cell *c, const struct cell_factory *factory, struct fault *f)
{
	uint64_t deadline = clock_ns() + PROBE_TIMEOUT_MS * NS_PER_MS;

	while (c->state == CELL_BUILDING || c->state == CELL_ENTERING) {
		struct pollfd p = {
			.fd = c->state == CELL_BUILDING ? c->init_channel : c->main_channel,
			.events = POLLIN,
		};

		if (sys.poll(&p, 1, clock_ms_until(deadline)) == 0)
			return fault_say(f, -ETIMEDOUT, "a cell did not come to stand in %d ms",
				PROBE_TIMEOUT_MS);
		if (cell_hear(c, factory) < 0) {
			*f = c->fault;
			return f->code;
		}
	}
	return 0;
}

static void destroy(struct cell *c, const struct cell_factory *factory)
{
	uint64_t deadline = clock_ns() + PROBE_TIMEOUT_MS * NS_PER_MS;

	cell_kill(c);
	while (clock_ns() < deadline) {
		/* cgroup.events wakes this; the short timeout is for rmdir's EBUSY. */
		struct pollfd p = { .fd = c->leaf.events_fd, .events = POLLPRI };

		if (cell_is_empty(c) && cell_remove(c, factory))
			return;
		(void)sys.poll(&p, 1, 5);
	}
}

/* Which layer is it that a cell could not be given? By the steps of box/init/steps.c and the
 * supervisor's own; LAYER_MAX when it is none of those that only a cell can try. */
static enum layer blame(const struct fault *why)
{
	static const char *const root_steps[] = {
		": mounts: ", ": private mounts: ", ": pivot: ", ": check root: "
	};

	/* Before the step that it is a part of. */
	if (strstr(why->text, ": mounts: proc: "))
		return LAYER_PROC;
	for (size_t i = 0; i < ARRAY_LEN(root_steps); i++) {
		if (strstr(why->text, root_steps[i]))
			return LAYER_ROOT;
	}
	return LAYER_MAX;
}

void layers_refuse_root(struct layers *l, const struct fault *why)
{
	*no(l, LAYER_ROOT) = *why;
}

void layers_refuse_cell(struct layers *l, const struct fault *why)
{
	enum layer layer = blame(why);

	l->cell = *why;
	/* Out of descriptors is not for want of that layer: rlimits says so. */
	if (layer < LAYER_MAX && why->code != -EMFILE)
		*no(l, layer) = *why;
}

int layers_probe_cell(struct layers *l, const struct cell_factory *factory)
{
	struct fault f = { 0 };
	struct cell c;
	int r;

	memset(&c, 0, sizeof(c));
	r = cell_create(&c, factory, 0, 0, &f);
	if (r == 0)
		r = build(&c, factory, &f);
	destroy(&c, factory);
	if (r == 0) {
		yes(l, LAYER_ROOT);
		yes(l, LAYER_PROC);
		return 0;
	}
	layers_refuse_cell(l, &f);
	return r;
}

int layers_explain(const struct layers *l, uint64_t allowed, struct fault *f)
{
	uint64_t missing = l->tried & ~l->in_force & ~(allowed & LAYERS_DEGRADABLE);

	for (unsigned i = 0; i < LAYER_MAX; i++) {
		if (!(missing & LAYER_BIT(i)))
			continue;
		return fault_say(f, -EOPNOTSUPP,
			"layer %s is missing: %s. Without it %s. Remedy: %s", layer_word(i),
			l->why[i].text, layer_lost(i), layer_remedy_for(i, &l->why[i]));
	}
	return 0;
}

int layers_decide(const struct layers *l, uint64_t allowed, struct fault *f)
{
	int r = layers_explain(l, allowed, f);

	if (r == 0 && l->cell.code != 0)
		r = fault_say(f, l->cell.code, "no cell can be built: %s", l->cell.text);
	/* After a cell was built, nothing is untried. */
	if (r == 0)
		CHECK(l->tried == LAYER_ALL);
	return r;
}
