#include "edge/image/tree.h"

#include "base/check.h"
#include "base/fault.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#define LINKS_MAX 40 /* as the kernel follows at most */

/* ---- Nodes ---- */

static int compare(const void *a, const void *b)
{
	const struct tree_node *x = a, *y = b;

	return strcmp(x->name, y->name);
}

/* `name` need not be terminated behind `len`. */
static struct tree_node *node_create(struct tree_node *parent, const char *name, size_t len)
{
	struct tree_node *n = calloc(1, sizeof(*n) + len + 1);

	if (!n)
		return NULL;
	memcpy(n->name, name, len);
	n->parent = parent;
	TAILQ_INIT(&n->children);
	if (!parent)
		return n;
	if (!tsearch(n, &parent->index, compare)) {
		free(n);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&parent->children, n, sibling);
	return n;
}

static void inode_free(struct tree_inode *i)
{
	free(i->target);
	free(i);
}

/* Files stay in tree.files; others go with their last name. */
static void let_go(struct tree_node *n)
{
	struct tree_inode *i = n->inode;

	n->inode = NULL;
	if (!i)
		return;
	LIST_REMOVE(n, same);
	if (LIST_EMPTY(&i->names) && i->kind != TREE_FILE)
		inode_free(i);
}

static void node_remove(struct tree *t, struct tree_node *n)
{
	CHECK(TAILQ_EMPTY(&n->children));
	let_go(n);
	if (n->parent) {
		(void)tdelete(n, &n->parent->index, compare);
		TAILQ_REMOVE(&n->parent->children, n, sibling);
		t->entries--;
	}
	free(n);
}

static struct tree_node *deepest_first(struct tree_node *n)
{
	while (!TAILQ_EMPTY(&n->children))
		n = TAILQ_FIRST(&n->children);
	return n;
}

/* What layers before `layer` have put below `top`; what they have not, and the directories
 * that it is in, stays. */
static void erase_inside(struct tree *t, struct tree_node *top, uint32_t layer)
{
	struct tree_node *n = deepest_first(top);

	while (n != top) {
		struct tree_node *sibling = TAILQ_NEXT(n, sibling), *parent = n->parent;

		if (TAILQ_EMPTY(&n->children) && n->layer < layer)
			node_remove(t, n);
		n = sibling ? deepest_first(sibling) : parent;
	}
}

/* ---- Paths ---- */

int tree_path(const char *name, char ret[static TREE_PATH_MAX], struct fault *f)
{
	size_t used = 0;
	unsigned depth = 0;

	for (const char *p = name; *p;) {
		size_t len = strcspn(p, "/");

		if (len == 2 && p[0] == '.' && p[1] == '.')
			return fault_say(
				f, -EINVAL, "the name \"%.200s\" has a \"..\" in it", name);
		if (len > TREE_NAME_MAX || used + len + 2 > TREE_PATH_MAX ||
			++depth > TREE_DEPTH_MAX)
			return fault_say(f, -EINVAL, "the name \"%.200s…\" is too long", name);
		if (len > 0 && !(len == 1 && p[0] == '.')) {
			if (used > 0)
				ret[used++] = '/';
			memcpy(ret + used, p, len);
			used += len;
		}
		p += len + (p[len] == '/');
	}
	ret[used] = '\0';
	return 0;
}

static struct tree_node *child(const struct tree_node *n, const char *name, size_t len)
{
	char room[sizeof(struct tree_node) + TREE_NAME_MAX + 1]
		__attribute__((aligned(__alignof__(struct tree_node))));
	struct tree_node *key = (struct tree_node *)room;
	struct tree_node *const *found;

	CHECK(len <= TREE_NAME_MAX);
	memcpy(key->name, name, len);
	key->name[len] = '\0';
	found = tfind(key, &n->index, compare);
	return found ? *found : NULL;
}

/* The node at `path` itself; NULL: there is none. */
static struct tree_node *find(const struct tree *t, const char *path)
{
	struct tree_node *n = t->root;

	while (n && *path) {
		size_t len = strcspn(path, "/");

		n = child(n, path, len);
		path += len + (path[len] == '/');
	}
	return n;
}

static struct tree_inode *inode_create(struct tree *t, enum tree_kind kind)
{
	struct tree_inode *i = calloc(1, sizeof(*i));

