/* A walk through what a dead program has left in its workspace: every regular file that is new or
 * changed goes out, and everything else is named.
 *
 * Nothing is resolved but one component at a time, from a descriptor of the directory that it is in,
 * and nothing is followed: what a name is has been looked at before it is opened, and what was
 * opened is looked at again. Nobody but this process is in the workspace.
 *
 *   runs in    the collector, as the program's user, behind its own filter
 *   owns       the descriptors of directories that it is in
 *   threads    none
 *   trusts     no name, no size, no type
 */
#pragma once

#include "box/collect/known.h"
#include "box/collect/out.h"

struct fault;

struct walk_plan {
	int root_fd; /* the workspace, open for reading; taken */
	struct files_caps caps;
	const struct known *known; /* what the run began with */
	struct out *out;
};

/* 0: all was seen and said but for the END. Otherwise there is no memory to walk with. */
int walk(const struct walk_plan *plan, struct fault *f) __attribute__((nonnull));
