/* What happens where: routes.c judges each head before a body is read; the small documents
 * are answered here; POST /execute becomes a run (runs.c). The supervisor's messages come
 * in here and go on to the runs, but for HEALTH, which opens and closes them, and DRAIN:
 *
 *   DRAIN      no new connection, those who wait are sent away, what runs may go on
 *   grace      is over: everything is cancelled, the answers still go out
 *   idle       nothing runs and no connection is left: the process ends, with 0
 *   last words are over: it ends all the same, with 1
 */
#include "edge/front/front.h"

#include "api/documents.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "edge/front/answer.h"
#include "edge/front/download.h"
#include "edge/front/kit.h"
#include "edge/front/link.h"
#include "edge/front/routes.h"
#include "edge/front/runs.h"
#include "edge/front/shelf.h"
#include "edge/front/stock.h"
#include "edge/http/server.h"
#include "wire/inputs.h"
#include "wire/report.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

/* Deadlines of a connection's phases. A kept connection costs a descriptor and little
 * else; a body of 4 MiB in 30 s is 140 kB/s; lingering is for the last bytes of an error. */
#define IDLE_MS   60000u
#define HEAD_MS   10000u
#define BODY_MS   30000u
#define LINGER_MS 2000u

/* Bodies of the largest size that memory is spent on at a time. Programs are kilobytes:
 * hundreds of ordinary ones fit, and a crowd of great ones does not take the machine. */
#define BODIES_MAX 16

/* Beside what all runs' streams may hold: answers that clients are slow to take. One is at
 * most some twelve times its streams, when all of it has to be escaped. */
#define REPLIES_BYTES (UINT64_C(64) << 20)

/* How long runs that were cancelled when the grace was over may take to be answered. */
#define LAST_WORDS_S 5

/* When the line of an answer is written. Not before the answer, nor at once: it wakes the
 * supervisor, and both would keep a CPU from the client. */
#define LOG_AFTER_MS 2

struct front {
	struct event_base *base;
	struct link *link;
	struct http_server *http;
	struct event *drain_timer, *log_timer;
	struct msg_hello hello;
	struct offers *offers; /* NULL: none */
	struct msg_health health;
	enum reach reach;
	struct msg_selftest selftest;
	bool has_health, draining, http_idle, cut_off, stopped;
	int status;
	struct shelf *shelf; /* NULL: files are not kept */
	struct runs runs;
	struct stock stock;
	char *openapi, *limits; /* the documents that never change */
	size_t openapi_len, limits_len;
};

static void stop(struct front *fr, int status)
{
	if (fr->stopped)
		return;
	fr->stopped = true;
	fr->status = status;
	(void)event_base_loopbreak(fr->base);
}

static void stop_when_drained(struct front *fr)
{
	if (fr->draining && fr->http_idle && fr->runs.queue.running == 0)
		stop(fr, 0);
}

static void health(struct front *fr, struct http_request *req)
{
	const struct api_health h = {
		.version = GLOVEBOX_VERSION,
		.hello = &fr->hello,
		.health = fr->has_health ? &fr->health : NULL,
		.selftest = &fr->selftest,
		.running = fr->runs.queue.running,
		.queued = fr->runs.queue.waiting,
		.draining = fr->draining,
	};
	struct answer a = { .status = api_health_ready(&h) ? 200 : 503 };
	cleanup_free char *json = api_health_json(&h, &a.len);

	a.json = json;
	answer_send(req, &a);
}

static void document(struct http_request *req, const char *json, size_t len)
{
	answer_send(req, &(struct answer){ .status = 200, .json = json, .len = len });
}

static int on_head(struct http_request *req, void *ctx)
{
	const struct front *fr = ctx;
	const struct route_head head = {
		.method = http_request_method(req),
		.path = http_request_path(req),
		.host = http_request_header(req, "Host"),
		.origin = http_request_header(req, "Origin"),
		.content_type = http_request_header(req, "Content-Type"),
	};

	return route_judge(&head, fr->reach);
}

static void on_request(struct http_request *req, void *ctx)
{
	struct front *fr = ctx;
	int refused = http_request_refused(req);

	if (refused != 0) {
		answer_refusal(req, refused);
		return;
	}
	switch (route_by_path(http_request_path(req))) {
	case ROUTE_EXECUTE:
		runs_execute(&fr->runs, req);
		return;
	case ROUTE_HEALTH:
		health(fr, req);
		return;
	case ROUTE_LIMITS:
		document(req, fr->limits, fr->limits_len);
		return;
	case ROUTE_RUNTIMES:
		stock_request(&fr->stock, req);
		return;
	case ROUTE_OPENAPI:
		document(req, fr->openapi, fr->openapi_len);
		return;
	case ROUTE_FILE:
		download_file(fr->shelf, req);
		return;
	case ROUTE_ARCHIVE:
		download_archive(fr->shelf, req);
		return;
	case ROUTE_MAX:
		break;
	}
	answer_refusal(req, 404);
}

static void on_gone(struct http_request *req, void *ctx)
{
	struct front *fr = ctx;

	stock_on_gone(&fr->stock, req);
	runs_on_gone(&fr->runs, req);
}

