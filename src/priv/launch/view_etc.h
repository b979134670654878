/* The /etc of a cell: generated users, groups and hosts, and copies of public files.
 * Part of priv/launch/view.c, apart only because it is a table.
 *
 *   runs in    the supervisor, once at start
 */
#pragma once

struct fault;

/* Fill "etc" below the template's root, with the host's public files. */
int view_make_etc(int root_fd, struct fault *f) __attribute__((nonnull));

/* The same without anything of the host's: for a root that has files of its own. */
int view_make_own_etc(int root_fd, struct fault *f) __attribute__((nonnull));

/* The files over those that a cell with a network has in place of the same of view_make_etc(), in
 * "network" below dir_fd. */
int view_make_network(int dir_fd, struct fault *f) __attribute__((nonnull));

/* mkdir -p below dir_fd, mode 0755. */
int view_make_dirs(int dir_fd, const char *path, struct fault *f) __attribute__((nonnull));

/* Take away what was made at `path`, and what is in it, as far as that is possible: a view that could not
 * be finished leaves nothing in the way of the next try, and takes no room of the template. */
void view_remove(const char *path) __attribute__((nonnull));
