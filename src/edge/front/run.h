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

#include <stdbool.h>
#include <stdint.h>

struct fault;
struct http_request;
struct kit;
struct kits;
struct link;

#define RUN_ID_ROOM 33 /* 128 random bits in hexadecimal */

struct run {
	struct ticket ticket;       /* first: a ticket of the queue is its run */
	struct run *prev, *next;    /* among those submitted */
	struct http_request *req;   /* NULL once the client has left */
	bool cancelled;             /* CANCEL was sent */
	uint64_t number;            /* its name on the channel; 0 until it is submitted */
	char id[RUN_ID_ROOM];       /* its name for everybody else */
	struct api_request request; /* without the code once it is submitted */
	struct kit *kit;            /* its streams, from its submission until nobody waits */
	uint64_t entered_ns, queue_us;
};

/* A run with an id of its own, which owns `request` from now on (emptied). NULL: out of
 * memory, `request` is untouched. */
struct run *run_create(struct api_request *request) __attribute__((nonnull, warn_unused_result));
void run_destroy(struct run *r);

struct run_way {
	struct link *link;
	struct kits *kits;
};

/* Take a kit (kit.h), seal the code into it and send SUBMIT as `number`. On failure
 * nothing was sent. */
int run_submit(struct run *r, uint64_t number, const struct run_way *way, struct fault *f)
	__attribute__((nonnull));

/* The verdict is there: take the rest of the output. */
void run_finish(struct run *r) __attribute__((nonnull));

/* Nobody waits for the answer any more: let go of the output; its number stays taken
 * until the supervisor has answered. */
void run_abandon(struct run *r) __attribute__((nonnull));