	if (!i)
		return NULL;
	i->kind = kind;
	LIST_INIT(&i->names);
	if (kind != TREE_FILE)
		return i;
	if (t->files_count == t->files_room) {
		size_t room = t->files_room ? 2 * t->files_room : 1024;
		struct tree_inode **more = reallocarray(t->files, room, sizeof(*more));

		if (!more) {
			free(i);
			return NULL;
		}
		t->files = more;
		t->files_room = room;
	}
	t->files[t->files_count++] = i;
	return i;
}

static void give(struct tree_node *n, struct tree_inode *i, uint32_t layer)
{
	n->inode = i;
	n->layer = layer;
	LIST_INSERT_HEAD(&i->names, n, same);
}

static struct tree_node *add_directory(
	struct tree *t, struct tree_node *parent, const char *name, size_t len, uint32_t layer)
{
	struct tree_inode *i = inode_create(t, TREE_DIRECTORY);
	struct tree_node *n = i ? node_create(parent, name, len) : NULL;

	if (!n) {
		free(i);
		return NULL;
	}
	give(n, i, layer);
	t->entries++;
	return n;
}

/* The directory that `path` is in, and its last name. Missing ones are made. */
static int parent_of(struct tree *t, const char *path, uint32_t layer, struct tree_node **ret,
	const char **ret_name, struct fault *f)
{
	struct tree_node *n = t->root, *c;
	const char *name = path, *slash;

	for (; (slash = strchr(name, '/')); name = slash + 1, n = c) {
		c = child(n, name, (size_t)(slash - name));
		if (!c) {
			c = add_directory(t, n, name, (size_t)(slash - name), layer);
			if (!c)
				return fault_set(f, -ENOMEM, "%.200s", path);
		}
		if (c->inode->kind != TREE_DIRECTORY)
			return fault_say(f, -ELOOP,
				"the name \"%.200s\" leads through \"%.*s\", which is %s", path,
				(int)(slash - path), path,
				c->inode->kind == TREE_LINK ? "a symbolic link" : "a file");
	}
	*ret = n;
	*ret_name = name;
	return 0;
}

/* ---- What is done with them ---- */

int tree_init(struct tree *t, struct fault *f)
{
	struct tree_inode *i;

	memset(t, 0, sizeof(*t));
	t->root = node_create(NULL, "", 0);
	i = t->root ? inode_create(t, TREE_DIRECTORY) : NULL;
	if (!i)
		return fault_set(f, -ENOMEM, "the tree");
	give(t->root, i, 0);
	return 0;
}

void tree_done(struct tree *t)
{
	if (t->root && t->root->inode) {
		erase_inside(t, t->root, UINT32_MAX);
		node_remove(t, t->root);
	} else {
		free(t->root);
	}
	for (size_t i = 0; i < t->files_count; i++)
		inode_free(t->files[i]);
	free(t->files);
	memset(t, 0, sizeof(*t));
}

/* The node at `path`, empty for a new inode; a directory that is to be one stays as it is. */
static int make_room(struct tree *t, const char *path, bool directory, uint32_t layer,
	struct tree_node **ret, struct fault *f)
{
	struct tree_node *parent, *n;
	const char *name;
	int r;

	if (path[0] == '\0') {
		*ret = t->root;
		return directory ? 0 : fault_say(f, -EINVAL, "the root is no directory");
	}
	r = parent_of(t, path, layer, &parent, &name, f);
	if (r < 0)
		return r;
	n = child(parent, name, strlen(name));
	if (n && !(directory && n->inode->kind == TREE_DIRECTORY)) {
		erase_inside(t, n, UINT32_MAX);
		let_go(n);
	}
	if (!n) {
		n = node_create(parent, name, strlen(name));
		if (!n)
			return fault_set(f, -ENOMEM, "%.200s", path);
		t->entries++;
	}
	*ret = n;
	return 0;
}

int tree_put(struct tree *t, const char *path, enum tree_kind kind, uint32_t layer,
	struct tree_inode **ret, struct fault *f)
{
	struct tree_node *n;
	int r = make_room(t, path, kind == TREE_DIRECTORY, layer, &n, f);

