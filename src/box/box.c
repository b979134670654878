#include "box/box.h"

#include "base/fault.h"
#include "kernel/sys.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define SEND_RETRY_NS 1000000 /* a message that the kernel had no memory for */

int box_receive(const char *what, struct msg *ret, struct fault *f)
{
	const char *rule = "";
	int r = channel_recv(BOX_CHANNEL_FD, ROLE_SUPERVISOR, ROLE_BOX, ret, &rule);

	if (r == 0)
		return fault_set(f, -EPIPE, "the supervisor is gone");
	if (r == -EPROTO)
		return fault_set(f, r, "await %s: %s", what, rule);
	return r < 0 ? fault_set(f, r, "await %s", what) : 0;
}

int box_expect(enum msg_type type, struct msg *ret, struct fault *f)
{
	int r = box_receive(msg_name(type), ret, f);

	if (r == 0 && ret->type != type) {
		msg_done(ret);
		return fault_set(
			f, -EPROTO, "got %s instead of %s", msg_name(ret->type), msg_name(type));
	}
	return r;
}

int box_die_with_supervisor(struct fault *f)
{
	struct pollfd p = { .fd = BOX_CHANNEL_FD, .events = 0 };
	int r = sys.prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);

	if (r < 0)
		return fault_set(f, r, "PR_SET_PDEATHSIG");
	r = sys.poll(&p, 1, 0);
	if (r < 0)
		return fault_set(f, r, "poll the channel");
	return (p.revents & POLLHUP) ? fault_set(f, -EPIPE, "the supervisor is gone") : 0;
}

/* By the kernel, for a moment: nobody is gone. If it lasts, the supervisor's deadline ends us. */
static bool is_refused(int r)
{
	return r < 0 && r != -EPIPE && r != -ECONNRESET && r != -ENOTCONN && r != -EBADF &&
	       r != -ENOTSOCK;
}

void box_fail(const struct fault *f, const char *who)
{
	struct msg_broken m = { .fault = *f };

	(void)fault_wrap(&m.fault, "%s", who);
	/* Without this word our status would be taken for the program's. */
	while (is_refused(channel_send(BOX_CHANNEL_FD, MSG_BROKEN, &m, NULL)))
		(void)nanosleep(&(struct timespec){ .tv_nsec = SEND_RETRY_NS }, NULL);
	_exit(BOX_FAILED_STATUS);
}
