/* The life of a run, in the order of the functions below:
 *
 *   execute    the body is parsed and becomes a run (run.c) with a ticket of the queue
 *              (queue.c); when there is no room, or the server is closed, a 503
 *   submit     when the ticket has its turn: pipes, sealed code, SUBMIT (link.c)
 *   result     the pipes' rest, the reply, and the slot goes to the next one waiting
 *   collect    between the two, if there are files that are asked for (gather.c)
 *   refused    the code did not run, and the answer says so
 *   gone       the client left: a waiting run is dropped, a submitted one is cancelled and
 *              keeps its slot until the supervisor has answered
 *
 * What must always hold: a run is in exactly one of the queue's line and the list of
 * those submitted; it leaves that list by RESULT or REFUSED alone, or behind a RESULT with the
 * end of its files; a run with a request is that request's data, and the other way round.
 */
#include "edge/front/runs.h"

#include "api/network_record.h"
#include "api/reply.h"
#include "api/request.h"
#include "base/check.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "edge/front/answer.h"
#include "edge/front/gather.h"
#include "edge/front/link.h"
#include "edge/front/run.h"
#include "edge/front/shelf.h"
#include "edge/http/server.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* When kits are made, behind a submission. Not at once, nor behind the answer: the front would
 * keep a CPU from the program, or from the client, that has just been woken. */
#define REFILL_AFTER_MS 4

static struct run *run_of(struct ticket *t)
{
	_Static_assert(offsetof(struct run, ticket) == 0, "a ticket of the queue is its run");

	return (struct run *)t;
}

static void list_submitted(struct runs *rs, struct run *r)
{
	r->prev = NULL;
	r->next = rs->submitted;
	if (r->next)
		r->next->prev = r;
	rs->submitted = r;
}

static void unlist(struct runs *rs, struct run *r)
{
	if (r->prev)
		r->prev->next = r->next;
	else
		rs->submitted = r->next;
	if (r->next)
		r->next->prev = r->prev;
}

static struct run *find_submitted(const struct runs *rs, uint64_t number)
{
	struct run *r = rs->submitted;

	while (r && r->number != number)
		r = r->next;
	return r;
}

/* Give `r`, which never ran or never will, its answer, if anybody still waits for it. */
static void answer_not_run(struct run *r, int status, uint32_t retry_after_s, const char *why)
{
	const struct answer a = { .status = status, .id = r->id, .retry_after_s = retry_after_s };
	struct http_request *req = take_ptr(r->req);

	if (r->told)
		r->told(r->told_ctx, r, &(struct run_end){ .why = why });
	if (!req)
		return;
	http_request_set_data(req, NULL);
	answer_detail(req, &a, "the code did not run: %s", why);
}

/* The toolchain of its language is not installed, or its image is gone: that is for the client to
 * mend, or to have mended, and so looks like everything that is wrong in a request. */
static void answer_missing(struct run *r, const char *why)
{
	struct answer a = { .status = 422, .id = r->id };
	struct http_request *req = take_ptr(r->req);
	cleanup_free char *json = NULL;

	if (r->told)
		r->told(r->told_ctx, r, &(struct run_end){ .why = why, .missing = true });
	if (!req)
		return;
	http_request_set_data(req, NULL);
	json = api_missing_json(r->request.name, r->request.is_image, why, &a.len);
	a.json = json;
	answer_send(req, &a);
}

/* ---- execute and submit ---- */

static bool is_full(const struct queue *q)
{
	return q->running >= q->max_running && q->waiting >= q->max_waiting;
}

/* For a request that has not become a run. */
static void turn_away(struct runs *rs, struct http_request *req, const char *why)
{
	const struct answer a = { .status = 503, .retry_after_s = queue_retry_after_s(&rs->queue) };

	answer_detail(req, &a, "the code did not run: %s; try again later", why);
}

static void refill_later(struct runs *rs)
{
	static const struct timeval soon = { .tv_usec = REFILL_AFTER_MS * 1000 };

	/* Without memory for it: the next submission tries again. */
	if (!event_pending(rs->refill, EV_TIMEOUT, NULL))
		(void)event_add(rs->refill, &soon);
}

static void on_refill(evutil_socket_t fd, short what, void *arg)
{
	struct runs *rs = arg;

	(void)fd;
	(void)what;
	kits_fill(&rs->kits);
}

