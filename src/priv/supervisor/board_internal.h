/* What the files of priv/supervisor/board.h share:
 *
 *   board.c         a run's way through the table of job.c; who is told what happens to its cell
 *   board_submit.c  a run that is asked for, and the build that it makes or takes
 *   board_answer.c  what the client is told of a run that has ended
 *
 *   runs in    as priv/supervisor/board.h
 */
#pragma once

#include "base/clock.h"
#include "priv/supervisor/board.h"

#define BOARD_BUILD_TIMEOUT_NS \
	(10 * NS_PER_S) /* a cell takes some 10 ms; this is for a hung host */

/* ---- board.c ---- */

/* The job of a run that is its client's still, or NULL. */
struct job *board_find(struct board *b, uint64_t run) __attribute__((nonnull));

/* Give those that wait the cells that are ready. */
void board_serve_waiting(struct board *b) __attribute__((nonnull));

/* ---- board_submit.c ---- */

/* Its run has ended: what a compiler has made stays for the program, anything else goes. */
void board_leave_build(struct board *b, struct job *j, bool success) __attribute__((nonnull));

/* ---- board_answer.c ---- */

/* Is it an error of what may be there again in a moment, so that the caller should try again? */
bool board_is_shortage(int code);

/* Judge the evidence of a run that has ended: its answer stands in the job, unsent. */
void board_answer(struct board *b, struct job *j) __attribute__((nonnull));

/* Send it, or set when that is to be tried again. */
void board_send(struct board *b, struct job *j) __attribute__((nonnull));
