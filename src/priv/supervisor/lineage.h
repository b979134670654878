/* The line of zygotes: one that forks, its successor while that one starts, its predecessor
 * while it owes answers. One that is worn is succeeded, one that is lost is replaced, with a
 * back-off.
 *
 *   runs in    the supervisor
 *   owns       the three; the process of one that has ended goes to the reaper
 *   threads    none
 *   blocks     never
 *   trusts     a zygote only as far as the pidfd in its answer proves it
 */
#pragma once

#include "base/fault.h"
#include "priv/launch/cell.h"
#include "priv/supervisor/reaper.h"
#include "priv/supervisor/watch.h"
#include "priv/supervisor/zygote.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stdint.h>

/* Whom the line works for: what its zygotes are made from, and who is told of them. */
struct lineage_owner {
	const struct settings *settings;
	const struct cell_factory *factory;
	const char *preload; /* modules, as the setting of that name has them; read at each start */
	uint64_t *generations; /* begun so far, by all lines together */
	struct reaper *reaper;
	void *ctx; /* of the calls below */
	/* `child` was forked for cell `id` by the zygote of that generation, and is the callee's.
	 * False: nobody waited for it. */
	bool (*forked)(void *ctx, uint64_t generation, uint64_t id, struct process *child);
	/* Nothing was, or can be, forked for cell `id`. */
	void (*unforked)(void *ctx, uint64_t generation, uint64_t id);
	/* A zygote is gone: what it still owed to cells of its generation will not come. */
	void (*lost)(void *ctx, uint64_t generation);
};

#define LINEAGE_ZYGOTES 3

struct lineage {
	struct lineage_owner owner;
	struct watch watch;     /* the three, in the order below; the opener's to set */
	bool wanted;            /* false: none is started */
	struct zygote current;  /* the one that forks */
	struct zygote next;     /* its successor, while it starts */
	struct zygote retired;  /* its predecessor, while it owes answers */
	struct fault lost;      /* why none forks, since when one did or was tried; code 0: none */
	bool spoiled;           /* one was lost to its preload; the owner's to clear */
	uint64_t retry_ns;      /* not to be started before */
	uint64_t retry_wait_ns; /* after the next loss */
};

/* Begin with no zygote. `wanted`: one is started at the first tick; false: never. The caller
 * sets `watch` before that. */
void lineage_open(struct lineage *l, const struct lineage_owner *owner, bool wanted)
	__attribute__((nonnull));

/* Ask the current zygote for a child for `c`, which is told the generation. 0: the owner is
 * told the answer; or a negative errno: it cannot be asked now. */
int lineage_fork(struct lineage *l, struct cell *c, int channel_fd, bool rehearse)
	__attribute__((nonnull));

/* Something happened at zygote `which`: 0 the current, 1 the next, 2 the retired one. */
void lineage_look(struct lineage *l, unsigned which) __attribute__((nonnull));

/* Give up the one that is late, start the one that is due. */
void lineage_tick(struct lineage *l, uint64_t now_ns) __attribute__((nonnull));

/* When it has to be ticked again; UINT64_MAX: an event comes first. */
uint64_t lineage_due_ns(const struct lineage *l) __attribute__((nonnull));

/* Is there one that can fork? */
bool lineage_is_warm(const struct lineage *l) __attribute__((nonnull));

/* Is `pid` one of the three? */
bool lineage_knows(const struct lineage *l, pid_t pid) __attribute__((nonnull));

/* End all three; none is started any more. The owner is told of no loss. */
void lineage_close(struct lineage *l) __attribute__((nonnull));