	if (r < 0)
		return r;
	if (!n->inode) {
		struct tree_inode *i = inode_create(t, kind);

		if (!i) {
			node_remove(t, n); /* a node without an inode is none */
			return fault_set(f, -ENOMEM, "%.200s", path);
		}
		give(n, i, layer);
	}
	n->layer = layer;
	*ret = n->inode;
	return 0;
}

int tree_link(struct tree *t, const char *path, const char *target, uint32_t layer, struct fault *f)
{
	struct tree_node *to = find(t, target), *n;
	int r;

	if (!to || to->inode->kind == TREE_DIRECTORY)
		return fault_say(f, -EINVAL,
			"\"%.200s\" is a hard link to \"%.200s\", which is no file of the image",
			path, target);
	if (strcmp(path, target) == 0)
		return 0;
	/* The target must outlive what is removed to make room for its new name. */
	if (find(t, path) && strncmp(target, path, strlen(path)) == 0 &&
		target[strlen(path)] == '/')
		return fault_say(f, -EINVAL, "\"%.200s\" is a hard link into itself", path);
	r = make_room(t, path, false, layer, &n, f);
	if (r == 0)
		give(n, to->inode, layer);
	return r;
}

void tree_whiteout(struct tree *t, const char *path, uint32_t layer, bool only_inside)
{
	struct tree_node *n = find(t, path);

	if (!n)
		return;
	/* Once for each layer: what is there after that is the layer's own, and would only be walked
	 * through again, by as many whiteouts as there are entries. */
	if (n->swept < layer)
		erase_inside(t, n, layer);
	n->swept = layer;
	if (!only_inside && n->parent && n->layer < layer && TAILQ_EMPTY(&n->children))
		node_remove(t, n);
}

struct tree_node *tree_next(const struct tree *t, struct tree_node *n)
{
	if (!n)
		return t->root;
	if (!TAILQ_EMPTY(&n->children))
		return TAILQ_FIRST(&n->children);
	while (n && !TAILQ_NEXT(n, sibling))
		n = n->parent == t->root ? NULL : n->parent;
	return n ? TAILQ_NEXT(n, sibling) : NULL;
}

void tree_name(const struct tree_node *n, char ret[static TREE_PATH_MAX])
{
	size_t at = TREE_PATH_MAX - 1;

	ret[at] = '\0';
	for (; n->parent; n = n->parent) {
		size_t len = strlen(n->name);

		CHECK(at >= len); /* a path of 1,023 bytes fills it */
		at -= len;
		memcpy(ret + at, n->name, len);
		if (n->parent->parent)
			ret[--at] = '/';
	}
	memmove(ret, ret + at, TREE_PATH_MAX - at);
}

/* Put the target of a link in the place of the name that was just taken off `rest`. */
static bool follow(char rest[static TREE_PATH_MAX], const char *tail, const char *target)
{
	char joined[2 * TREE_PATH_MAX];
	size_t a = strlen(target), b = strlen(tail);

	if (a + b + 2 > TREE_PATH_MAX)
		return false;
	memcpy(joined, target, a);
	joined[a] = '/';
	memcpy(joined + a + 1, tail, b + 1);
	memcpy(rest, joined, a + b + 2);
	return true;
}

static const struct tree_node *walk(const struct tree_node *n, const char *name, size_t len)
{
	if (len == 0 || (len == 1 && name[0] == '.'))
		return n;
	if (len == 2 && name[0] == '.' && name[1] == '.')
		return n->parent ? n->parent : n;
	return len <= TREE_NAME_MAX ? child(n, name, len) : NULL;
}

struct tree_inode *tree_resolve(const struct tree *t, const char *path)
{
	const struct tree_node *n = t->root, *to;
	char rest[TREE_PATH_MAX];
	const char *p = rest;
	unsigned links = 0;

	if (strlen(path) >= sizeof(rest))
		return NULL;
	memcpy(rest, path, strlen(path) + 1);
	while (*p) {
		size_t len = strcspn(p, "/");

		to = walk(n, p, len);
		p += len + (p[len] == '/');
		if (!to)
			return NULL;
		if (to->inode->kind != TREE_LINK) {
			n = to;
			continue;
		}
		if (++links > LINKS_MAX || !follow(rest, p, to->inode->target))
			return NULL;
		if (rest[0] == '/')
			n = t->root;
		p = rest;
	}
	return n->inode;
}
