/* One run as the front sees it: the request it came from, its place in the queue, the
 * descriptors that go to the supervisor and the streams that come back.
 *
 *   runs in    the front
 *   owns       its request, its kit; borrows the HTTP request
 *   threads    none
 *   blocks     never
 */
#pragma once

#include "api/request.h"
#include "edge/front/queue.h"
#include "wire/msg.h"

#include <stdbool.h>
#include <stdint.h>

struct fault;
struct http_request;
struct gather;
struct kit;
struct kits;
struct link;
struct runs;

#define RUN_ID_ROOM 33 /* 128 random bits in hexadecimal */

struct run;

/* What became of a run that is the front's own, without a client. */
struct run_end {
	const struct msg_result *result; /* NULL: it was not run, and `why` */
	const char *why;
	bool missing; /* because its language is not installed */
};
typedef void run_told_fn(void *ctx, struct run *r, const struct run_end *end);

struct run {
	struct ticket ticket;     /* first: a ticket of the queue is its run */
	struct run *prev, *next;  /* among those submitted */
	struct runs *runs;        /* whose it is, once files are collected */
	struct http_request *req; /* NULL once the client has left */
	run_told_fn *told;        /* of a run of our own; else NULL */
	void *told_ctx;
	bool cancelled;             /* CANCEL was sent */
	uint64_t number;            /* its name on the channel; 0 until it is submitted */
	char id[RUN_ID_ROOM];       /* its name for everybody else */
	struct api_request request; /* without code and inputs once it is submitted */
	struct run_compiler {
		struct msg_result result;
		struct run_limits limits;
		struct kit *kit; /* its streams; NULL: it has not ended, or there is none */
	} compiler;
	enum run_part part;       /* what was submitted last */
	int network_fd;           /* memory that it shares with its gate; -1: none */
	struct kit *kit;          /* its streams, from its submission until nobody waits */
	struct gather *gather;    /* its files, while they arrive */
	struct msg_result result; /* ...and the verdict, which has come before them */
	uint64_t entered_ns, submitted_ns, queue_us;
};

/* A run with an id of its own, which owns `request` from now on (emptied). NULL: out of
 * memory, `request` is untouched. */
struct run *run_create(struct api_request *request) __attribute__((nonnull, warn_unused_result));
void run_destroy(struct run *r);

struct run_way {
	struct link *link;
	struct kits *kits;
	const struct offers *offers;
	const struct settings *settings;
};

/* Take a kit (kit.h), put code, inputs and stdin into it and send SUBMIT as `number`. On failure
 * nothing was sent. */
int run_submit(struct run *r, uint64_t number, const struct run_way *way, struct fault *f)
	__attribute__((nonnull));

/* The verdict is there: take the rest of the output. */
void run_finish(struct run *r) __attribute__((nonnull));

/* Nobody waits for the answer any more: let go of the output; its number stays taken
 * until the supervisor has answered. */
void run_abandon(struct run *r) __attribute__((nonnull));
