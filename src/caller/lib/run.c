/* gbx_run(): check the request, hand it over, pump until the end, tell the result.
 *
 * The checks say in a sentence what the supervisor would only refuse; it checks again. */
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "caller/lib/pump.h"
#include "caller/lib/result.h"
#include "caller/lib/session.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct limit_check {
	const char *name, *unit, *setting; /* the last one is what the operator would change */
	uint64_t value, least, most;
	double scale; /* how much of the value is one unit */
};

static int check_limit(const struct limit_check *c, struct fault *f)
{
	if (c->value >= c->least && c->value <= c->most)
		return 0;
	return fault_say(f, -EINVAL,
		"%s: %.12g%s is out of range, which is %.12g to %.12g here (%s)", c->name,
		(double)c->value / c->scale, c->unit, (double)c->least / c->scale,
		(double)c->most / c->scale, c->setting);
}

static int choose_limits(const struct gbx_request *q, const struct settings *s,
	struct run_limits *ret, struct fault *f)
{
	struct run_limits l = s->def;
	uint64_t cpu_time_most = s->max.cpu_time_us ? s->max.cpu_time_us : s->max.timeout_us;
	int r = 0;

	if (q->timeout_us)
		l.timeout_us = q->timeout_us;
	if (q->memory_bytes)
		l.memory_bytes = q->memory_bytes;
	if (q->cpu_time_us)
		l.cpu_time_us = q->cpu_time_us;
	if (q->cpu_milli)
		l.cpu_milli = q->cpu_milli;
	if (q->pids)
		l.pids = q->pids;

	const struct limit_check checks[] = {
		{ "timeout", " s", "max-timeout", l.timeout_us, LIMIT_TIMEOUT_MIN_US,
			s->max.timeout_us, 1e6 },
		{ "memory", " MB", "max-memory", l.memory_bytes, LIMIT_MEMORY_MIN_BYTES,
			s->max.memory_bytes, 1048576 },
		{ "cpu", "", "max-cpu", l.cpu_milli, LIMIT_CPU_MIN_MILLI, s->max.cpu_milli, 1e3 },
		{ "pids", "", "max-pids", l.pids, LIMIT_PIDS_MIN, s->max.pids, 1 },
		{ "cpu time", " s", "max-timeout", l.cpu_time_us, 0, cpu_time_most, 1e6 },
	};
	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]) && r == 0; i++)
		r = check_limit(&checks[i], f);
	if (r == 0)
		*ret = l;
	return r;
}

static int check_request(const struct gbx_session *s, const struct gbx_request *q,
	const struct gbx_result *result, struct fault *f)
{
	const uint32_t known = GBX_INPUT_FD | GBX_NO_CAPTURE | GBX_WANT_JSON;

	if (q->size < sizeof(*q) || result->size < sizeof(*result))
		return fault_say(f, -EINVAL, "gbx_run: size is not set");
	if ((q->flags & ~known) || q->reserved ||
		((q->flags & GBX_NO_CAPTURE) && (q->flags & GBX_WANT_JSON)))
		return fault_say(f, -EINVAL, "gbx_run: flags that are unknown or exclude another");
	if ((q->code_len && !q->code) || (q->input_len && !q->input))
		return fault_say(f, -EINVAL, "gbx_run: a length without bytes");
	if (q->code_len > s->hello.settings.code_bytes)
		return fault_say(f, -EINVAL, "the program has %zu bytes; %llu are allowed here",
			q->code_len, (unsigned long long)s->hello.settings.code_bytes);
	if (s->lost)
		return fault_say(f, -EPIPE, "the supervisor was lost in an earlier run");
	return 0;
}

/* Sealed, so that the supervisor need not fear that it changes under its hands. */
static int make_code(const struct gbx_request *q, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = 0;

	if (fd < 0)
		return fault_set(f, -errno, "memfd for the program");
	if (q->code_len > 0)
		r = io_write_all(fd, q->code, q->code_len);
	if (r < 0)
		return fault_set(f, r, "write the program");
	if (lseek(fd, 0, SEEK_SET) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE) <
			0)
		return fault_set(f, -errno, "seal the program");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The channel does not block, but its buffer may be full of cancels that came late. */
static int send_submit(
	int channel_fd, const struct msg_submit *m, const int fds[4], struct fault *f)
{
	struct pollfd room = { .fd = channel_fd, .events = POLLOUT };
	int r;

	for (;;) {
		r = channel_send(channel_fd, MSG_SUBMIT, m, fds);
		if (r != -EAGAIN)
			break;
		(void)poll(&room, 1, -1);
	}
	return r < 0 ? fault_set(f, r == -ECONNRESET ? -EPIPE : r, "submit") : 0;
}

/* Send the run off; whatever happens, our copies of its ends are closed then. */
static int submit(struct pump *p, const struct run_limits *limits, int theirs[3], struct fault *f)
{
	cleanup_fd int code = -1, in = take_fd(&theirs[0]), out = take_fd(&theirs[1]),
		       err = take_fd(&theirs[2]);
	int r;

	r = make_code(p->request, &code, f);
	if (r < 0)
		return r;
	p->run = ++p->session->last_run;
	return send_submit(p->session->channel_fd,
		&(struct msg_submit){
			.run = p->run,
			.limits = *limits,
			.code_bytes = p->request->code_len,
		},
		(const int[]){ code, in, out, err }, f);
}

/* Nobody will read what it writes: end it instead of letting it run to its deadline. */
static void give_up(const struct pump *p)
{
	const struct msg_cancel m = { .run = p->run };

	if (p->run != 0 && !p->result_here && !p->session->lost)
		(void)channel_send(p->session->channel_fd, MSG_CANCEL, &m, NULL);
}

static void drop_pump(struct pump **p)
{
	if (*p)
		pump_done(*p);
	free(*p);
}

static int run(
	struct gbx_session *s, const struct gbx_request *q, struct gbx_result *ret, struct fault *f)
{
	CLEANUP(drop_pump) struct pump *p = NULL;
	struct run_limits limits;
	int theirs[3], r;

	r = check_request(s, q, ret, f);
	if (r == 0)
		r = choose_limits(q, &s->hello.settings, &limits, f);
	if (r < 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (!p)
		return fault_set(f, -ENOMEM, "run");
	r = pump_init(p, s, q, theirs, f);
	if (r == 0) {
		r = submit(p, &limits, theirs, f);
	} else {
		for (int i = 0; i < 3; i++)
			drop_fd(&theirs[i]);
	}
	if (r == 0)
		r = pump_run(p, f);
	if (r < 0) {
		give_up(p);
		return r;
	}
	r = result_make(p, &limits, ret);
	return r < 0 ? fault_set(f, r, "result") : 0;
}

int gbx_run(struct gbx_session *session, const struct gbx_request *request,
	struct gbx_result *ret_result, struct gbx_error *error)
{
	const struct timespec now = { 0 };
	struct fault f = { 0 };
	sigset_t pipe_set, old, pending;
	bool was_pending;
	int r;

	/* A program that closes its stdin would kill us by SIGPIPE. The signal is this
	 * thread's own, so it is blocked here and taken away before it is let in again;
	 * one that was there before stays. */
	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE) == 1;
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, &old);

	r = run(session, request, ret_result, &f);

	if (!was_pending)
		while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
			;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r < 0 ? session_tell(error, &f) : 0;
}
