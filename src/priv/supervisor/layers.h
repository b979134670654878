/* Which layers of the cage this host can give: each one tried, not guessed.
 *
 *   runs in    the supervisor at start, and the probe (`glovebox doctor`)
 *   blocks     for the time of building and destroying one cell
 */
#pragma once

#include "base/fault.h"
#include "kernel/caps.h"
#include "priv/launch/cell.h"
#include "wire/layer.h"
#include "wire/settings.h"

struct layers {
	uint64_t tried, in_force;    /* LAYER_BIT()s */
	struct fault why[LAYER_MAX]; /* for those that were tried and are not */
	struct fault cell;           /* code 0, or why no complete cell could be built */
	uint32_t core_pattern_piped; /* advice: crashes feed a program of the host */
};

/* What of the cage may be missing when the operator says so: everything that a cell is not
 * made of. A namespace, the root or the filter cannot be left out. */
#define LAYERS_DEGRADABLE                                                       \
	(LAYER_BIT(LAYER_SWAP) | LAYER_BIT(LAYER_CPU) | LAYER_BIT(LAYER_PIDS) | \
		LAYER_BIT(LAYER_MEMORY) | LAYER_BIT(LAYER_LANDLOCK) | LAYER_BIT(LAYER_UIDS))

/* What the supervisor keeps after its start: making cells needs these and nothing else.
 * SYS_ADMIN mounts, namespaces, setns; SYS_CHROOT setns of a mount namespace; SYS_PTRACE
 * setns on the pidfd of a process that is not dumpable; SETUID, SETGID id maps; SETPCAP
 * the bounding set of children; CHOWN, FOWNER, DAC_OVERRIDE pipes of the front, groups
 * owned by others; KILL processes of other uids; NET_ADMIN bringing up a cell's lo is
 * init's own, in its own namespace, and not in this list. */
#define KEPT_CAPABILITIES                                                                    \
	(CAPS_BIT(CAPS_SYS_ADMIN) | CAPS_BIT(CAPS_SYS_CHROOT) | CAPS_BIT(CAPS_SYS_PTRACE) |  \
		CAPS_BIT(CAPS_SETUID) | CAPS_BIT(CAPS_SETGID) | CAPS_BIT(CAPS_SETPCAP) |     \
		CAPS_BIT(CAPS_CHOWN) | CAPS_BIT(CAPS_FOWNER) | CAPS_BIT(CAPS_DAC_OVERRIDE) | \
		CAPS_BIT(CAPS_KILL))

/* What it does without where it is missing: SYS_NICE (urgency.h). */
#define LIKED_CAPABILITIES CAPS_BIT(CAPS_SYS_NICE)

/* Before that, also MKNOD: the device nodes of the root view. */
#define START_CAPABILITIES (KEPT_CAPABILITIES | CAPS_BIT(CAPS_MKNOD))

/* Forget everything, then look at the capabilities: without them nothing else can be tried.
 * 0, or *f says which are not there. */
int layers_probe_caps(struct layers *l, struct fault *f) __attribute__((nonnull));

/* Look at everything that can be known before the root view and the groups exist. */
void layers_probe_kernel(struct layers *l, const struct settings *s) __attribute__((nonnull));

/* Then at the groups... */
void layers_probe_cgroups(struct layers *l, const struct cgroup_tree *t) __attribute__((nonnull));

/* ...and at last build a cell as every run gets one, up to the parked process, and
 * destroy it. 0, or l->cell says why not. */
int layers_probe_cell(struct layers *l, const struct cell_factory *factory)
	__attribute__((nonnull));

/* The root could not be prepared: the cause of that. */
void layers_refuse_root(struct layers *l, const struct fault *why) __attribute__((nonnull));

/* A cell could not be built: l->cell, and the layer's cause when it is one that only a cell
 * can try. */
void layers_refuse_cell(struct layers *l, const struct fault *why) __attribute__((nonnull));

/* 0 when no layer was tried in vain but those that may be missing; otherwise a fault that
 * names the first one, what is lost and how to get it. */
int layers_explain(const struct layers *l, uint64_t allowed, struct fault *f)
	__attribute__((nonnull));

/* 0 when everything is in force or allowed to be missing; otherwise as layers_explain(), or
 * why no cell could be built. */
int layers_decide(const struct layers *l, uint64_t allowed, struct fault *f)
	__attribute__((nonnull));
