/* The life of a collector. It begins as root like every child of the supervisor, goes into the
 * collectors' groups, opens the workspace by the one descriptor that it was sent, and gives
 * everything up (kernel/confine.h): what it does then it does as the program's user, in an empty
 * root, without a network, and with a filter that knows reading and writing. The workspace is not
 * in its root; it has no way there but the descriptor.
 *
 * Who took it over, by a name or a size, would have what the program had, less what the filter
 * takes, and could send the client bytes, as the program could.
 */
#include "box/collect/collect.h"

#include "base/fault.h"
#include "base/own.h"
#include "box/box.h"
#include "box/collect/walk.h"
#include "kernel/confine.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

/* A directory for each level of the walk, a file, three descriptors, and room. */
#define OPEN_FILES (FILES_DEPTH_MAX + 16)

/* Two numbers of GATHER's descriptors. */
enum {
	WORKSPACE,
	CODE,
	PIPE
};

/* JOINs, until GATHER comes. */
static int await_gather(struct msg *m, struct fault *f)
{
	for (;;) {
		int r = box_receive("GATHER", m, f);
		ssize_t n;

		if (r < 0 || m->type == MSG_GATHER)
			return r;
		if (m->type != MSG_JOIN) {
			msg_done(m);
			return fault_set(f, -EPROTO, "got %s", msg_name(m->type));
		}
		n = sys.write(m->fds[0], "0", 1);
		msg_done(m);
		if (n < 0)
			return fault_set(f, (int)n, "join a group");
	}
}

/* Its mode is the program's to change, and says nothing about the files in it. */
static int open_workspace(int mount_fd, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = sys.openat(mount_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "open the workspace");
	r = sys.fchmod(fd, 0700);
	if (r < 0)
		return fault_set(f, r, "make the workspace readable");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int confine_as(const struct msg_gather *g, int workspace_fd, struct fault *f)
{
	const struct confine_plan plan = {
		.filter = CONFINE_COLLECTOR,
		.uid = g->uid,
		.open_files = OPEN_FILES,
		.forbid_new_files = 1,
		.readable_fd = (uint32_t)workspace_fd,
	};

	return confine(&plan, f);
}

static int gather(struct msg *m, struct fault *f)
{
	static struct out out; /* static, as the next: too large for a careful stack */
	static struct known known;
	struct msg_gather *g = &m->as.GATHER;
	struct walk_plan plan = { .root_fd = -1, .caps = g->caps, .known = &known, .out = &out };
	int r = open_workspace(m->fds[WORKSPACE], &plan.root_fd, f);

	drop_fd(&m->fds[WORKSPACE]);
	if (r == 0)
		r = confine_as(g, plan.root_fd, f);
	if (r == 0)
		r = known_open(
			&known, m->fds[CODE], g->main_file, g->code_bytes, g->inputs_bytes, f);
	out_init(&out, m->fds[PIPE]);
	if (r == 0)
		r = walk(&plan, f);
	if (r == 0) {
		r = out_end(&out);
		if (r < 0)
			(void)fault_set(f, r, "write to the client");
	}
	return r;
}

int box_collect(void)
{
	static struct msg m; /* static: too large for a careful stack */
	struct fault f = { 0 };

	if (box_die_with_supervisor(&f) < 0 || await_gather(&m, &f) < 0 || gather(&m, &f) < 0)
		box_fail(&f, "collect");
	return 0;
}
