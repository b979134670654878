/* gbx_run(): check the request, hand it over, pump until the end, tell the result.
 *
 * The checks say in a sentence what the supervisor would only refuse; it checks again. */
#include "api/compile.h"
#include "api/network_record.h"
#include "api/report.h"
#include "api/request_network.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "caller/lib/inputs.h"
#include "caller/lib/pump.h"
#include "caller/lib/result.h"
#include "caller/lib/session.h"
#include "wire/report.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define REQUEST_FIRST_SIZE offsetof(struct gbx_request, args) /* as it was at first */

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

/* The image that the session's own cells are made of is number 0, in python's place. */
static bool is_session_image(const struct gbx_session *s, const char *name)
{
	return name && strcmp(name, s->hello.settings.image) == 0;
}

static int find_image(const struct gbx_session *s, const char *name)
{
	return is_session_image(s, name) ? 0 : offers_find_image(&s->offers, name, strlen(name));
}

static int refuse_name(const struct offers *offers, bool image, const char *name, struct fault *f)
{
	const char *like = offers_like(offers, image, name, strlen(name));
	char list[OFFERS_NAMES_MAX];

	(void)offers_names(offers, image, list, sizeof(list));
	return fault_say(f, -EINVAL, "%s: \"%.64s\" is none of those known here%s%s%s: %s",
		image ? "image" : "language", name, like ? "; did you mean \"" : "",
		like ? like : "", like ? "\"?" : "", list[0] ? list : "there are none");
}

/* The number of the request's language, or of its image. */
static int choose_language(
	const struct gbx_session *s, const struct gbx_request *q, uint32_t *ret, struct fault *f)
{
	const struct offers *offers = &s->offers;
	const char *name = q->image ? q->image : q->language;
	int number = 0;

	if (q->image && q->language)
		return fault_say(f, -EINVAL,
			"image: it has its own interpreter; give language or "
			"image, not both");
	if (name)
		number = q->image ? find_image(s, name) : offers_find(offers, name, strlen(name));
	if (number >= 0) {
		*ret = (uint32_t)number;
		if ((q->flags & GBX_RETURN_LAST) && !offers->of[number].reports)
			return fault_say(f, -EINVAL, "a program in %s tells no last value",
				q->image ? q->image : offers->of[number].name);
		return 0;
	}
	return refuse_name(offers, q->image != NULL, name, f);
}

static int choose_limits(const struct gbx_session *session, const struct gbx_request *q,
	uint32_t language, struct run_limits *ret, struct fault *f)
{
	const struct settings *s = &session->hello.settings;
	struct run_limits l;
	uint64_t cpu_time_most = s->max.cpu_time_us ? s->max.cpu_time_us : s->max.timeout_us;
	int r = 0;

	offers_limits(&session->offers, language, s, &l);
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
	const uint32_t known = GBX_INPUT_FD | GBX_NO_CAPTURE | GBX_WANT_JSON | GBX_RETURN_LAST |
			       GBX_SVG | GBX_NO_PNG | GBX_INTERLEAVED;

	if (result->size < RESULT_FIRST_SIZE)
		return fault_say(f, -EINVAL, "gbx_run: size is not set");
	if ((q->flags & ~known) || q->reserved ||
		((q->flags & GBX_NO_CAPTURE) && (q->flags & GBX_WANT_JSON)))
		return fault_say(f, -EINVAL, "gbx_run: flags that are unknown or exclude another");
	if ((q->code_len && !q->code) || (q->input_len && !q->input))
		return fault_say(f, -EINVAL, "gbx_run: a length without bytes");
	if (q->code_len > s->hello.settings.code_bytes)
		return fault_say(f, -EINVAL, "the program has %zu bytes; %llu are allowed here",
			q->code_len, (unsigned long long)s->hello.settings.code_bytes);
	if (q->output_bytes > s->hello.settings.output_bytes)
		return fault_say(f, -EINVAL,
			"output_bytes: %llu; %llu are allowed here (output-bytes)",
			(unsigned long long)q->output_bytes,
			(unsigned long long)s->hello.settings.output_bytes);
	if (s->lost)
		return fault_say(f, -EPIPE, "the supervisor was lost in an earlier run");
	return 0;
}

/* What is sealed: the code, and behind it the inputs. */
struct content {
	const struct gbx_request *request;
	char *inputs; /* NULL: none */
	size_t inputs_len;
	struct run_limits limits;
	uint32_t language;              /* its number */
	struct network_policy *network; /* NULL: none is asked for */
};

static void drop_content(struct content *c)
{
	free(c->inputs);
	free(c->network);
}

