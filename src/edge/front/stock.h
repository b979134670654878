/* GET /runtimes: what there is of each language. What only a program of the language can tell, its
 * version and its packages, is found out by the first who asks, with ordinary runs of the programs
 * that the manifests have for it, one after the other; whoever asks meanwhile waits with him. What
 * was found is kept. What was not installed or could not be run is looked at again by the next who
 * asks, which costs nothing; a program that failed, in a minute: it can have taken all of its limits, and
 * anybody may ask. Of images the supervisor tells what is installed in them.
 *
 *   runs in    the front
 *   owns       what was found; the requests that wait
 *   threads    none
 *   blocks     never
 */
#pragma once

#include "api/runtimes.h"
#include "wire/msg.h"

#include <stdbool.h>

struct http_request;
struct runs;
struct waiter;

struct stock {
	struct runs *runs; /* borrowed, as the next three */
	const struct offers *offers;
	const struct settings *settings;
	const struct msg_health *health;
	struct inventory of[LANGUAGES_MAX];
	uint64_t again_ns[LANGUAGES_MAX]; /* the program of that one has failed: not before */
	bool looking;
	uint32_t next; /* language, while looking */
	struct waiter *waiters;
};

void stock_init(struct stock *st, struct runs *runs, const struct msg_hello *hello,
	const struct msg_health *health, const struct offers *offers) __attribute__((nonnull));
/* Forgets who waits; their requests must be gone already. */
void stock_done(struct stock *st) __attribute__((nonnull));

/* Answer now or later. */
void stock_request(struct stock *st, struct http_request *req) __attribute__((nonnull));

/* The client left: it may be one of those who wait. */
void stock_on_gone(struct stock *st, const struct http_request *req) __attribute__((nonnull));

/* The inventory of the image of that number is in the file `fd`, which stays the caller's. */
void stock_take(struct stock *st, uint32_t number, int fd) __attribute__((nonnull));
/* The number is another image's now, or nobody's. */
void stock_forget(struct stock *st, uint32_t number) __attribute__((nonnull));
