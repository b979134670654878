#include "edge/image/layer.h"

#include "base/fault.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MEMBERS_MAX 100000 /* of the outer tar; a large image has some hundreds */

int layer_fault(struct archive *a, struct fault *f, const char *what)
{
	const char *why = archive_error_string(a);

	if (f->code != 0)
		return f->code;
	return fault_say(f, -EINVAL, "%s: %s", what, why ? why : "cannot be read");
}

int layer_too_large(uint64_t bytes_max, struct fault *f)
{
	return fault_say(f, -EFBIG,
		"it is larger than %lu MiB when it is unpacked; --max-size allows more",
		(unsigned long)(bytes_max >> 20));
}

int layer_too_many(uint64_t entries_max, struct fault *f)
{
	return fault_say(f, -E2BIG, "it has more than %lu files and directories",
		(unsigned long)entries_max);
}

/* Never support_filter_all(): some of them start other programs. */
static struct archive *new_reader(bool compressed)
{
	struct archive *a = archive_read_new();

	if (!a || !compressed)
		return a;
	(void)archive_read_support_filter_gzip(a);
	(void)archive_read_support_filter_zstd(a);
	(void)archive_read_support_filter_xz(a);
	(void)archive_read_support_filter_bzip2(a);
	return a;
}

static bool is_named(struct archive_entry *e, const char *name)
{
	const char *its = archive_entry_pathname(e);

	if (!its)
		return false;
	its += its[0] == '.' && its[1] == '/' ? 2 : 0;
	return strcmp(its, name) == 0;
}

/* Put the next name of a path, which `name` begins with, behind `path`, or take one away for "..". */
static bool add_name(char path[static LAYER_NAME_MAX], const char *name, size_t len)
{
	size_t used = strlen(path);
	char *slash = strrchr(path, '/');

	if (len == 0 || (len == 1 && name[0] == '.'))
		return true;
	if (len == 2 && name[0] == '.' && name[1] == '.') {
		*(slash ? slash : path) = '\0';
		return used > 0;
	}
	if (used + len + 2 > LAYER_NAME_MAX)
		return false;
	(void)snprintf(
		path + used, LAYER_NAME_MAX - used, "%s%.*s", used ? "/" : "", (int)len, name);
	return true;
}

/* Where a symbolic link called `name` leads, as text: it is the name of another member or nothing. */
static bool follow(const char *name, const char *target, char ret[static LAYER_NAME_MAX])
{
	const char *slash = strrchr(name, '/'), *const parts[] = { name, target };
	const size_t lens[] = { slash ? (size_t)(slash - name) : 0, strlen(target) };

	ret[0] = '\0';
	if (target[0] == '/')
		return false;
	for (unsigned i = 0; i < 2; i++)
		for (size_t at = 0; at < lens[i]; at++) {
			size_t len = strcspn(parts[i] + at, "/");

			len = len < lens[i] - at ? len : lens[i] - at;
			if (!add_name(ret, parts[i] + at, len))
				return false;
			at += len;
		}
	return true;
}

static bool is_damaged(int r)
{
	return r != ARCHIVE_OK && r != ARCHIVE_WARN;
}

/* The contents of members that are passed over are unpacked as well, and are as large as they say.
 * 1: it is a link to *ret_other. */
static int seek_member(struct archive *a, const char *name, uint64_t bytes_max,
	char ret_other[static LAYER_NAME_MAX], struct fault *f)
{
	uint64_t passed = 0;

	for (unsigned n = 0; n < MEMBERS_MAX; n++) {
		struct archive_entry *e;
		int r = archive_read_next_header(a, &e);

		if (r == ARCHIVE_EOF)
			return fault_say(f, -ENOENT, "there is no member %.200s in it", name);
		if (is_damaged(r))
			return layer_fault(a, f, "the archive");
		passed += (uint64_t)archive_entry_size(e);
		if (archive_entry_size(e) < 0 || passed > bytes_max)
			return layer_too_large(bytes_max, f);
		if (!is_named(e, name))
			continue;
		if (archive_entry_filetype(e) == AE_IFLNK && archive_entry_symlink(e) &&
			follow(name, archive_entry_symlink(e), ret_other))
			return 1;
		if (archive_entry_filetype(e) != AE_IFREG || archive_entry_hardlink(e))
			return fault_say(f, -EINVAL, "its member %.200s is no file", name);
		return 0;
	}
	return fault_say(f, -E2BIG, "it has more than %d members", MEMBERS_MAX);
}

static int find_one(const struct origin *from, const char *name, struct archive **ret,
	char ret_other[static LAYER_NAME_MAX], struct fault *f)
{
	struct archive *a = new_reader(true);
	int r;

	if (!a)
		return fault_set(f, -ENOMEM, "the archive");
	(void)archive_read_support_format_tar(a);
	r = lseek(from->fd, 0, SEEK_SET) < 0 ? fault_set(f, -errno, "seek") : 0;
	if (r == 0 && archive_read_open_fd(a, from->fd, LAYER_BUFFER) != ARCHIVE_OK)
		r = layer_fault(a, f, "the archive");
	if (r == 0)
		r = seek_member(a, name, from->bytes_max, ret_other, f);
	if (r == 0)
		*ret = a;
	else
		(void)archive_read_free(a);
	return r;
}

