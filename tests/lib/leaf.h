/* What tests of control groups do in a leaf.
 *
 *   runs in    unit tests, as root
 */
#pragma once

#include "kernel/cgroup.h"

#include <stddef.h>
#include <sys/types.h>

/* Move `pid` into the leaf in every v1 hierarchy, as enter does itself; the test fails when
 * that fails. (The unified leaf is entered by CLONE_INTO_CGROUP.) */
void leaf_join_v1(const struct cgroup_tree *t, const struct cgroup *cg, pid_t pid)
	__attribute__((nonnull));

/* Use `bytes` of memory, of the calling process's and until its end. It exits with 3 when there
 * are no addresses for them. */
void leaf_touch(size_t bytes);