static void on_bad(const char *peer, int status, void *ctx)
{
	(void)ctx;
	answer_bad(peer, status);
}

/* ---- the supervisor's messages ---- */

static void on_health(struct front *fr, struct msg_health *m)
{
	if (m->why.text[0])
		(void)fault_launder(&m->why);
	if (m->warm_why.text[0])
		(void)fault_launder(&m->warm_why);
	fr->health = *m;
	fr->has_health = true;
	if (fr->draining)
		return; /* that is for good */
	if (m->ready)
		runs_open(&fr->runs);
	else
		runs_close(&fr->runs, m->why.text[0] ? fr->health.why.text : "not ready");
}

/* An image has come into the store, or has gone. */
static void on_offer(struct front *fr, const struct msg_offer *m)
{
	const char *why = offers_put(fr->offers, m->number, m->edition, &m->offer);

	if (why)
		log_warn("offer", "number=%" PRIu32 " why=\"%s\"", m->number, why);
	else
		stock_forget(&fr->stock, m->number);
}

/* What is installed in it. */
static void on_inventory(struct front *fr, const struct msg_inventory *m, int fd)
{
	const struct offers *all = fr->offers;

	if (m->number < all->count && all->of[m->number].is_image &&
		all->editions[m->number] == m->edition)
		stock_take(&fr->stock, m->number, fd);
	else
		log_warn("inventory", "number=%" PRIu32 " why=\"it is no image's\"", m->number);
}

/* ---- the end ---- */

static void on_http_idle(void *ctx)
{
	struct front *fr = ctx;

	fr->http_idle = true;
	stop_when_drained(fr);
}

/* The grace is over: first for the programs, then for everybody. */
static void on_drain_timer(evutil_socket_t fd, short what, void *ctx)
{
	static const struct timeval last = { .tv_sec = LAST_WORDS_S };
	struct front *fr = ctx;

	(void)fd;
	(void)what;
	if (fr->cut_off || evtimer_add(fr->drain_timer, &last) < 0) {
		log_warn("drain", "running=%" PRIu32 " connections=%u why=\"grace is over\"",
			fr->runs.queue.running, http_server_connections(fr->http));
		stop(fr, 1);
		return;
	}
	fr->cut_off = true;
	runs_cancel_all(&fr->runs);
}

static void drain(struct front *fr, const struct msg_drain *m)
{
	const struct timeval grace = {
		.tv_sec = (time_t)(m->grace_us / 1000000),
		.tv_usec = (suseconds_t)(m->grace_us % 1000000),
	};

	if (fr->draining)
		return;
	fr->draining = true;
	log_info("drain", "running=%" PRIu32 " waiting=%" PRIu32, fr->runs.queue.running,
		fr->runs.queue.waiting);
	if (evtimer_add(fr->drain_timer, &grace) < 0)
		log_err("drain", "why=\"no timer, waiting without a bound\"");
	/* The server first, so that the answers to those who wait carry Connection: close. */
	http_server_drain(fr->http, on_http_idle, fr);
	runs_close(&fr->runs, "the server is shutting down");
}

static void on_message(struct msg *m, void *ctx)
{
	struct front *fr = ctx;

	/* An answer to a run that is not there is the supervisor's fault, in the log, and
	 * no reason to leave all other runs without theirs. */
	if (m->type == MSG_RESULT)
		(void)runs_on_result(&fr->runs, &m->as.RESULT);
	else if (m->type == MSG_REFUSED)
		(void)runs_on_refused(&fr->runs, &m->as.REFUSED);
	else if (m->type == MSG_HEALTH)
		on_health(fr, &m->as.HEALTH);
	else if (m->type == MSG_OFFER && fr->offers)
		on_offer(fr, &m->as.OFFER);
	else if (m->type == MSG_INVENTORY && fr->offers)
		on_inventory(fr, &m->as.INVENTORY, m->fds[0]);
	else if (m->type == MSG_SELFTEST)
		fr->selftest = m->as.SELFTEST;
	else if (m->type == MSG_DRAIN)
		drain(fr, &m->as.DRAIN);
	else
		log_warn("message", "type=%s why=\"not expected now\"", msg_name(m->type));
	stop_when_drained(fr);
}

/* Without the supervisor nothing can be answered: not even what became of the runs. */
static void on_lost(const char *why, void *ctx)
{
	log_err("supervisor_lost", "why=\"%s\"", why);
	stop(ctx, 1);
}

/* ---- life cycle ---- */

static int create_http(struct front *fr, int *listen_fd)
{
	const struct settings *s = &fr->hello.settings;
	const struct http_limits limits = {
		.body_bytes = s->body_bytes,
		.bodies_bytes = BODIES_MAX * s->body_bytes,
		.replies_bytes = REPLIES_BYTES + 2 * s->output_bytes * s->max_runs,
		.connections = s->max_connections,
		.idle_ms = IDLE_MS,
		.head_ms = HEAD_MS,
		.body_ms = BODY_MS,
		.linger_ms = LINGER_MS,
	};
	const struct http_calls calls = {
		.head = on_head,
		.handler = on_request,
		.gone = on_gone,
		.bad = on_bad,
		.ctx = fr,
	};

	fr->http = http_server_create(fr->base, *listen_fd, &limits, &calls);
	if (!fr->http)
		return -ENOMEM;
	(void)take_fd(listen_fd);
	return 0;
}

