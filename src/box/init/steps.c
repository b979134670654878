#include "box/init/steps.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "box/box.h"
#include "kernel/caps.h"
#include "kernel/loopback.h"
#include "kernel/seccomp.h"
#include "kernel/sys.h"
#include "kernel/tun.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

static int step_parent_death(struct init_state *s, struct fault *f)
{
	(void)s;
	return box_die_with_supervisor(f);
}

static int step_cgroup_ns(struct init_state *s, struct fault *f)
{
	int r = sys.unshare(CLONE_NEWCGROUP);

	(void)s;
	return r < 0 ? fault_set(f, r, "unshare") : 0;
}

static int step_names(struct init_state *s, struct fault *f)
{
	static const char host[] = "glovebox";
	int r = sys.sethostname(host, sizeof(host) - 1);

	(void)s;
	return r < 0 ? fault_set(f, r, "sethostname") : 0;
}

static int step_loopback(struct init_state *s, struct fault *f)
{
	(void)s;
	return loopback_up(f);
}

/* Of most cells there is none: the program's sockets end at its loopback device. */
static int step_network(struct init_state *s, struct fault *f)
{
	struct msg m;
	int r;

	if (!s->root.build.network)
		return 0;
	r = box_expect(MSG_TUN, &m, f);
	if (r < 0)
		return r;
	r = tun_set_up(m.fds[0], f);
	msg_done(&m);
	return r;
}

static int step_drop(struct init_state *s, struct fault *f)
{
	int r;

	(void)s;
	/* Stays uid 0 of the map, so that the program, another uid, cannot signal it. */
	r = caps_lock(f);
	if (r == 0)
		r = caps_clear(f);
	if (r < 0)
		return r;
	r = sys.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (r == 0)
		r = sys.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	if (r < 0)
		return fault_set(f, r, "prctl");
	r = sys.close_range(BOX_CHANNEL_FD + 1, ~0u, 0);
	if (r < 0)
		return fault_set(f, r, "close_range");
	/* Ignored: children that are handed to pid 1 never become zombies. */
	if (signal(SIGCHLD, SIG_IGN) == SIG_ERR)
		return fault_set(f, -errno, "ignore SIGCHLD");
	return box_die_with_supervisor(f);
}

static int step_seccomp(struct init_state *s, struct fault *f)
{
	(void)s;
	return seccomp_install(SECCOMP_INIT, f);
}

static int step_plan(struct init_state *s, struct fault *f)
{
	return root_plan(&s->root, f);
}

static int step_mounts(struct init_state *s, struct fault *f)
{
	return root_mount(&s->root, f);
}

static int step_pivot(struct init_state *s, struct fault *f)
{
	return root_pivot(&s->root, f);
}

static int step_check_root(struct init_state *s, struct fault *f)
{
	return root_check(&s->root, f);
}

/* The order is the security argument. */
const struct init_step init_steps[] = {
	{ "parent death", step_parent_death }, /* first: nothing below may outlive the supervisor */
	{ "plan", step_plan },                 /* waits for the supervisor */
	{ "cgroup namespace", step_cgroup_ns }, /* its own; main gets one rooted at its leaf */
	{ "names", step_names }, { "mounts", step_mounts },
	{ "pivot", step_pivot }, /* after all mounts: the old root is needed until here */
	{ "check root", step_check_root },
	{ "loopback", step_loopback }, /* needs CAP_NET_ADMIN over the cell's namespace */
	{ "network", step_network },   /* the same */
	{ "drop", step_drop },         /* after everything that needs a capability */
	{ "seccomp", step_seccomp },   /* last: denies what the others do */
};
const unsigned init_steps_count = ARRAY_LEN(init_steps);
