/* A rehearsal: the training program runs through the very path of a real one, so that the
 * pages which a run writes are the child's own before there is a run. Then everything that
 * could tell of it is put back.
 *
 *   runs in    a zygote's child, in its cell, with everything dropped
 *   owns       the streams, for its time
 */
#pragma once

#include <stdbool.h>

struct fault;

struct rehearsal {
	const char *source; /* the training program */
	unsigned long bytes;
	/* Puts back what only the agent knows of; 0, or -1 with an exception set. */
	int (*scrub)(void);
	bool in_full; /* as finish_rehearse() */
};

/* In a "__main__" that program_prepare() has made, and that is used up by it. */
int rehearse(const struct rehearsal *rehearsal, struct fault *f) __attribute__((nonnull));