/* Sealed, so that the supervisor need not fear that it changes under its hands. */
static int make_code(const struct content *c, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = 0;

	if (fd < 0)
		return fault_set(f, -errno, "memfd for the program");
	if (c->request->code_len > 0)
		r = io_write_all(fd, c->request->code, c->request->code_len);
	if (r == 0 && c->inputs_len > 0)
		r = io_write_all(fd, c->inputs, c->inputs_len);
	if (r < 0)
		return fault_set(f, r, "write the program");
	r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : io_seal(fd);
	if (r < 0)
		return fault_set(f, r, "seal the program");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* The channel does not block, but its buffer may be full of cancels that came late. */
static int send_message(
	int channel_fd, enum msg_type type, const void *m, const int *fds, struct fault *f)
{
	struct pollfd room = { .fd = channel_fd, .events = POLLOUT };
	int r;

	for (;;) {
		r = channel_send(channel_fd, type, m, fds);
		if (r != -EAGAIN)
			break;
		(void)poll(&room, 1, -1);
	}
	return r < 0 ? fault_set(f, r == -ECONNRESET ? -EPIPE : r, "submit") : 0;
}

/* A run without files of its own has a workspace that can be seen to be untouched. */
static uint32_t collect_when(const struct gbx_request *q)
{
	if (!q->on_artifact)
		return COLLECT_NEVER;
	return q->file_count > 0 ? COLLECT_ALWAYS : COLLECT_IF_TOUCHED;
}

/* It goes nowhere but into the answer as JSON. */
static uint32_t report_of(const struct gbx_request *q)
{
	if (!(q->flags & GBX_WANT_JSON))
		return 0;
	return REPORT_ERROR | (q->flags & GBX_RETURN_LAST ? REPORT_LAST : 0) |
	       (q->flags & GBX_SVG ? REPORT_SVG : 0) | (q->flags & GBX_NO_PNG ? 0 : REPORT_PNG);
}

/* Ahead of its SUBMIT. */
static int send_network(struct pump *p, const struct network_policy *asked, struct fault *f)
{
	const struct msg_network m = { .run = p->run };

	p->network_fd = api_network_make(asked);
	if (p->network_fd < 0)
		return fault_set(f, p->network_fd, "memory for the network");
	return send_message(p->session->channel_fd, MSG_NETWORK, &m, &p->network_fd, f);
}

/* Send the run off; whatever happens, our copies of its ends are closed then. */
static int submit(struct pump *p, const struct content *c, int theirs[3], struct fault *f)
{
	cleanup_fd int code = -1, in = take_fd(&theirs[0]), out = take_fd(&theirs[1]),
		       err = take_fd(&theirs[2]);
	bool networked = c->network && !p->is_compiler;
	int r;

	r = make_code(c, &code, f);
	if (r < 0)
		return r;
	p->report_fd = api_report_make();
	if (p->report_fd < 0)
		return fault_set(f, p->report_fd, "memory for the report");
	p->run = ++p->session->last_run;
	p->submitted_ns = clock_ns();
	if (networked)
		r = send_network(p, c->network, f);
	if (r < 0)
		return r;
	return send_message(p->session->channel_fd, MSG_SUBMIT,
		&(struct msg_submit){
			.run = p->run,
			.limits = p->limits,
			.language = c->language,
			.part = p->is_compiler ? RUN_COMPILER
				: p->compiler  ? RUN_BUILT
					       : RUN_WHOLE,
			.build = p->compiler ? p->compiler->run : 0,
			.code_bytes = c->request->code_len,
			.inputs_bytes = c->inputs_len,
			.allow_network = networked,
			.collect = p->is_compiler ? COLLECT_NEVER : collect_when(c->request),
			.report = p->is_compiler ? 0 : report_of(c->request),
		},
		(const int[MSG_FDS_MAX]){ code, in, out, err, p->report_fd }, f);
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

/* One part of the run, to its end. */
static int run_part(struct pump *p, struct gbx_session *s, const struct gbx_request *q,
	const struct content *c, struct fault *f)
{
	int theirs[3], r = pump_init(p, s, q, theirs, f);

	if (r == 0) {
		r = submit(p, c, theirs, f);
	} else {
		for (int i = 0; i < 3; i++)
			drop_fd(&theirs[i]);
	}
	if (r == 0)
		r = pump_run(p, f);
	if (r < 0)
		give_up(p);
	return r;
}

/* The compiler's part. 1: it has succeeded; 0: p->result says that it has not. */
static int compile(struct pump *p, struct pump *compiler, struct gbx_session *s,
	const struct content *c, struct fault *f)
{
	struct gbx_request q = *c->request;
	const struct msg_result *m = &compiler->result;
	int r;

	/* What the program reads from its stdin is not for the compiler. */
	q.flags &= ~(uint32_t)GBX_INPUT_FD;
	q.input = NULL;
	q.input_len = 0;
	compiler->is_compiler = true;
	offers_compile_limits(&s->offers, c->language, &s->hello.settings, &compiler->limits);
	r = run_part(compiler, s, &q, c, f);
	compiler->request = c->request; /* not the copy */
	if (r < 0)
		return r;
	p->compiler = compiler;
	if (run_status_of((enum run_cause)m->cause, m->wait_status) == STATUS_SUCCESS)
		return 1;
	p->session = s;
	p->request = c->request;
	for (int i = 0; i < PUMP_STREAMS; i++)
		output_init(&p->captures[i], 1);
	p->result = api_compile_failure(m);
	return 0;
}

static int run_parts(
	struct gbx_session *s, const struct content *c, struct gbx_result *ret, struct fault *f)
{
	CLEANUP(drop_pump) struct pump *p = calloc(1, sizeof(*p));
	CLEANUP(drop_pump) struct pump *compiler = NULL;
	const struct offer *offer = &s->offers.of[c->language];
	int r = 1;

	if (p && offer->compiled)
		compiler = calloc(1, sizeof(*compiler));
	if (!p || (offer->compiled && !compiler))
		return fault_set(f, -ENOMEM, "run");
	p->network_fd = p->report_fd = p->input_fd = p->output_fds[PUMP_OUT] =
		p->output_fds[PUMP_ERR] = -1;
	if (c->request->image)
		p->image = c->request->image;
	else
		p->language = offer->name;
	p->limits = c->limits;
	p->policy = c->network;
	if (compiler) {
		compiler->network_fd = compiler->report_fd = compiler->input_fd =
			compiler->output_fds[PUMP_OUT] = compiler->output_fds[PUMP_ERR] = -1;
		r = compile(p, compiler, s, c, f);
	}
	if (r > 0)
		r = run_part(p, s, c->request, c, f);
	if (r < 0)
		return r;
	r = result_make(p, &c->limits, ret);
	return r < 0 ? fault_set(f, r, "result") : 0;
}

static int choose_network(
	const struct settings *s, const char *text, struct network_policy **ret, struct fault *f)
{
	if (!s->network)
		return fault_say(f, -EOPNOTSUPP, "network: runs get none here: %s",
			network_why_text(s->network_why));
	return request_network_parse(text, s, ret, f);
}

static int run(
	struct gbx_session *s, const struct gbx_request *q, struct gbx_result *ret, struct fault *f)
{
	struct content content CLEANUP(drop_content) = { .request = q };
	const struct settings *settings = &s->hello.settings;
	int r;

	r = check_request(s, q, ret, f);
	if (r == 0)
		r = choose_language(s, q, &content.language, f);
	if (r == 0)
		r = choose_limits(s, q, content.language, &content.limits, f);
	if (r == 0)
		r = request_inputs_make(q,
			&(struct inputs_bounds){ settings, &content.limits,
				s->offers.of[content.language].main_file },
			&content.inputs, &content.inputs_len, f);
	if (r == 0 && q->network)
		r = choose_network(settings, q->network, &content.network, f);
	return r < 0 ? r : run_parts(s, &content, ret, f);
}

int gbx_run(struct gbx_session *session, const struct gbx_request *request,
	struct gbx_result *ret_result, struct gbx_error *error)
{
	const struct timespec now = { 0 };
	struct gbx_request known = { 0 }; /* what a caller built with an older header left out */
	struct fault f = { 0 };
	sigset_t pipe_set, old, pending;
	bool was_pending;
	int r;

	if (request->size < REQUEST_FIRST_SIZE) {
		(void)fault_say(&f, -EINVAL, "gbx_run: size is not set");
		return session_tell(error, &f);
	}
	memcpy(&known, request, request->size < sizeof(known) ? request->size : sizeof(known));

	/* A program that closes its stdin would kill us by SIGPIPE. The signal is this
	 * thread's own, so it is blocked here and taken away before it is let in again;
	 * one that was there before stays. */
	(void)sigemptyset(&pipe_set);
	(void)sigaddset(&pipe_set, SIGPIPE);
	(void)sigpending(&pending);
	was_pending = sigismember(&pending, SIGPIPE) == 1;
	(void)pthread_sigmask(SIG_BLOCK, &pipe_set, &old);

	r = run(session, &known, ret_result, &f);

	if (!was_pending)
		while (sigtimedwait(&pipe_set, NULL, &now) < 0 && errno == EINTR)
			;
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r < 0 ? session_tell(error, &f) : 0;
}
