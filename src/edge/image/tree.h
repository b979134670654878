/* The root that the layers of an image add up to, as names and numbers: nothing is ever
 * unpacked to a file system, so no name can lead out of one.
 *
 *   runs in    the process that reads archives; pure
 *   owns       its nodes, until tree_done()
 *   trusts     no name
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

struct fault;

#define TREE_PATH_MAX  1024 /* bytes of a path, with its end */
#define TREE_NAME_MAX  255  /* bytes of a name, as Linux has it */
#define TREE_DEPTH_MAX 64

enum tree_kind {
	TREE_DIRECTORY,
	TREE_FILE,
	TREE_LINK /* symbolic */
};

/* What a name stands for; several names share one by hard links. */
struct tree_inode {
	enum tree_kind kind;
	bool executable, written;
	int64_t mtime_s;
	uint64_t bytes; /* of a file */
	char *target;   /* of a link */
	LIST_HEAD(, tree_node) names;
};

struct tree_node {
	struct tree_node *parent;
	struct tree_inode *inode;
	uint32_t layer; /* that put it here last */
	uint32_t swept; /* the last one whose whiteouts have taken away what is below */
	void *index;    /* of the children, for tsearch() */
	TAILQ_HEAD(tree_children, tree_node) children;
	TAILQ_ENTRY(tree_node) sibling;
	LIST_ENTRY(tree_node) same; /* inode */
	char name[];
};

struct tree {
	struct tree_node *root;
	struct tree_inode **files; /* in the order in which tree_put() made them, dead ones too */
	size_t files_count, files_room;
	uint64_t entries;
};

int tree_init(struct tree *t, struct fault *f) __attribute__((nonnull));
void tree_done(struct tree *t) __attribute__((nonnull));

/* A name of an archive ("./usr//bin/") as a path below the root ("usr/bin"; "" is the root).
 * -EINVAL with a reason for "..", names and paths that are too long, and too many levels. */
int tree_path(const char *name, char ret[static TREE_PATH_MAX], struct fault *f)
	__attribute__((nonnull));

/* Put something at `path`, in the place of what a layer before has there. A directory keeps
 * what it holds. Missing directories are made; a path that leads through a link or a file is
 * refused. The kind's other fields are the caller's to fill in. */
int tree_put(struct tree *t, const char *path, enum tree_kind kind, uint32_t layer,
	struct tree_inode **ret, struct fault *f) __attribute__((nonnull));

/* Make `path` another name of what `target` names. */
int tree_link(struct tree *t, const char *path, const char *target, uint32_t layer, struct fault *f)
	__attribute__((nonnull));

/* Take away what layers before `layer` have put at `path`, or only what is in it. That it is
 * not there is no fault. */
void tree_whiteout(struct tree *t, const char *path, uint32_t layer, bool only_inside)
	__attribute__((nonnull));

/* What `path` leads to, symbolic links followed inside of the tree; NULL: nothing. */
struct tree_inode *tree_resolve(const struct tree *t, const char *path) __attribute__((nonnull));

/* All nodes, each directory before what is in it; `n` NULL begins. NULL: that was the last. */
struct tree_node *tree_next(const struct tree *t, struct tree_node *n) __attribute__((nonnull(1)));

/* The node's path, without a slash in front. It always fits. */
void tree_name(const struct tree_node *n, char ret[static TREE_PATH_MAX]) __attribute__((nonnull));
