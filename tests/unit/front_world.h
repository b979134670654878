/* The front as a whole but for its confinement: it runs in a thread, the test is its supervisor and its
 * clients, over a real channel and real connections on loopback. Everything waits for events with a
 * deadline.
 *
 *   runs in    unit tests
 */
#pragma once

#include "edge/front/front.h"
#include "wire/channel.h"

#include <event2/event.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#define DEADLINE_S 20
#define MIB        (1024 * 1024)

struct world {
	struct event_base *base;
	struct front *front;
	pthread_t thread;
	bool joined;
	int status;     /* what front_run() returned */
	int supervisor; /* our end of the channel */
	uint16_t port;
};

struct reply {
	int status;
	char head[2048];
	json_t *body;
};

/* ---- The front ---- */

/* As its supervisor greets it with room for so many runs. */
struct msg_hello world_hello_of(uint32_t max_runs, uint32_t max_queue);

/* A front that was greeted so, with languages (borrowed; NULL: none); and one that is ready. */
void world_start_as(struct world *w, const struct msg_hello *hello, struct offers *offers);
void world_start(struct world *w, uint32_t max_runs, uint32_t max_queue);
void world_start_ready(struct world *w, uint32_t max_runs, uint32_t max_queue);

/* Until it ends by itself: what front_run() has returned. */
int world_join(struct world *w);

/* It is ended, and is gone. */
void world_finish(struct world *w);

/* ---- Its clients ---- */

int world_dial(const struct world *w);

/* A connection on which `method path` with `headers` (each with its CRLF) and `body` has been sent;
 * and a run of that code. */
int world_ask(const struct world *w, const char *start_line, const char *headers, const char *body);
int world_ask_to_run(const struct world *w, const char *code);

/* The answer on `fd`, which is closed. */
void world_hear(int fd, struct reply *ret);
const char *world_text_of(const struct reply *r, const char *key);
void world_expect_status(int fd, int status);
void world_expect_not_run(int fd, int status, bool retry);
void world_expect_load(const struct world *w, int running, int queued);

/* ---- Its supervisor ---- */

void world_tell(const struct world *w, enum msg_type type, const void *payload);
void world_expect(const struct world *w, enum msg_type type, struct msg *ret);
void world_end_run(const struct world *w, uint64_t run, enum run_cause cause);

/* Expect the SUBMIT of `code`, end it as a success, and expect the client to hear it. */
void world_run_through(const struct world *w, int client, const char *code);
