/* A line of zygotes whose parts the test speaks: its owner, and the zygotes, which are children
 * that do nothing. Only zygote_start() is replaced (-Wl,--wrap=zygote_start); processes,
 * channels, the epoll and the reaper are real.
 *
 *   runs in    unit tests
 */
#pragma once

#include "base/clock.h"
#include "priv/supervisor/lineage.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PLAY_GENERATIONS 32
#define PLAY_START_NS    (30 * NS_PER_S) /* what a zygote has to get warm */

extern struct play {
	struct lineage line;
	struct settings settings;
	pid_t pids[PLAY_GENERATIONS]; /* the zygotes that were started; 0: not yet */
	bool start_fails;
	bool is_awaited;      /* what the owner answers to a child */
	struct process given; /* the child that he was given */
	uint64_t answers;     /* the generation that has said something last */
} play;

/* Before and after each test. What is left of the line at its end, a process or a descriptor,
 * fails the test. */
int play_begin(void **state);
int play_end(void **state);

/* Open the line once more. */
void play_open(bool wanted);

/* A process for a zygote to tell of. */
struct process play_child(void);
bool play_is_ended(const struct process *p) __attribute__((nonnull));

/* The supervisor: a tick now; the first zygote started and warm; generation `generation`
 * started and warm, because the one before it is worn. */
void play_tick(void);
void play_have_one(void);
void play_succeed(uint64_t generation);

/* The supervisor asks for a child for cell `id`. Which generation is asked? */
uint64_t play_ask(uint64_t id);

/* What a zygote says, each heard at once: that it is warm; that `child` was forked and has
 * number `pid`; that nothing was forked; nothing more. */
void play_warm_up(uint64_t generation);
void play_answer(uint64_t generation, uint64_t id, const struct process *child, pid_t pid)
	__attribute__((nonnull));
void play_refuse(uint64_t generation, uint64_t id);
void play_die(uint64_t generation);

/* A child asked for, and given to the owner. */
void play_fork(uint64_t generation);

/* What the owner was told since the last time: "forked 7, unforked 8, lost 1". */
void play_must_have_told(const char *expected) __attribute__((nonnull));
void play_forget(void);

/* It was killed and is the reaper's; it is one of the line's. */
void play_must_be_ended(uint64_t generation);
void play_must_live(uint64_t generation);
