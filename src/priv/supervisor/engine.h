/* Everything that cells are made from, prepared once at start: settings, the instance's
 * number, its groups, the root view, the layers that hold.
 *
 *   runs in    the supervisor and the probe
 *   owns       all of it, from engine_open() to engine_close()
 *   blocks     some tens of milliseconds
 */
#pragma once

#include "kernel/cgroup.h"
#include "kernel/taskstats.h"
#include "priv/launch/view.h"
#include "priv/supervisor/factories.h"
#include "priv/supervisor/layers.h"
#include "priv/supervisor/lease.h"
#include "wire/msg.h"

struct engine {
	struct languages languages;
	struct factories factories;
	struct settings settings; /* uid_base moved to this instance's block */
	struct lease lease;
	struct cgroup_tree tree;
	struct cgroup inits;      /* the leaf of all cells' inits */
	struct cgroup zygotes;    /* ...and of the zygotes */
	struct cgroup others;     /* ...of those of images that requests pick */
	struct cgroup collectors; /* ...and of the collectors */
	struct cgroup gates;      /* ...and of the gates */
	int gate_fd;              /* their program; -1: none are started */
	int policy_fd;            /* what they get of the operator: boot.h */
	struct view view, image;  /* of the host's runtime; of the image that the settings name */
	struct layers layers;
	struct cell_factory factory;
	struct taskstats_feed records; /* of children's ends; fd -1: there are none, and */
	struct fault no_records;       /* why */
	struct fault no_network; /* why runs cannot have one although nobody has switched it off */
	int self_fd, box_fd;
	bool tree_open;
	bool listens; /* the caller's to set: the settings' address is served */
};

void engine_clear(struct engine *e) __attribute__((nonnull));

/* Read the settings (boot.h), then prepare. `pooled`: ready cells are kept, as a server does;
 * otherwise the setting is put to 0. Stops at the first thing that cannot be had;
 * what was found out about the layers until then is in e->layers. Needs root. */
int engine_open(struct engine *e, bool pooled, struct fault *f) __attribute__((nonnull));

/* Remove every trace: groups, mounts (with the process), the lease. */
void engine_close(struct engine *e) __attribute__((nonnull));

/* What the client is told first. */
void engine_hello(const struct engine *e, uint32_t port, struct msg_hello *ret)
	__attribute__((nonnull));
/* ...and the languages, right behind it. 0 or a negative errno of channel_send(). */
int engine_offer(const struct engine *e, int channel_fd) __attribute__((nonnull));
/* Tell those whose bit is in *numbers, and clear the bits of those that were told. */
int engine_offer_some(const struct engine *e, int channel_fd, uint32_t *numbers)
	__attribute__((nonnull));
/* The same of what is installed in those that are images. One that cannot be had is told of in the
 * log, and no further. */
int engine_list_some(const struct engine *e, int channel_fd, uint32_t *numbers)
	__attribute__((nonnull));
