#include "caller/lib/session.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "caller/lib/overrides.h"
#include "caller/lib/spawn.h"

#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* Of the first header, which ended with log_fd: who was built with it asks for no flags. */
#define OPTIONS_SIZE_FLAGS offsetof(struct gbx_options, runtimes)
#define OPTIONS_SIZE_FIRST offsetof(struct gbx_options, flags)

int session_tell(struct gbx_error *error, const struct fault *f)
{
	if (error) {
		error->code = f->code;
		(void)snprintf(error->text, sizeof(error->text), "%s", f->text);
	}
	return f->code;
}

int session_start(const struct gbx_options *options, const char *role, pid_t *ret_pid,
	int *ret_channel_fd, struct fault *f)
{
	static const struct gbx_options defaults = { .size = sizeof(defaults) };
	const struct gbx_options *o = options ? options : &defaults;
	cleanup_fd int ours = -1, theirs = -1, overrides_fd = -1, file_fd = -1;
	int pair[2], r;

	if (o->size < OPTIONS_SIZE_FIRST)
		return fault_say(f, -EINVAL, "gbx_options: size is not set");
	r = overrides_open_file(o->config, &file_fd, f);
	if (r == 0)
		/* What goes wrong is told to the caller; the log is for what cannot be. */
		r = overrides_make("log-level=err", o->settings,
			o->size >= sizeof(*o) ? o->runtimes : NULL, &overrides_fd, f);
	if (r < 0)
		return r;
	r = channel_pair(pair, 1);
	if (r < 0)
		return fault_set(f, r, "socket pair");
	ours = pair[0];
	theirs = pair[1];

	r = spawn_role(
		&(struct spawn_plan){
			.program = o->program,
			.role = role,
			.fds = (const int[]){ theirs, overrides_fd, file_fd },
			.nfds = 3,
			.log_fd = o->log_fd > 0 ? o->log_fd : STDERR_FILENO,
		},
		ret_pid, f);
	if (r < 0)
		return r;
	*ret_channel_fd = take_fd(&ours);
	return 0;
}

int session_next(int channel_fd, uint64_t deadline_ns, struct msg *ret, struct fault *f)
{
	struct pollfd p = { .fd = channel_fd, .events = POLLIN };
	const char *rule = NULL;
	int r;

	for (;;) {
		r = channel_recv(channel_fd, ROLE_SUPERVISOR, ROLE_CLIENT, ret, &rule);
		if (r == 1)
			return 0;
		if (r == 0)
			return fault_say(f, -EPIPE, "the supervisor has gone");
		if (r == -EPROTO)
			return fault_say(
				f, r, "the supervisor sent nonsense: %s", rule ? rule : "?");
		if (r != -EAGAIN && r != -EINTR)
			return fault_set(f, r, "receive from the supervisor");
		r = poll(&p, 1, clock_ms_until(deadline_ns));
		if (r == 0)
			return fault_say(f, -ETIMEDOUT, "the supervisor does not answer");
		if (r < 0 && errno != EINTR)
			return fault_set(f, -errno, "wait for the supervisor");
	}
}

/* Is there what the caller wants to wait for, or will it not come? */
static bool is_stocked(const struct gbx_session *s, const struct msg_health *m)
{
	if (s->hello.settings.pool_size == 0)
		return m->warm != WARM_STARTING;
	return m->warm == WARM_LOST || (m->warm != WARM_STARTING && m->pool_ready > 0);
}

/* Until HEALTH says that it can run things, or why it cannot. */
static int await_ready(struct gbx_session *s, bool stocked, struct fault *f)
{
	uint64_t deadline = clock_ns() + SESSION_START_MS * NS_PER_MS;
	struct msg m;
	bool greeted = false;
	int r;

	for (;;) {
		r = session_next(s->channel_fd, deadline, &m, f);
		if (r < 0)
			return r;
		if (m.type == MSG_HELLO) {
			s->hello = m.as.HELLO;
			greeted = true;
		} else if (m.type == MSG_OFFER && s->offers.count < LANGUAGES_MAX) {
			s->offers.of[s->offers.count++] = m.as.OFFER.offer;
		} else if (m.type == MSG_HEALTH && m.as.HEALTH.ready) {
			if (!greeted || s->offers.count == 0)
				return fault_say(f, -EPROTO, "ready before hello");
			if (!stocked || is_stocked(s, &m.as.HEALTH))
				return 0;
		} else if (m.type == MSG_HEALTH && m.as.HEALTH.why.code != 0) {
			*f = m.as.HEALTH.why;
			return fault_launder(f);
		}
		msg_done(&m);
	}
}

/* A supervisor that died without a word: its wait status is all there is to tell. */
static int explain_death(int status, struct fault *f)
{
	if (f->code != -EPIPE || status < 0)
		return f->code;
	if (WIFSIGNALED(status))
		return fault_say(f, -EPIPE, "the supervisor died of signal %d", WTERMSIG(status));
	return fault_say(f, -EPIPE, "the supervisor ended with status %d before it was ready",
		WEXITSTATUS(status));
}

static int open_session(const struct gbx_options *options, struct gbx_session *s, struct fault *f)
{
	bool stocked = options && options->size >= OPTIONS_SIZE_FLAGS &&
		       (options->flags & GBX_READY_CELLS);
	int r;

	/* Asked here, because from inside the answer would be about one mount or another. */
	if (geteuid() != 0)
		return fault_say(f, -EPERM,
			"building a cage needs root: run this as root, for example with sudo");
	s->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->cancel_fd < 0)
		return fault_set(f, -errno, "eventfd");
	r = session_start(options, stocked ? "@keeper" : "@supervisor", &s->pid, &s->channel_fd, f);
	return r < 0 ? r : await_ready(s, stocked, f);
}

/* Closing the channel is what tells the supervisor to clean up and end. */
static int end_child(struct gbx_session *s)
{
	drop_fd(&s->channel_fd);
	return s->pid > 0 ? spawn_wait(s->pid) : -1;
}

int gbx_open(const struct gbx_options *options, struct gbx_session **ret_session,
	struct gbx_error *error)
{
	struct gbx_session *s = calloc(1, sizeof(*s));
	struct fault f = { 0 };
	int r;

	if (!s) {
		(void)fault_set(&f, -ENOMEM, "session");
		return session_tell(error, &f);
	}
	s->channel_fd = s->cancel_fd = -1;
	r = open_session(options, s, &f);
	if (r == 0) {
		*ret_session = s;
		return 0;
	}
	(void)explain_death(end_child(s), &f);
	drop_fd(&s->cancel_fd);
	free(s);
	return session_tell(error, &f);
}

void gbx_close(struct gbx_session *session)
{
	if (!session)
		return;
	(void)end_child(session);
	drop_fd(&session->cancel_fd);
	free(session);
}

void gbx_cancel(struct gbx_session *session)
{
	const uint64_t one = 1;
	int saved = errno;

	/* Fails only when a cancel is wanted 2^64 - 1 times over already. */
	(void)!write(session->cancel_fd, &one, sizeof(one));
	errno = saved;
}
