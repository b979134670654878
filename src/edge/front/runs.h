/* All runs of the front: which wait, which are with the supervisor, and the answer that
 * each of them gets.
 *
 *   runs in    the front
 *   owns       every struct run, from runs_execute() to its answer
 *   threads    none
 *   trusts     the supervisor; no byte of a request's body
 */
#pragma once

#include "edge/front/kit.h"
#include "edge/front/queue.h"
#include "edge/front/run.h"
#include "wire/msg.h"

#include <stdbool.h>
#include <stdint.h>

struct event;
struct event_base;
struct http_request;
struct link;
struct api_request;
struct run;
struct shelf;

struct runs {
	struct link *link; /* borrowed, as the next */
	const struct msg_hello *hello;
	const struct offers *offers;
	struct queue queue;
	struct kits kits;
	struct shelf *shelf; /* where files stay for a while; NULL: nowhere */
	struct event_base *base;
	struct event *refill;  /* of the kits */
	struct run *submitted; /* all that the supervisor knows */
	uint64_t last_number;
	const char *closed; /* why no run is taken; NULL while runs are */
};

/* Closed at first. `hello` and `offers` must outlive it. 0 or -ENOMEM; runs_done() is due in both cases. */
int runs_init(struct runs *rs, struct event_base *base, struct link *link,
	const struct msg_hello *hello, const struct offers *offers) __attribute__((nonnull));
/* Forgets all runs without answering; their requests must be gone already. */
void runs_done(struct runs *rs) __attribute__((nonnull));

/* POST /execute: answered now, or when its run has ended. */
void runs_execute(struct runs *rs, struct http_request *req) __attribute__((nonnull));

/* A run of our own, of a checked request, which it owns from now on (emptied). `told` is called when
 * it has ended or cannot be run, perhaps before this returns. -EAGAIN: there is no room, or no run
 * is taken; -ENOMEM. */
int runs_begin(struct runs *rs, struct api_request *request, run_told_fn *told, void *ctx)
	__attribute__((nonnull));

/* The client left before the answer. Takes requests without a run, too. */
void runs_on_gone(struct runs *rs, struct http_request *req) __attribute__((nonnull));

/* The supervisor's answers. -EPROTO for one that makes no sense: it is told to the log,
 * and nothing else happens. */
int runs_on_result(struct runs *rs, const struct msg_result *m) __attribute__((nonnull));
int runs_on_refused(struct runs *rs, struct msg_refused *m) __attribute__((nonnull));

/* Take runs again; take no more, sending away those who wait. `why` stays the caller's
 * and must live until the next call of either. */
void runs_open(struct runs *rs) __attribute__((nonnull));
void runs_close(struct runs *rs, const char *why) __attribute__((nonnull));

/* Ask the supervisor to end all that runs; the answers come as ever. */
void runs_cancel_all(struct runs *rs) __attribute__((nonnull));
