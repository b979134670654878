/* The front as the supervisor's child: its listening socket, its start, its log.
 *
 *   runs in    the supervisor of a server
 *   owns       the listening socket, across restarts of the front
 *   trusts     nothing that the front writes: its log lines are marked, escaped and
 *              bounded (base/log.h, log_relay)
 */
#pragma once

#include "base/log.h"
#include "kernel/process.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stddef.h>

struct fault;

struct front {
	int listen_fd;
	uint32_t port; /* really bound; 0 for a Unix socket */
	struct process process;
	int channel_fd; /* non-blocking */
	int log_fd;     /* read end, non-blocking */
	struct log_relay log;
	unsigned starts;
};

void front_clear(struct front *fr) __attribute__((nonnull));

/* Bind and listen. An address beyond loopback without settings->insecure is a bug of the
 * caller: settings_fault() refuses it. */
int front_listen(struct front *fr, const struct settings *s, struct fault *f)
	__attribute__((nonnull));

/* Start the process; on success channel_fd and log_fd are new. */
int front_start(struct front *fr, int self_fd, const struct settings *s, struct fault *f)
	__attribute__((nonnull));

/* Pass on some of what it has logged. False at the end of the pipe. */
bool front_relay_log(struct front *fr) __attribute__((nonnull));

/* Kill it if it still lives, reap it, pass on its last words, close its descriptors (not
 * the listening socket). */
void front_end(struct front *fr) __attribute__((nonnull));

/* Listen no more: who connects from now on is refused, once the front has closed its copy
 * too. Again: nothing. */
void front_unlisten(struct front *fr, const struct settings *s) __attribute__((nonnull));

/* "http://127.0.0.1:8000" or "unix:/path" as a person would type it. */
void front_url(const struct front *fr, const struct settings *s, char *ret, size_t room)
	__attribute__((nonnull));

/* Where it listens, and what to try, for the person at the terminal. */
void front_print_banner(const struct front *fr, const struct settings *s) __attribute__((nonnull));
