#include "caller/lib/pump.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

/* After RESULT no process of the cell is left, so both pipes end at once, unless
 * somebody outside keeps a write end: then the answer must not hang on it. */
#define DRAIN_MS 10000

/* Of error output that nobody wants kept, and that is looked at for what stood in the way: half of
 * it are the last bytes. */
#define UNKEPT_BYTES 8192

/* Its files: the supervisor ends a collector in 20 s. */
#define FILES_MS 30000

enum slot {
	SLOT_CHANNEL,
	SLOT_CANCEL,
	SLOT_OUT,
	SLOT_ERR,
	SLOT_INPUT,  /* the program's stdin has room */
	SLOT_SOURCE, /* request->input_fd has more */
	SLOT_FILES,
	SLOT_MAX
};

static int make_pipe(int ret_fds[2], int our_end, struct fault *f)
{
	if (pipe2(ret_fds, O_CLOEXEC) < 0)
		return fault_set(f, -errno, "pipe");
	/* Only our end: the program expects pipes that block. */
	if (fcntl(ret_fds[our_end], F_SETFL, O_NONBLOCK) < 0)
		return fault_set(f, -errno, "pipe: O_NONBLOCK");
	return 0;
}

uint64_t pump_output_bytes(const struct gbx_session *s, const struct gbx_request *q)
{
	return q->output_bytes ? q->output_bytes : s->hello.settings.output_bytes;
}

int pump_init(struct pump *p, struct gbx_session *s, const struct gbx_request *q, int ret_theirs[3],
	struct fault *f)
{
	size_t cap = q->flags & GBX_NO_CAPTURE ? UNKEPT_BYTES : (size_t)pump_output_bytes(s, q);
	int fds[2], r;

	p->session = s;
	p->request = q;
	p->network_fd = p->report_fd = p->input_fd = p->output_fds[PUMP_OUT] =
		p->output_fds[PUMP_ERR] = -1;
	ret_theirs[0] = ret_theirs[1] = ret_theirs[2] = -1;
	for (int i = 0; i < PUMP_STREAMS; i++)
		output_init(&p->captures[i], cap);

	r = make_pipe(fds, 1, f);
	if (r < 0)
		return r;
	ret_theirs[0] = fds[0];
	p->input_fd = fds[1];
	for (int i = 0; i < PUMP_STREAMS; i++) {
		r = make_pipe(fds, 0, f);
		if (r < 0)
			return r;
		p->output_fds[i] = fds[0];
		ret_theirs[1 + i] = fds[1];
	}
	if (!(q->flags & GBX_INPUT_FD)) {
		p->input = q->input;
		p->input_len = q->input_len;
		p->input_ended = true;
	}
	return 0;
}

void pump_done(struct pump *p)
{
	drop_fd(&p->network_fd);
	drop_fd(&p->report_fd);
	drop_fd(&p->input_fd);
	incoming_destroy(p->files);
	timeline_free(&p->timeline);
	for (int i = 0; i < PUMP_STREAMS; i++) {
		drop_fd(&p->output_fds[i]);
		output_free(&p->captures[i]);
	}
}

/* Once the program has closed its stdin or ended, the rest of the input has no reader. */
static void feed_program(struct pump *p)
{
	ssize_t n = 0;

	if (p->input_len > 0)
		n = write(p->input_fd, p->input, p->input_len);
	if (n > 0) {
		p->input += n;
		p->input_len -= (size_t)n;
	} else if (n < 0 && errno != EAGAIN && errno != EINTR) {
		p->input_len = 0;
		p->input_ended = true;
	}
	if (p->input_len == 0 && p->input_ended)
		drop_fd(&p->input_fd);
}

/* A source that cannot be read ends the program's stdin as its end would: the program
 * has no other way to learn of it. */
static void read_source(struct pump *p)
{
	ssize_t n = read(p->request->input_fd, p->bytes, sizeof(p->bytes));

	if (n > 0) {
		p->input = p->bytes;
		p->input_len = (size_t)n;
	} else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
		p->input_ended = true;
	}
}

static int read_output(struct pump *p, enum pump_stream i, struct fault *f)
{
	static const int streams[] = { [PUMP_OUT] = GBX_STDOUT, [PUMP_ERR] = GBX_STDERR };
	const struct gbx_request *q = p->request;
	char bytes[PUMP_BYTES];
	ssize_t n = read(p->output_fds[i], bytes, sizeof(bytes));

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (n < 0)
		return fault_set(f, -errno, "read the program's output");
	if (n == 0) {
		drop_fd(&p->output_fds[i]);
		return 0;
	}
	if (q->on_output)
		q->on_output(
			q->context, p->is_compiler ? GBX_COMPILER : streams[i], bytes, (size_t)n);
	if (q->flags & GBX_INTERLEAVED)
		timeline_note(&p->timeline, (enum timeline_stream)i, p->captures[i].total,
			(size_t)n, clock_ns());
	if ((i == PUMP_ERR || !(q->flags & GBX_NO_CAPTURE)) &&
		output_feed(&p->captures[i], bytes, (size_t)n) < 0)
		return fault_set(f, -ENOMEM, "keep the program's output");
	return 0;
}

