/* A server on loopback and its clients in one event loop: nothing blocks, and a test waits
 * for what it expects by running the loop until it is so.
 *
 *   runs in    tests
 */
#pragma once

#include "edge/http/server.h"

#include <event2/bufferevent.h>
#include <event2/event.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

#define TALK_HELD_MAX 8

/* The served resources: GET or POST /now answers at once with `METHOD PATH BODY_LENGTH`,
 * /later keeps the request in held[], /big answers with big_len bytes, /echo with the body. What
 * begins with /executions/ is left to `executions`, if that is set.
 * /nope is 404 and PUT 405, both said by `head`. */
struct talk {
	struct event_base *base;
	struct event *guard;
	bool guard_fired;
	struct http_server *server;
	struct http_limits limits;
	struct sockaddr_storage at; /* where the server listens */
	socklen_t at_len;
	unsigned fds_before;
	size_t big_len;
	http_handler_fn *executions;
	bool unix_socket;   /* instead of 127.0.0.1 */
	bool small_buffers; /* of the sockets */
	struct http_request *held[TALK_HELD_MAX];
	unsigned held_count, handled, gone, bad, drained;
	int bad_status;
	const char *stack_low, *stack_high; /* where the handler's frames were */
	char peer[64];
};

struct client {
	struct talk *talk;
	struct bufferevent *bev;
	char *text; /* all that has been received */
	size_t len, room;
	bool eof, reset;
};

void talk_begin(struct talk *t);
void talk_end(struct talk *t);
/* As talk_begin(), with the limits set by the test first. */
void talk_serve(struct talk *t);

void client_open(struct client *cl, struct talk *t);
void client_close(struct client *cl);
/* Close with a reset instead of a FIN. */
void client_reset(struct client *cl);
void client_send(struct client *cl, const void *bytes, size_t len);
void client_say(struct client *cl, const char *text);
void client_half_close(struct client *cl);
/* Forget what has been received. */
void client_clear(struct client *cl);

/* Run the loop until the condition holds; fails the test after ten seconds. */
#define WAIT_FOR(t, cond)                                        \
	do {                                                     \
		talk_guard(t);                                   \
		while (!(cond))                                  \
			talk_step(t, #cond, __FILE__, __LINE__); \
	} while (0)
void talk_guard(struct talk *t);
void talk_step(struct talk *t, const char *cond, const char *file, int line);

/* Run the loop for `ms` and return how often it woke up: a spin is thousands. */
unsigned talk_wakeups(struct talk *t, unsigned ms);

/* How many answers with that status line prefix ("HTTP/1.1 200") have been received. */
unsigned client_count(const struct client *cl, const char *needle);
bool client_has(const struct client *cl, const char *needle);
