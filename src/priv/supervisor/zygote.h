/* A warm interpreter, as the supervisor sees it: started in the background, asked to fork,
 * replaced when it is old, restarted with back-off when it dies.
 *
 *   runs in    the supervisor
 *   owns       the process and its channel
 *   threads    none
 *   blocks     never
 *   trusts     what it says only as far as the pidfd that comes with it proves it
 */
#pragma once

#include "base/fault.h"
#include "kernel/process.h"
#include "priv/launch/cell.h"
#include "wire/channel.h"

#include <stdbool.h>
#include <stdint.h>

/* clang-format off */
#define ZYGOTE_STATES(X)                                                             \
	X(ABSENT,   "none runs; the next start waits for its time")                  \
	X(STARTING, "it imports what it is to preload")                              \
	X(WARM,     "it can fork")
/* clang-format on */

enum zygote_state {
#define X(name, text) ZYGOTE_##name,
	ZYGOTE_STATES(X)
#undef X
	ZYGOTE_STATE_MAX
};

struct zygote {
	enum zygote_state state;
	struct process process;
	int channel_fd;
	uint64_t generation;        /* counts from 1; never used twice by one supervisor */
	uint64_t forks, unanswered; /* asked, and asked without an answer yet */
	unsigned refusals;          /* UNFORKED in a row, for cells that were still there */
	uint64_t started_ns;
	uint64_t deadline_ns; /* for the answer that is due; UINT64_MAX: none is */
	struct fault fault;   /* why it is not there, code 0 before the first attempt */
	/* What it does for its owner's preload, in its own words, until it says that it is done:
	 * if it is lost meanwhile, that is the preload's fault. "": nothing. */
	char preloading[PRELOADING_MAX];
	const char *runtime; /* of the factory that it was started from */
	char version[RUNTIME_NAME_MAX];
};

void zygote_clear(struct zygote *z) __attribute__((nonnull));

/* Begin to start one. On failure it is ABSENT and `f` says why. */
int zygote_start(struct zygote *z, const struct cell_factory *factory, const char *preload,
	uint64_t generation, struct fault *f) __attribute__((nonnull));

/* Ask for a child for `c`. 0, or a negative errno: it cannot be asked now. */
int zygote_fork(struct zygote *z, const struct cell *c, int channel_fd, bool rehearse)
	__attribute__((nonnull));

/* One message, if there is one: 1 and *ret (PRELOADING and WARM are handled already, FORKED and
 * UNFORKED are the caller's), 0 nothing there, or a negative errno: it is lost, call
 * zygote_end(). One that says UNFORKED three times in a row, for cells that are still there, is
 * lost: a new one may do better, and until there is one /health says so. */
int zygote_hear(struct zygote *z, struct msg *ret) __attribute__((nonnull));

/* Kill it; ABSENT afterwards. The process is left for the caller to take from z->process
 * and to reap when it is dead: a frozen one takes its time. Its children live on: they are
 * the supervisor's. */
void zygote_end(struct zygote *z) __attribute__((nonnull));

/* Has it kept somebody waiting for too long? (stopped, hung in an import) Then its fault says
 * so. */
bool zygote_is_late(struct zygote *z, uint64_t now_ns) __attribute__((nonnull));
