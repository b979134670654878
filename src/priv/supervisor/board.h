/* All runs of this supervisor: one place each, with the cell it runs in, its deadlines and
 * the evidence for its verdict. Nothing here waits; the event loop calls in.
 *
 *   runs in    the supervisor
 *   owns       the descriptors of admitted runs; the cells are the pool's
 *   threads    none
 *   trusts     the client only through submit.h
 */
#pragma once

#include "priv/launch/gate.h"
#include "priv/supervisor/collect.h"
#include "priv/supervisor/job.h"
#include "priv/supervisor/lease.h"
#include "priv/supervisor/pool.h"
#include "wire/channel.h"

#include <stdbool.h>
#include <stdint.h>

struct job {
	enum job_state state;
	struct msg_submit submit;
	/* Those of SUBMIT; -1 once START was read; the code, of a run that may be collected, only with
	 * its end. */
	int fds[MSG_FDS_MAX];
	struct cell *cell; /* NULL while it waits for one, and after it was given back */
	uint64_t submitted_ns, started_ns; /* started_ns 0: the code did not run */
	uint64_t released_ns;              /* just before START: main cannot have run earlier */
	uint64_t deadline_ns;              /* of the wall clock, or for a cell to be there */
	uint64_t sample_ns;                /* when CPU time is looked at again */
	uint64_t killed_ns, retry_ns;
	enum job_event ended_by;
	struct build *build; /* that its compiler makes, or that is its program; or NULL */
	uint64_t order;      /* of a cell made for it; 0: one of the pool's stock will do */
	int network_fd;      /* memory that it shares with its gate; -1: it has no network */
	struct gate gate;
	unsigned unread; /* cells that died before they had read their START */
	bool oom;
	bool gate_lost; /* its gate ended before the program did */
	bool orphan;    /* its client is gone: nobody is answered, its number is the next one's */
	bool unwanted;  /* its client has cancelled it, at whatever time: nothing is kept for it */
	struct fault fault;
	bool unsent, refused; /* in DONE: the answer is not on its way yet, and which one it is */
	union {
		struct msg_result result;
		struct msg_refused refusal;
	} answer;
};

struct board {
	struct job jobs[LEASE_CELLS];
	unsigned slots; /* of them in use by configuration */
	const struct settings *settings;
	struct pool *pool;
	uint64_t last_order;
	struct taskstats_feed *records;  /* its fd is -1 where there are none */
	int client_fd;                   /* -1: nobody to answer */
	bool client_broken;              /* it does not take its answers: drop it */
	struct job *driver[LEASE_CELLS]; /* who drives the pool's cell in that slot */
	struct collects collects;        /* ...or these do */
	uint64_t network_run;            /* whose SUBMIT is awaited after its NETWORK; */
	int network_fd;                  /* -1: none */
};

void board_init(struct board *b) __attribute__((nonnull));

/* Take a SUBMIT and its descriptors, whatever becomes of it. 0 when it was admitted or
 * refused by a message; -EPROTO when the sender broke a rule (*ret_rule): drop it. */
int board_submit(struct board *b, struct msg *m, const char **ret_rule) __attribute__((nonnull));

/* Take a NETWORK and its descriptor. As board_submit(). */
int board_network(struct board *b, struct msg *m, const char **ret_rule) __attribute__((nonnull));

/* Is the process one of the gates'? */
bool board_knows(const struct board *b, pid_t pid) __attribute__((nonnull));

/* Take a COLLECT and its descriptor. As board_submit(). */
int board_collect(struct board *b, struct msg *m, const char **ret_rule) __attribute__((nonnull));

void board_cancel(struct board *b, uint64_t run) __attribute__((nonnull));
void board_cancel_all(struct board *b) __attribute__((nonnull));

/* The client is gone (client_fd, which stays the caller's): end its runs and answer nobody. The
 * numbers of the next client's runs are its own, though some of these may take their time. */
void board_lose_client(struct board *b) __attribute__((nonnull));

/* Something happened at the pool's slot `slot`: look at whoever drives it. */
void board_look(struct board *b, unsigned slot) __attribute__((nonnull));

/* The kernel has told of the end of children. */
void board_hear_records(struct board *b) __attribute__((nonnull));

/* Take away the images that are withdrawn (offered.h) and that no run, cell or zygote needs any more.
 * True when there is a number that another one can have. */
bool board_drop_images(struct board *b) __attribute__((nonnull));

/* Deadlines, retries. Returns when it wants to be called again (CLOCK_MONOTONIC, ns). */
uint64_t board_tick(struct board *b) __attribute__((nonnull));

/* Slots that are not free. */
unsigned board_busy(const struct board *b) __attribute__((nonnull));
