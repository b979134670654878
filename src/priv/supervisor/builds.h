/* What compilers have made, from the compiler's run to the run of the program: one for each place of
 * the board, so that a client cannot hoard them.
 *
 *   runs in    the supervisor
 *   owns       the places (priv/launch/build.h)
 *   threads    none
 */
#pragma once

#include "priv/supervisor/lease.h"

#include <stdbool.h>
#include <stdint.h>

struct build {
	uint64_t run; /* of the compiler; 0: free */
	uint32_t language;
	bool made;  /* its place exists; of a free one: it could not be removed yet */
	bool ready; /* the compiler has succeeded, and no program has taken it yet */
};

struct builds {
	struct build of[LEASE_CELLS];
	unsigned count; /* places in use by configuration */
};

/* A free one for the compiler's run `run` (not 0), or NULL. */
struct build *builds_reserve(struct builds *bs, uint64_t run, uint32_t language)
	__attribute__((nonnull));

/* The one that is ready, made by that run, or NULL. */
struct build *builds_find(struct builds *bs, uint64_t run) __attribute__((nonnull));

/* Its number, as its place has it. */
unsigned builds_number(const struct builds *bs, const struct build *b) __attribute__((nonnull));

/* Let go of it. NULL is accepted. */
void builds_release(struct builds *bs, struct build *b) __attribute__((nonnull(1)));

/* Remove its place, if there is one. 0, or a negative errno: it is there still. */
int builds_drop(struct builds *bs, struct build *b) __attribute__((nonnull));

/* Try again to remove the places that are nobody's. True: some are left. */
bool builds_tick(struct builds *bs) __attribute__((nonnull));

/* Let go of those that are ready. */
void builds_clear(struct builds *bs) __attribute__((nonnull));
