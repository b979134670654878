/* Which layers of the cage this host can give: each one tried, not guessed.
 *
 *   runs in    the supervisor at start, and the probe (`glovebox doctor`)
 *   blocks     for the time of building and destroying one cell
 */
#pragma once

#include "base/fault.h"
#include "priv/launch/cell.h"
#include "wire/layer.h"
#include "wire/settings.h"

struct layers {
	uint64_t in_force;           /* LAYER_BIT()s */
	struct fault why[LAYER_MAX]; /* for those that are not */
	struct fault cell;           /* code 0, or why no complete cell could be built */
	uint32_t core_pattern_piped; /* advice: crashes feed a program of the host */
};

/* What of the cage may be missing when the operator says so: everything that a cell is not
 * made of. A namespace, the root or the filter cannot be left out. */
#define LAYERS_DEGRADABLE                                                       \
	(LAYER_BIT(LAYER_SWAP) | LAYER_BIT(LAYER_CPU) | LAYER_BIT(LAYER_PIDS) | \
		LAYER_BIT(LAYER_MEMORY) | LAYER_BIT(LAYER_LANDLOCK) | LAYER_BIT(LAYER_UIDS))

/* Look at everything that can be known before the root view and the groups exist. */
void layers_probe_kernel(struct layers *l, const struct settings *s) __attribute__((nonnull));

/* Then at the groups... */
void layers_probe_cgroups(struct layers *l, const struct cgroup_tree *t) __attribute__((nonnull));

/* ...and at last build a cell as every run gets one, up to the parked process, and
 * destroy it. 0, or l->cell says why not. */
int layers_probe_cell(struct layers *l, const struct cell_factory *factory)
	__attribute__((nonnull));

/* 0 when everything is in force or allowed to be missing; otherwise a fault that names
 * the first layer that is not, what is lost and how to get it. */
int layers_decide(const struct layers *l, uint64_t allowed, struct fault *f)
	__attribute__((nonnull));
