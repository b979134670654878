/* A board with one place (board.slots can be more) and one cell, over a kernel that makes nothing (tests/fuzz/no_kernel.h): the
 * test speaks the parts of its client and of the cell's processes, and the clock stands where it has
 * to.
 *
 *   runs in    unit tests
 */
#pragma once

#include "priv/supervisor/board.h"
#include "tests/fuzz/no_kernel.h"

#include <stdbool.h>

#define PLAY_RUN 7

extern struct play {
	struct settings settings;
	struct cgroup_tree tree;
	struct cell_factory factory;
	struct taskstats_feed records;
	struct pool pool;
	struct board board;
	struct run_limits asked; /* of the next run */
	struct msg_submit next;  /* its run, language, part, build, and what of it is collected */
	struct languages languages; /* 1: interpreted; 2: compiled, but not installed */
	struct factories factories;
	int client_fd;
} play;

/* The first run, and the first cell. */
static inline struct job *the_job(void)
{
	return &play.board.jobs[0];
}

static inline struct cell *the_cell(void)
{
	return &play.pool.cells[0];
}

/* Before and after each test. What is left at its end, a run or a group, fails the test. */
int play_begin(void **state);
int play_end(void **state);

/* The only living init, or main; the test fails without one. */
struct no_process *play_process(bool init);

/* It reads what it was sent. */
void play_read(struct no_process *p) __attribute__((nonnull));

/* Whatever has happened is looked at; so much later; at the run's deadline. */
void play_look(void);
void play_later(uint64_t ns);
void play_pass_the_deadline(void);

/* A cell is made: its main, parked, which has read what it was sent. */
struct no_process *play_park(void);

/* The client submits play.next, PLAY_RUN at first, with play.asked. The second one returns what
 * board_submit() does. */
void play_submit(void);
int play_try_to_submit(const char **ret_rule) __attribute__((nonnull));

/* Both: a run that has been released to the main that is returned, and not read by it. */
struct no_process *play_release(void);

/* Both, and its program ends by itself, with 0. */
void play_end_program(void);

/* The answer that the client has got: its type, or 0. */
enum msg_type play_answered(struct msg *ret) __attribute__((nonnull));
/* Until it has one: its cause; CAUSE_MAX for a refusal, which is in `ret`. */
enum run_cause play_cause(struct msg *ret) __attribute__((nonnull));