static void on_log_timer(evutil_socket_t fd, short what, void *arg)
{
	(void)fd;
	(void)what;
	(void)arg;
	log_flush();
}

static void on_log_held(void *arg)
{
	static const struct timeval soon = { .tv_usec = LOG_AFTER_MS * 1000 };
	struct front *fr = arg;

	(void)evtimer_add(fr->log_timer, &soon);
}

/* /dev/null is there where the supervisor had no file to give. */
static int open_shelf(struct front *fr, int *fd)
{
	const struct settings *s = &fr->hello.settings;
	struct stat st;

	if (s->artifact_store == 0 || *fd < 0 || fstat(*fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	fr->shelf = shelf_create(fr->base, take_fd(fd), s->artifact_store, s->artifact_keep_us);
	return fr->shelf ? 0 : -ENOMEM;
}

static int fill(struct front *fr, const struct front_plan *plan, struct fault *f)
{
	static const struct offers nothing = { .count = 0 };
	const struct offers *offers = plan->offers ? plan->offers : &nothing;
	const struct settings *s = &fr->hello.settings;
	const struct link_calls calls = { .got = on_message, .lost = on_lost, .ctx = fr };
	cleanup_fd int listen_fd = plan->listen_fd, store_fd = plan->store_fd;

	/* Room for a COLLECT and a CANCEL of each run, and a SUBMIT and a CANCEL of the one that has
	 * its slot then, as a client that leaves while files arrive frees it at once: more cannot wait
	 * at a time. */
	fr->link = link_create(fr->base, plan->channel_fd, 4 * s->max_runs, &calls);
	if (!fr->link)
		return fault_set(f, -ENOMEM, "channel to the supervisor");
	if (open_shelf(fr, &store_fd) < 0)
		return fault_set(f, -ENOMEM, "shelf");
	if (runs_init(&fr->runs, fr->base, fr->link, &fr->hello, offers) < 0)
		return fault_set(f, -ENOMEM, "runs");
	fr->runs.shelf = fr->shelf;
	stock_init(&fr->stock, &fr->runs, &fr->hello, &fr->health, offers);
	fr->openapi = api_openapi_json(s, &fr->openapi_len);
	fr->limits = api_limits_json(s, &fr->limits_len);
	fr->drain_timer = evtimer_new(fr->base, on_drain_timer, fr);
	fr->log_timer = evtimer_new(fr->base, on_log_timer, fr);
	if (!fr->openapi || !fr->limits || !fr->drain_timer || !fr->log_timer)
		return fault_set(f, -ENOMEM, "documents");
	if (create_http(fr, &listen_fd) < 0)
		return fault_set(f, -ENOMEM, "HTTP server");
	return 0;
}

struct front *front_create(const struct front_plan *plan, struct fault *f)
{
	struct front *fr = calloc(1, sizeof(*fr));

	if (!fr) {
		(void)close(plan->channel_fd);
		(void)close(plan->listen_fd);
		if (plan->store_fd >= 0)
			(void)close(plan->store_fd);
		(void)fault_set(f, -ENOMEM, "front");
		return NULL;
	}
	fr->base = plan->base;
	fr->hello = *plan->hello;
	fr->offers = plan->offers;
	fr->reach = route_reach(&fr->hello.settings.listen);
	if (fill(fr, plan, f) < 0) {
		front_destroy(fr);
		return NULL;
	}
	return fr;
}

void front_destroy(struct front *fr)
{
	if (!fr)
		return;
	/* The server first: it may still say that clients are gone. */
	http_server_destroy(fr->http);
	stock_done(&fr->stock);
	runs_done(&fr->runs);
	shelf_destroy(fr->shelf);
	link_destroy(fr->link);
	if (fr->drain_timer)
		event_free(fr->drain_timer);
	if (fr->log_timer)
		event_free(fr->log_timer);
	free(fr->openapi);
	free(fr->limits);
	free(fr);
}

int front_run(struct front *fr)
{
	log_hold(on_log_held, fr);
	if (!fr->stopped && event_base_dispatch(fr->base) != 0)
		log_err("loop", "why=\"the event loop ended\"");
	log_hold(NULL, NULL);
	return fr->stopped ? fr->status : 1;
}

uint64_t front_file_bytes(const struct settings *s)
{
	uint64_t most = s->code_bytes + s->input_bytes + INPUTS_FRAME_MAX;

	most = most > REPORT_BYTES ? most : REPORT_BYTES;
	return s->artifact_store > most ? s->artifact_store : most;
}

uint32_t front_open_files(const struct settings *s)
{
	/* Of each run its three streams and the report, and five more while its SUBMIT waits for the
	 * channel; as many of each kit in stock. When it has ended, the two ends of the pipe for its
	 * files. */
	return 64 + s->max_connections + 11 * s->max_runs + 9 * KITS_MAX;
}
