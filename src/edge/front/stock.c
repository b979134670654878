#include "edge/front/stock.h"

#include "api/request.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "edge/front/answer.h"
#include "edge/front/kit.h"
#include "edge/front/run.h"
#include "edge/front/runs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FAILED_NS (60 * NS_PER_S)

struct waiter {
	struct http_request *req;
	struct waiter *next;
};

void stock_init(struct stock *st, struct runs *runs, const struct msg_hello *hello,
	const struct msg_health *health, const struct offers *offers)
{
	*st = (struct stock){
		.runs = runs,
		.offers = offers,
		.settings = &hello->settings,
		.health = health,
	};
}

void stock_done(struct stock *st)
{
	for (struct waiter *w = st->waiters, *next; w; w = next) {
		next = w->next;
		free(w);
	}
	st->waiters = NULL;
	for (uint32_t i = 0; i < LANGUAGES_MAX; i++)
		inventory_clear(&st->of[i]);
}

static void answer(struct stock *st, struct http_request *req)
{
	struct answer a = { .status = 200 };
	uint32_t warm = st->health->warm_images | (st->health->warm == WARM_ON);
	cleanup_free char *json = api_runtimes_json(st->offers, st->settings, warm, st->of, &a.len);

	a.json = json;
	answer_send(req, &a);
}

static void answer_all(struct stock *st)
{
	struct waiter *w = take_ptr(st->waiters), *next;

	for (; w; w = next) {
		next = w->next;
		answer(st, w->req);
		free(w);
	}
}

static void look_on(struct stock *st);

/* What an inventory's run has found. */
static void take(struct inventory *in, struct run *r, const struct msg_result *m)
{
	struct output_view out;
	char text[128];

	if (run_status_of((enum run_cause)m->cause, m->wait_status) != STATUS_SUCCESS) {
		(void)snprintf(text, sizeof(text),
			"the inventory of the manifest ended with %s, exit code %d",
			run_cause_word(m->cause),
			run_exit_code((enum run_cause)m->cause, m->wait_status));
		inventory_lack(in, INVENTORY_FAILED, text);
		return;
	}
	out = output_view(&r->kit->out.kept);
	if (inventory_take(in, out.head, out.head_len, false) < 0)
		inventory_lack(in, INVENTORY_FAILED, "out of memory");
}

static void on_told(void *ctx, struct run *r, const struct run_end *end)
{
	struct stock *st = ctx;
	uint32_t number = st->next++;
	struct inventory *in = &st->of[number];

	if (end->result)
		take(in, r, end->result);
	else
		inventory_lack(in, end->missing ? INVENTORY_MISSING : INVENTORY_FAILED, end->why);
	if (end->result && in->state == INVENTORY_FAILED)
		st->again_ns[number] = clock_ns() + FAILED_NS;
	look_on(st);
}

/* 0: on_told() is called, now or later. */
static int look_at(struct stock *st, uint32_t number)
{
	const struct offer *o = &st->offers->of[number];
	struct api_request request = { .language = number,
		.output_bytes = st->settings->output_bytes };
	int r;

	offers_limits(st->offers, number, st->settings, &request.limits);
	request.code = strdup(o->inventory);
	if (!request.code)
		return -ENOMEM;
	request.code_len = strlen(request.code);
	r = runs_begin(st->runs, &request, on_told, st);
	if (r < 0)
		api_request_free(&request);
	return r;
}

/* The next one that is not known; when there is none everybody gets the answer. */
static void look_on(struct stock *st)
{
	for (; st->next < st->offers->count; st->next++) {
		struct inventory *in = &st->of[st->next];

		if (in->state == INVENTORY_KNOWN || st->offers->of[st->next].is_image ||
			clock_ns() < st->again_ns[st->next])
			continue;
		if (look_at(st, st->next) == 0)
			return;
		inventory_lack(in, INVENTORY_FAILED, "this server takes no run now");
	}
	st->looking = false;
	answer_all(st);
}

void stock_request(struct stock *st, struct http_request *req)
{
	struct waiter *w = malloc(sizeof(*w));

	if (!w) {
		answer(st, req); /* with what is known */
		return;
	}
	*w = (struct waiter){ req, st->waiters };
	st->waiters = w;
	if (st->looking)
		return;
	st->looking = true;
	st->next = 0;
	look_on(st);
}

void stock_on_gone(struct stock *st, const struct http_request *req)
{
	for (struct waiter **w = &st->waiters; *w; w = &(*w)->next) {
		struct waiter *gone = *w;

		if (gone->req != req)
			continue;
		*w = gone->next;
		free(gone);
		return;
	}
}

void stock_take(struct stock *st, uint32_t number, int fd)
{
	cleanup_free char *text = malloc(IMAGE_INVENTORY_MAX);
	ssize_t n = text ? io_read_all(fd, text, IMAGE_INVENTORY_MAX) : -ENOMEM;

	stock_forget(st, number);
	if (n >= 0 && inventory_take(&st->of[number], text, (size_t)n, true) < 0)
		stock_forget(st, number);
}

void stock_forget(struct stock *st, uint32_t number)
{
	inventory_clear(&st->of[number]);
}