/* Docker before 25 writes a layer that comes twice as a link to the first. */
int layer_find_member(
	const struct origin *from, const char *name, struct archive **ret, struct fault *f)
{
	char other[LAYER_NAME_MAX], none[LAYER_NAME_MAX];
	int r = find_one(from, name, ret, other, f);

	if (r == 1) {
		r = find_one(from, other, ret, none, f);
		if (r == 1 || r == -ENOENT)
			r = fault_say(f, -EINVAL,
				"its member %.100s is a link to %.100s, which is no file of it",
				name, other);
	}
	return r;
}

/* ---- A layer: member, decompressor, tar, each reading from the one before ---- */

static ssize_t read_member(struct archive *a, void *ctx, const void **ret)
{
	struct layer *l = ctx;
	ssize_t n = archive_read_data(l->outer, l->packed, sizeof(l->packed));

	if (n < 0) {
		(void)layer_fault(l->outer, l->fault, "the archive");
		archive_set_error(a, EIO, "the archive cannot be read");
	}
	*ret = l->packed;
	return n < 0 ? -1 : n;
}

static ssize_t read_plain(struct archive *a, void *ctx, const void **ret)
{
	struct layer *l = ctx;
	ssize_t n = archive_read_data(l->plain, l->unpacked, sizeof(l->unpacked));

	if (n < 0)
		(void)layer_fault(l->plain, l->fault, "the layer");
	else if ((uint64_t)n > l->budget->bytes_max - l->budget->bytes)
		n = layer_too_large(l->budget->bytes_max, l->fault);
	if (n < 0) {
		archive_set_error(a, EIO, "the layer cannot be read");
		return -1;
	}
	l->budget->bytes += (uint64_t)n;
	sha256_update(&l->hash, (size_t)n, l->unpacked);
	*ret = l->unpacked;
	return n;
}

static int open_plain(struct layer *l, const struct origin *from, struct fault *f)
{
	struct archive_entry *e;
	int r;

	(void)archive_read_support_format_raw(l->plain);
	if (l->outer)
		r = archive_read_open(l->plain, l, NULL, read_member, NULL);
	else if (lseek(from->fd, 0, SEEK_SET) < 0)
		return fault_set(f, -errno, "seek");
	else
		r = archive_read_open_fd(l->plain, from->fd, LAYER_BUFFER);
	/* The format "raw" has one entry, which is all of it. */
	if (r == ARCHIVE_OK)
		r = archive_read_next_header(l->plain, &e);
	return r == ARCHIVE_OK ? 0 : layer_fault(l->plain, f, "the layer");
}

int layer_open(struct layer *l, const struct origin *from, const char *name, struct budget *b,
	struct fault *f)
{
	int r = 0;

	l->outer = NULL;
	l->plain = new_reader(true);
	l->tar = new_reader(false);
	l->budget = b;
	l->fault = f;
	sha256_init(&l->hash);
	if (!l->plain || !l->tar)
		return fault_set(f, -ENOMEM, "the layer");
	if (name)
		r = layer_find_member(from, name, &l->outer, f);
	if (r == 0)
		r = open_plain(l, from, f);
	if (r < 0)
		return r;
	(void)archive_read_support_format_tar(l->tar);
	(void)archive_read_support_format_empty(l->tar);
	if (archive_read_open(l->tar, l, NULL, read_plain, NULL) != ARCHIVE_OK)
		return layer_fault(l->tar, f, "the layer");
	return 0;
}

void layer_close(struct layer *l)
{
	(void)archive_read_free(l->tar);
	(void)archive_read_free(l->plain);
	(void)archive_read_free(l->outer);
	l->tar = l->plain = l->outer = NULL;
}

int layer_next(struct layer *l, struct archive_entry **ret, struct fault *f)
{
	int r;

	l->fault = f;
	r = archive_read_next_header(l->tar, ret);
	if (r == ARCHIVE_EOF)
		return f->code < 0 ? f->code : 0;
	if (is_damaged(r))
		return layer_fault(l->tar, f, "the layer");
	if (l->budget->entries++ >= l->budget->entries_max)
		return layer_too_many(l->budget->entries_max, f);
	if (!archive_entry_pathname(*ret))
		return fault_say(f, -EILSEQ, "a name in it is no text");
	return 1;
}

ssize_t layer_read(struct layer *l, void *bytes, size_t room, struct fault *f)
{
	ssize_t n;

	l->fault = f;
	n = archive_read_data(l->tar, bytes, room);
	return n < 0 ? layer_fault(l->tar, f, "the layer") : n;
}

int layer_digest(struct layer *l, uint8_t ret[static SHA256_DIGEST_SIZE], struct fault *f)
{
	const void *bytes;
	ssize_t n;

	l->fault = f;
	/* A tar ends before its last block does. */
	do
		n = read_plain(l->tar, l, &bytes);
	while (n > 0);
	if (n < 0)
		return f->code;
	sha256_digest(&l->hash, SHA256_DIGEST_SIZE, ret);
	return 0;
}