/* The program of it will not be run. */
static void give_build_back(const struct runs *rs, const struct run *r)
{
	const struct msg_cancel m = { .run = r->compiler.result.run };
	int e = link_send(rs->link, MSG_CANCEL, &m, NULL);

	if (e < 0)
		log_warn("cancel", "id=%s why=%s", r->id, LQ(strerror(-e)));
}

/* `r` has its turn. When it cannot be handed over the client is told, and the slot is
 * free again. */
static void submit(struct runs *rs, struct run *r)
{
	const struct run_way way = { rs->link, &rs->kits, rs->offers, &rs->hello->settings };
	struct fault f = { 0 };

	refill_later(rs);
	if (run_submit(r, rs->last_number + 1, &way, &f) == 0) {
		rs->last_number++;
		list_submitted(rs, r);
		return;
	}
	log_err("submit", "id=%s why=%s", r->id, LQ(f.text));
	if (r->part == RUN_BUILT)
		give_build_back(rs, r);
	queue_leave(&rs->queue, &r->ticket, clock_ns());
	answer_not_run(r, 503, 1, f.text);
	run_destroy(r);
}

static void advance(struct runs *rs)
{
	struct ticket *t;

	while ((t = queue_advance(&rs->queue, clock_ns())))
		submit(rs, run_of(t));
}

/* The checked request becomes a run; NULL when memory is short. */
static struct run *begin(struct api_request *request, struct http_request *req)
{
	struct run *r = run_create(request);

	if (!r) {
		api_request_free(request);
		return NULL;
	}
	r->req = req;
	http_request_set_data(req, r);
	return r;
}

void runs_execute(struct runs *rs, struct http_request *req)
{
	const struct api_server server = { &rs->hello->settings, rs->offers };
	struct api_request request = { 0 };
	struct api_refusal no = { 0 };
	enum ticket_state state;
	struct run *r = NULL;
	const void *body;
	size_t len;
	int e;

	/* Before the parsing: when there is too much to do, what cannot be done must
	 * cost least. */
	if (is_full(&rs->queue)) {
		turn_away(rs, req, "too many runs are going on and waiting");
		return;
	}
	body = http_request_body(req, &len);
	e = api_request_parse(body, len, &server, &request, &no);
	if (e == -EINVAL) {
		answer_send(req,
			&(struct answer){ .status = no.status, .json = no.json, .len = no.len });
		api_refusal_free(&no);
		return;
	}
	if (e == 0 && rs->closed) {
		api_request_free(&request);
		turn_away(rs, req, rs->closed);
		return;
	}
	if (e == 0)
		r = begin(&request, req);
	if (!r) {
		turn_away(rs, req, "out of memory");
		return;
	}
	state = queue_enter(&rs->queue, &r->ticket, r->entered_ns);
	CHECK(state != TICKET_OUT); /* it was not full a moment ago */
	if (state == TICKET_RUNNING)
		submit(rs, r);
}

int runs_begin(struct runs *rs, struct api_request *request, run_told_fn *told, void *ctx)
{
	struct run *r;

	if (rs->closed || is_full(&rs->queue))
		return -EAGAIN;
	r = run_create(request);
	if (!r)
		return -ENOMEM;
	r->told = told;
	r->told_ctx = ctx;
	if (queue_enter(&rs->queue, &r->ticket, r->entered_ns) == TICKET_RUNNING)
		submit(rs, r);
	return 0;
}

/* ---- the supervisor's answers ---- */

/* It is over for `r`; whoever waits is next. */
static void retire(struct runs *rs, struct run *r)
{
	unlist(rs, r);
	queue_leave(&rs->queue, &r->ticket, clock_ns());
	run_destroy(r);
	advance(rs);
}

static void show_files(struct api_reply *reply, const struct run *r, const struct msg_result *m)
{
	if (r->gather) {
		reply->files = &r->gather->list;
		reply->collect_us = r->gather->took_ns / NS_PER_US;
	} else {
		reply->files_lost = m->kept && r->request.artifacts != ARTIFACTS_NONE;
	}
}