/* The verdict is there in any case; without files the result says that there may be some. */
static void ask_for_files(struct pump *p)
{
	const struct msg_cancel no = { .run = p->run };
	struct fault f = { 0 };

	if (!p->result.kept)
		return;
	p->files = incoming_create(p->session, p->request, p->run, &f);
	if (!p->files)
		(void)channel_send(p->session->channel_fd, MSG_CANCEL, &no, NULL);
}

static int read_channel(struct pump *p, struct fault *f)
{
	const char *rule = NULL;
	struct msg m;
	int r;

	r = channel_recv(p->session->channel_fd, ROLE_SUPERVISOR, ROLE_CLIENT, &m, &rule);
	if (r == -EAGAIN || r == -EINTR)
		return 0;
	if (r <= 0) {
		p->session->lost = true;
		return fault_say(f, -EPIPE, "the supervisor was lost during the run%s%s",
			rule ? ": " : "", rule ? rule : "");
	}
	if (m.type == MSG_RESULT && m.as.RESULT.run == p->run) {
		p->result = m.as.RESULT;
		p->result_here = true;
		ask_for_files(p);
	} else if (m.type == MSG_REFUSED && m.as.REFUSED.run == p->run) {
		*f = m.as.REFUSED.fault;
		(void)fault_launder(f);
		if (m.as.REFUSED.retry)
			f->code = -EAGAIN;
		else if (m.as.REFUSED.missing)
			f->code = -EINVAL;
		r = f->code;
	}
	msg_done(&m);
	return r < 0 ? r : 0;
}

/* A cancel after the end is for the next run: it stays in the eventfd. */
static int send_cancel(struct pump *p, struct fault *f)
{
	const struct msg_cancel m = { .run = p->run };
	uint64_t times;
	int r;

	if (read(p->session->cancel_fd, &times, sizeof(times)) < 0)
		return 0;
	r = channel_send(p->session->channel_fd, MSG_CANCEL, &m, NULL);
	return r < 0 ? fault_set(f, r, "cancel") : 0;
}

static bool awaits_files(const struct pump *p)
{
	return p->files && incoming_fd(p->files) >= 0;
}

/* poll() passes over descriptors of -1: what is not wanted now. */
static void want(const struct pump *p, struct pollfd slots[SLOT_MAX])
{
	bool hungry = p->input_fd >= 0 && p->input_len == 0 && !p->input_ended;

	for (int i = 0; i < SLOT_MAX; i++)
		slots[i] = (struct pollfd){ .fd = -1, .events = POLLIN };
	slots[SLOT_OUT].fd = p->output_fds[PUMP_OUT];
	slots[SLOT_ERR].fd = p->output_fds[PUMP_ERR];
	if (awaits_files(p)) {
		slots[SLOT_FILES].fd = incoming_fd(p->files);
		slots[SLOT_CANCEL].fd = p->session->cancel_fd;
	}
	if (p->result_here)
		return;
	slots[SLOT_CHANNEL].fd = p->session->channel_fd;
	slots[SLOT_CANCEL].fd = p->session->cancel_fd;
	slots[SLOT_INPUT].fd = hungry ? -1 : p->input_fd;
	slots[SLOT_INPUT].events = POLLOUT;
	slots[SLOT_SOURCE].fd = hungry ? p->request->input_fd : -1;
}

static int serve(struct pump *p, const struct pollfd slots[SLOT_MAX], struct fault *f)
{
	int r = 0;

	/* Output first: what was written before the end must be seen before the end. */
	if (slots[SLOT_OUT].revents)
		r = read_output(p, PUMP_OUT, f);
	if (r == 0 && slots[SLOT_ERR].revents)
		r = read_output(p, PUMP_ERR, f);
	if (r == 0 && slots[SLOT_CANCEL].revents)
		r = send_cancel(p, f);
	if (r == 0 && slots[SLOT_CHANNEL].revents)
		r = read_channel(p, f);
	if (slots[SLOT_INPUT].revents)
		feed_program(p);
	if (slots[SLOT_SOURCE].revents)
		read_source(p);
	if (slots[SLOT_FILES].revents)
		incoming_read(p->files);
	if (p->result_here)
		drop_fd(&p->input_fd);
	return r;
}

int pump_run(struct pump *p, struct fault *f)
{
	struct pollfd slots[SLOT_MAX];
	uint64_t drain_until = 0;
	int r;

	while (!p->result_here || p->output_fds[PUMP_OUT] >= 0 || p->output_fds[PUMP_ERR] >= 0 ||
		awaits_files(p)) {
		if (p->result_here && drain_until == 0)
			drain_until = clock_ns() + (p->files ? FILES_MS : DRAIN_MS) * NS_PER_MS;
		want(p, slots);
		r = poll(slots, SLOT_MAX, drain_until ? clock_ms_until(drain_until) : -1);
		if (r < 0 && errno != EINTR)
			return fault_set(f, -errno, "poll");
		if (r == 0)
			return fault_say(f, -EPIPE, "the program's output does not end");
		r = r > 0 ? serve(p, slots, f) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}
