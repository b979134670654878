#include "edge/image/entries.h"

#include "base/fault.h"

#include <archive.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* OCI's image-spec, layer.md: a file of that name takes away what it names without the prefix. */
#define WHITEOUT        ".wh."
#define WHITEOUT_OPAQUE ".wh..wh..opq"
#define WHITEOUT_META   ".wh..wh." /* AUFS's own files */

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_whiteout(const char *path)
{
	return strncmp(last_name(path), WHITEOUT, strlen(WHITEOUT)) == 0;
}

static int add_whiteout(struct tree *t, const char *path, uint32_t layer, struct fault *f)
{
	const char *name = last_name(path);
	bool opaque = strcmp(name, WHITEOUT_OPAQUE) == 0;
	char target[TREE_PATH_MAX];
	size_t parent = (size_t)(name - path);

	if (!opaque && strncmp(name, WHITEOUT_META, strlen(WHITEOUT_META)) == 0)
		return 0;
	name += strlen(WHITEOUT);
	if (!opaque && (strcmp(name, "") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0))
		return fault_say(f, -EINVAL, "the whiteout \"%.200s\" names nothing", path);
	memcpy(target, path, parent);
	target[parent] = '\0';
	if (opaque)
		target[parent - (parent > 0)] = '\0';
	else
		memcpy(target + parent, name, strlen(name) + 1);
	tree_whiteout(t, target, layer, opaque);
	return 0;
}

bool entries_is_file(struct archive_entry *e)
{
	char path[TREE_PATH_MAX];
	struct fault f = { 0 };

	return !archive_entry_hardlink(e) && archive_entry_filetype(e) == AE_IFREG &&
	       tree_path(archive_entry_pathname(e), path, &f) == 0 && !is_whiteout(path);
}

static void count_losses(struct archive_entry *e, struct image_losses *losses)
{
	if (archive_entry_filetype(e) == AE_IFREG && (archive_entry_perm(e) & (S_ISUID | S_ISGID)))
		losses->set_ids++;
	if (archive_entry_xattr_count(e) > 0)
		losses->attributes++;
}

static int add_link(
	struct tree *t, struct archive_entry *e, const char *path, uint32_t layer, struct fault *f)
{
	const char *target = archive_entry_symlink(e);
	struct tree_inode *i;
	int r;

	if (!target || !*target || strlen(target) >= TREE_PATH_MAX)
		return fault_say(f, -EINVAL,
			"the symbolic link \"%.200s\" leads to no path of 1 to %d bytes", path,
			TREE_PATH_MAX - 1);
	r = tree_put(t, path, TREE_LINK, layer, &i, f);
	if (r < 0)
		return r;
	i->mtime_s = archive_entry_mtime(e);
	i->target = strdup(target);
	return i->target ? 0 : fault_set(f, -ENOMEM, "%.200s", path);
}

static int add_hard_link(
	struct tree *t, struct archive_entry *e, const char *path, uint32_t layer, struct fault *f)
{
	char target[TREE_PATH_MAX];
	int r = tree_path(archive_entry_hardlink(e), target, f);

	return r < 0 ? r : tree_link(t, path, target, layer, f);
}

static int add_other(
	struct tree *t, struct archive_entry *e, const char *path, uint32_t layer, struct fault *f)
{
	bool directory = archive_entry_filetype(e) == AE_IFDIR;
	struct tree_inode *i;
	int r = tree_put(t, path, directory ? TREE_DIRECTORY : TREE_FILE, layer, &i, f);

	if (r < 0)
		return r;
	i->mtime_s = archive_entry_mtime(e);
	i->executable = (archive_entry_perm(e) & 0111) != 0;
	if (archive_entry_size(e) < 0)
		return fault_say(f, -EINVAL, "\"%.200s\" has a negative size", path);
	i->bytes = directory ? 0 : (uint64_t)archive_entry_size(e);
	return 0;
}

int entries_add(struct tree *t, struct archive_entry *e, uint32_t layer,
	struct image_losses *losses, struct fault *f)
{
	char path[TREE_PATH_MAX];
	int r = tree_path(archive_entry_pathname(e), path, f);

	if (r < 0)
		return r;
	if (is_whiteout(path))
		return add_whiteout(t, path, layer, f);
	count_losses(e, losses);
	if (archive_entry_hardlink(e))
		return add_hard_link(t, e, path, layer, f);
	switch (archive_entry_filetype(e)) {
	case AE_IFREG:
	case AE_IFDIR:
		return add_other(t, e, path, layer, f);
	case AE_IFLNK:
		return add_link(t, e, path, layer, f);
	default:
		losses->devices++;
		return 0;
	}
}