static void answer_result(const struct runs *rs, struct run *r, const struct msg_result *m)
{
	struct http_request *req = take_ptr(r->req);
	struct api_report report CLEANUP(api_report_free) = { 0 };
	struct run_compiler *c = &r->compiler;
	bool failed = r->part == RUN_COMPILER;
	const struct msg_result result = failed ? api_compile_failure(m) : *m;
	struct output_capture none = { 0 };
	struct api_compile compile = { &c->result, &c->limits, NULL, NULL };
	struct api_reply reply = {
		.id = r->id,
		.hello = rs->hello,
		.result = &result,
		.limits = &r->request.limits,
		.output_bytes = r->request.output_bytes,
		.language = r->request.is_image ? NULL : r->request.name,
		.image = r->request.is_image ? r->request.name : NULL,
		.queue_us = r->queue_us,
		.warnings = &r->request.warnings,
		.report = &report,
		.timeline = !failed && r->request.interleaved ? &r->kit->timeline : NULL,
		.submitted_ns = r->submitted_ns,
	};
	struct answer a = {
		.status = 200,
		.id = r->id,
		.verdict = run_status_word(
			run_status_of((enum run_cause)result.cause, result.wait_status)),
		.cause = run_cause_word(result.cause),
	};
	cleanup_free struct network_record *network =
		r->network_fd >= 0 ? api_network_read(r->network_fd) : NULL;
	cleanup_free char *json = NULL;

	http_request_set_data(req, NULL);
	reply.network = network;
	reply.policy = r->request.network;
	reply.networked = r->request.allow_network && !failed;
	show_files(&reply, r, m);
	output_init(&none, 1);
	if (!failed)
		run_finish(r);
	reply.out = failed ? &none : &r->kit->out.kept;
	reply.err = failed ? &none : &r->kit->err.kept;
	if (c->kit) {
		compile.out = &c->kit->out.kept;
		compile.err = &c->kit->err.kept;
		reply.compile = &compile;
	}
	if (!failed && api_request_report(&r->request))
		api_report_read(r->kit->report_fd, &report);
	json = api_reply_json(&reply, &a.len);
	a.json = json;
	answer_send(req, &a);
}

/* A run of our own has ended. */
static void tell(struct run *r, const struct msg_result *m)
{
	struct msg_result failure;

	if (r->part == RUN_COMPILER) { /* which has failed */
		failure = api_compile_failure(m);
		m = &failure;
	} else {
		run_finish(r);
	}
	r->told(r->told_ctx, r, &(struct run_end){ .result = m });
}

/* The compiler has ended. True: the run is in the program's part now, or over; false: it is to be
 * answered as one whose compiler has failed. */
static bool has_compiled(struct runs *rs, struct run *r, const struct msg_result *m)
{
	if (!r->kit)
		return false; /* nobody waits: it is cancelled */
	run_finish(r);
	r->compiler.result = *m;
	r->compiler.kit = take_ptr(r->kit);
	if (run_status_of((enum run_cause)m->cause, m->wait_status) != STATUS_SUCCESS)
		return false;
	unlist(rs, r);
	if (r->cancelled) {
		/* What was made is gone by that. */
		queue_leave(&rs->queue, &r->ticket, clock_ns());
		answer_not_run(r, 503, queue_retry_after_s(&rs->queue), "it was cancelled");
		run_destroy(r);
	} else {
		submit(rs, r);
	}
	advance(rs);
	return true;
}

/* ---- its files ---- */

/* Once for each run: the link's room is reckoned so. */
static void cancel(struct runs *rs, struct run *r)
{
	const struct msg_cancel m = { .run = r->number };
	int e;

	if (r->cancelled)
		return;
	r->cancelled = true;
	e = link_send(rs->link, MSG_CANCEL, &m, NULL);
	/* The run still ends at its deadline. */
	if (e < 0)
		log_warn("cancel", "id=%s why=%s", r->id, LQ(strerror(-e)));
}

static void on_gathered(struct gather *g, void *ctx)
{
	struct run *r = ctx;

	/* Before the answer says where they are. Without memory for it they go with the run. */
	if (r->runs->shelf && shelf_put(r->runs->shelf, r->id, &g->list) < 0)
		artifacts_unkeep(&g->list);
	answer_result(r->runs, r, &r->result);
	retire(r->runs, r);
}

/* The verdict is there, and a workspace that is not as it was: have it read. False: it cannot be,
 * and the reply says so. */
static bool collect(struct runs *rs, struct run *r, const struct msg_result *m)
{
	const struct settings *s = &rs->hello->settings;
	const struct artifacts_plan plan = {
		.mode = r->request.artifacts,
		.caps = { .count = s->artifact_files,
			.file_bytes = s->artifact_file_bytes,
			.total_bytes = s->artifact_bytes },
		.inline_bytes = s->artifact_inline_bytes,
		.keeper = rs->shelf ? shelf_keeper(rs->shelf) : NULL,
	};
	const struct msg_collect ask = { .run = r->number };
	struct fault f = { 0 };
	int fd = -1, e;

	r->runs = rs;
	r->result = *m;
	r->gather = gather_create(rs->base, &plan, on_gathered, r, &fd, &f);
	if (r->gather) {
		e = link_send(rs->link, MSG_COLLECT, &ask, &fd); /* takes it */
		if (e == 0)
			return true;
		(void)fault_set(&f, e, "send it to the supervisor");
		gather_destroy(take_ptr(r->gather));
	}
	log_warn("collect", "id=%s why=%s", r->id, LQ(f.text));
	cancel(rs, r);
	return false;
}

int runs_on_result(struct runs *rs, const struct msg_result *m)
{
	struct run *r = find_submitted(rs, m->run);

	if (!r || m->cause >= CAUSE_COMPILE) {
		log_err("result", "run=%" PRIu64 " cause=%" PRIu32 " why=\"no such run or cause\"",
			m->run, m->cause);
		return -EPROTO;
	}
	if (r->part == RUN_COMPILER && has_compiled(rs, r, m))
		return 0;
	if (m->kept && r->req && collect(rs, r, m))
		return 0;
	if (r->req)
		answer_result(rs, r, m);
	else if (r->told)
		tell(r, m);
	retire(rs, r);
	return 0;
}

int runs_on_refused(struct runs *rs, struct msg_refused *m)
{
	struct run *r = find_submitted(rs, m->run);

	if (!r) {
		log_err("refused", "run=%" PRIu64 " why=\"no such run\"", m->run);
		return -EPROTO;
	}
	(void)fault_launder(&m->fault);
	log_warn("refused", "id=%s retry=%" PRIu32 " why=%s", r->id, m->retry, LQ(m->fault.text));
	if (m->missing)
		answer_missing(r, m->fault.text);
	else if (m->retry)
		answer_not_run(r, 503, queue_retry_after_s(&rs->queue), m->fault.text);
	else
		answer_not_run(r, 500, 0, m->fault.text);
	retire(rs, r);
	return 0;
}

/* ---- gone, closed ---- */

void runs_on_gone(struct runs *rs, struct http_request *req)
{
	struct run *r = http_request_data(req);

	answer_gone(req, r ? r->id : NULL);
	if (!r)
		return;
	if (r->ticket.state == TICKET_RUNNING) {
		cancel(rs, r);
		run_abandon(r);
		/* Its verdict was there: nothing more comes from the supervisor. */
		if (r->gather)
			retire(rs, r);
		return;
	}
	queue_leave(&rs->queue, &r->ticket, clock_ns());
	run_destroy(r);
}

void runs_cancel_all(struct runs *rs)
{
	for (struct run *r = rs->submitted; r; r = r->next)
		cancel(rs, r);
}

void runs_open(struct runs *rs)
{
	rs->closed = NULL;
}

void runs_close(struct runs *rs, const char *why)
{
	struct ticket *t;

	rs->closed = why;
	while ((t = rs->queue.first)) {
		struct run *r = run_of(t);

		queue_leave(&rs->queue, t, clock_ns());
		answer_not_run(r, 503, queue_retry_after_s(&rs->queue), why);
		run_destroy(r);
	}
}

int runs_init(struct runs *rs, struct event_base *base, struct link *link,
	const struct msg_hello *hello, const struct offers *offers)
{
	const struct settings *s = &hello->settings;

	*rs = (struct runs){ .link = link, .hello = hello, .offers = offers, .base = base };
	rs->closed = "the server is starting";
	queue_init(&rs->queue, s->max_runs, s->max_queue, s->def.timeout_us * NS_PER_US);
	kits_init(&rs->kits, base, s->max_runs, s->output_bytes);
	kits_fill(&rs->kits);
	rs->refill = evtimer_new(base, on_refill, rs);
	return rs->refill ? 0 : -ENOMEM;
}

void runs_done(struct runs *rs)
{
	struct run *r;

	while (rs->queue.first) {
		r = run_of(rs->queue.first);
		queue_leave(&rs->queue, &r->ticket, clock_ns());
		run_destroy(r);
	}
	while ((r = rs->submitted)) {
		unlist(rs, r);
		run_destroy(r);
	}
	kits_done(&rs->kits);
	if (rs->refill)
		event_free(rs->refill);
}
