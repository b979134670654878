#include "edge/image/unpack.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/own.h"
#include "edge/image/bundle.h"
#include "edge/image/entries.h"
#include "edge/image/inventory.h"
#include "edge/image/layer.h"
#include "edge/image/start.h"
#include "edge/image/tree.h"

#include <elf.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* e_machine of the ELF header, <elf.h>. */
#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#endif

#define PROGRESS_BYTES (UINT64_C(16) << 20) /* of contents between two words of progress */

struct state {
	const struct unpack *u;
	struct msg_unpacked *ret;
	struct bundle *bundle;
	struct layer *layer;
	struct origin origin;
	struct budget budget;
	uint64_t claimed_bytes; /* by the files of all layers: what is sparse is small in a tar */
	struct tree tree;
	struct tree_inode *interpreter;
	struct inventory_list inventory;
	struct archive *out;
	struct archive_entry *entry;
	struct msg_unpacking now;
	uint64_t told_bytes;
	size_t next_file; /* of tree.files, in the second pass */
};

static void tell(struct state *s, bool always)
{
	s->now.bytes = s->budget.bytes;
	if (!always && s->now.bytes - s->told_bytes < PROGRESS_BYTES)
		return;
	s->told_bytes = s->now.bytes;
	s->u->progress(s->u->ctx, &s->now);
}

/* ---- Both passes ---- */

/* As squashfs has dates, which begin in 1970 and end in 2106. */
static uint32_t newest(const struct tree *t)
{
	int64_t found = 0;

	for (struct tree_node *n = tree_next(t, NULL); n; n = tree_next(t, n)) {
		if (n != t->root && n->inode->mtime_s > found)
			found = n->inode->mtime_s;
	}
	return found < UINT32_MAX ? (uint32_t)found : UINT32_MAX;
}

typedef int entry_fn(struct state *s, struct archive_entry *e, struct fault *f);

static int each_entry(struct state *s, entry_fn *fn, struct fault *f)
{
	struct archive_entry *e;
	int r;

	while ((r = layer_next(s->layer, &e, f)) > 0) {
		r = fn(s, e, f);
		if (r < 0)
			return r;
		tell(s, false);
	}
	return r;
}

static int check_digest(struct state *s, unsigned number, struct fault *f)
{
	uint8_t its[SHA256_DIGEST_SIZE];
	int r = layer_digest(s->layer, its, f);

	if (r == 0 && s->u->ask->source == IMAGE_SOURCE_ARCHIVE &&
		memcmp(its, s->bundle->digests[number], sizeof(its)) != 0)
		return fault_say(f, -EBADMSG,
			"its SHA-256 is not the one that the image's configuration names: the "
			"archive is damaged");
	return r;
}

static int one_layer(struct state *s, unsigned number, entry_fn *fn, struct fault *f)
{
	bool archive = s->u->ask->source == IMAGE_SOURCE_ARCHIVE;
	int r;

	s->now.layer = number + 1;
	tell(s, true);
	r = layer_open(
		s->layer, &s->origin, archive ? s->bundle->layers[number] : NULL, &s->budget, f);
	if (r == 0)
		r = each_entry(s, fn, f);
	if (r == 0)
		r = check_digest(s, number, f);
	layer_close(s->layer);
	return r < 0 && archive ? fault_wrap(f, "layer %u of %u", number + 1, s->bundle->count) : r;
}

static void begin_pass(struct state *s, uint32_t pass)
{
	s->now = (struct msg_unpacking){ .pass = pass,
		.layer = 1,
		.layers = s->bundle->count,
		.newest_s = pass == 0 ? 0 : newest(&s->tree) };
	s->told_bytes = 0;
	s->budget = (struct budget){ .bytes_max = s->u->ask->bytes_max,
		.entries_max = s->u->ask->entries_max };
}

static int each_layer(struct state *s, uint32_t pass, entry_fn *fn, struct fault *f)
{
	int r = 0;

	begin_pass(s, pass);
	for (unsigned i = 0; r == 0 && i < s->bundle->count; i++)
		r = one_layer(s, i, fn, f);
	return r;
}

/* ---- The first: names ---- */

static int take_name(struct state *s, struct archive_entry *e, struct fault *f)
{
	if (entries_is_file(e) && archive_entry_size(e) > 0)
		s->claimed_bytes += (uint64_t)archive_entry_size(e);
	if (s->claimed_bytes > s->origin.bytes_max)
		return layer_too_large(s->origin.bytes_max, f);
	/* Layers are numbered from 1: what is there at first is older than any of them. */
	if (entries_add(&s->tree, e, s->now.layer, &s->ret->losses, f) < 0)
		return f->code;
	/* Of one entry's name come up to 63 directories. */
	return s->tree.entries > s->budget.entries_max ? layer_too_many(s->budget.entries_max, f)
						       : 0;
}

static void count(struct state *s)
{
	for (size_t i = 0; i < s->tree.files_count; i++)
		if (!LIST_EMPTY(&s->tree.files[i]->names))
			s->ret->unpacked_bytes += s->tree.files[i]->bytes;
	s->ret->entries = s->tree.entries;
}

/* ---- The second: contents ---- */

/* -EPIPE: who reads the tar has gone, and knows why. */
static int write_fault(const struct state *s, struct fault *f)
{
	const char *why = archive_error_string(s->out);

	return fault_say(f, -EPIPE, "write: %s", why ? why : "cannot");
}

static int write_header(struct state *s, struct fault *f)
{
	if (archive_write_header(s->out, s->entry) < ARCHIVE_WARN)
		return write_fault(s, f);
	return 0;
}

static void set_entry(struct state *s, const struct tree_node *n, const char *path)
{
	const struct tree_inode *i = n->inode;

	archive_entry_clear(s->entry);
	archive_entry_set_pathname(s->entry, path);
	archive_entry_set_mtime(s->entry, i->mtime_s, 0);
	archive_entry_set_perm(s->entry, i->kind == TREE_DIRECTORY || i->executable ? 0755 : 0644);
	archive_entry_set_filetype(s->entry, i->kind == TREE_DIRECTORY ? AE_IFDIR
					     : i->kind == TREE_LINK    ? AE_IFLNK
								       : AE_IFREG);
	if (i->kind == TREE_LINK)
		archive_entry_set_symlink(s->entry, i->target);
}

static int write_directories_and_links(struct state *s, struct fault *f)
{
	char path[TREE_PATH_MAX];
	int r = 0;

	for (struct tree_node *n = tree_next(&s->tree, NULL); r == 0 && n;
		n = tree_next(&s->tree, n)) {
		if (n->inode->kind == TREE_FILE || n == s->tree.root)
			continue;
		tree_name(n, path);
		set_entry(s, n, path);
		r = write_header(s, f);
	}
	return r;
}

/* A program that this machine cannot execute is found before somebody runs it. */
static int check_machine(const unsigned char *bytes, size_t len, struct fault *f)
{
	const size_t at = offsetof(Elf64_Ehdr, e_machine); /* in both classes; little-endian */

	if (len < at + 2 || memcmp(bytes, ELFMAG, SELFMAG) != 0)
		return 0; /* a script */
	if ((bytes[at] | bytes[at + 1] << 8) != HOST_MACHINE)
		return fault_say(f, -ENOEXEC,
			"its interpreter is for another architecture than this host's (%s)",
			image_host_arch());
	return 0;
}

static int copy_contents(struct state *s, const struct tree_inode *i, struct fault *f)
{
	unsigned char buffer[LAYER_BUFFER];
	uint64_t copied = 0;

	inventory_begin(&s->inventory, i);
	for (;;) {
		ssize_t n = layer_read(s->layer, buffer, sizeof(buffer), f);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		if (copied == 0 && i == s->interpreter && check_machine(buffer, (size_t)n, f) < 0)
			return f->code;
		if (archive_write_data(s->out, buffer, (size_t)n) != n)
			return write_fault(s, f);
		inventory_feed(&s->inventory, buffer, (size_t)n);
		copied += (uint64_t)n;
		tell(s, false);
	}
	inventory_end(&s->inventory);
	if (copied != i->bytes)
		return fault_say(f, -EINVAL, "a file in it is shorter than it says");
	return 0;
}

static int write_file(struct state *s, struct tree_inode *i, struct fault *f)
{
	const struct tree_node *first = LIST_FIRST(&i->names), *n;
	char path[TREE_PATH_MAX], other[TREE_PATH_MAX];
	int r;

	tree_name(first, path);
	set_entry(s, first, path);
	archive_entry_set_size(s->entry, (int64_t)i->bytes);
	r = write_header(s, f);
	if (r == 0)
		r = copy_contents(s, i, f);
	for (n = LIST_NEXT(first, same); r == 0 && n; n = LIST_NEXT(n, same)) {
		tree_name(n, other);
		set_entry(s, n, other);
		archive_entry_set_hardlink(s->entry, path);
		archive_entry_set_size(s->entry, 0);
		r = write_header(s, f);
	}
	return r;
}

/* The files come in the order in which the first pass has met them. */
static int take_contents(struct state *s, struct archive_entry *e, struct fault *f)
{
	struct tree_inode *i;

	if (!entries_is_file(e))
		return 0;
	if (s->next_file == s->tree.files_count)
		return fault_say(f, -EBUSY, "the archive is changing while it is read");
	i = s->tree.files[s->next_file++];
	if ((uint64_t)archive_entry_size(e) != i->bytes)
		return fault_say(f, -EBUSY, "the archive is changing while it is read");
	return LIST_EMPTY(&i->names) ? 0 : write_file(s, i, f);
}

static int open_out(struct state *s, struct fault *f)
{
	s->out = archive_write_new();
	s->entry = archive_entry_new();
	if (!s->out || !s->entry)
		return fault_set(f, -ENOMEM, "write");
	(void)archive_write_set_format_gnutar(s->out);
	(void)archive_write_set_bytes_per_block(s->out, LAYER_BUFFER);
	if (archive_write_open_fd(s->out, s->u->out_fd) != ARCHIVE_OK)
		return write_fault(s, f);
	return 0;
}

static int write_all(struct state *s, struct fault *f)
{
	int r;

	/* Who packs it starts at this word, and must read before we write more than a pipe holds. */
	begin_pass(s, 1);
	tell(s, true);
	r = open_out(s, f);
	if (r == 0)
		r = write_directories_and_links(s, f);
	if (r == 0)
		r = each_layer(s, 1, take_contents, f);
	/* Who packs it stops at the empty block that ends a tar, and may have gone before the rest of that
	 * has been written. Whether it had all in front of that is for its exit status to say. */
	if (r == 0 && archive_write_close(s->out) != ARCHIVE_OK && archive_errno(s->out) != EPIPE)
		r = write_fault(s, f);
	return r;
}

/* ---- What is installed ---- */

static int list(struct state *s, struct fault *f)
{
	char version[INVENTORY_WORD_MAX];
	cleanup_free char *text = NULL;
	size_t len;
	int r;

	inventory_version(&s->inventory, &s->ret->start, s->interpreter, version);
	text = inventory_text(&s->inventory, version, &len);
	if (!text)
		return fault_set(f, -ENOMEM, "list what is installed");
	s->ret->losses.packages = s->inventory.lost;
	r = s->u->listed(s->u->ctx, text, len);
	return r < 0 ? fault_set(f, r, "tell what is installed") : 0;
}

/* ---- All of it ---- */

static int describe(struct state *s, struct fault *f)
{
	if (s->u->ask->source == IMAGE_SOURCE_ARCHIVE)
		return bundle_read(&s->origin, s->bundle, f);
	s->bundle->count = 1;
	(void)snprintf(s->bundle->arch, sizeof(s->bundle->arch), "%s", image_host_arch());
	return 0;
}

static int run(struct state *s, struct fault *f)
{
	int r = describe(s, f);

	if (r == 0)
		r = tree_init(&s->tree, f);
	if (r == 0)
		r = each_layer(s, 0, take_name, f);
	if (r < 0)
		return r;
	count(s);
	memcpy(s->ret->arch, s->bundle->arch, sizeof(s->ret->arch));
	s->ret->losses.variables = s->bundle->lost_variables;
	r = start_choose(&s->tree, s->bundle, &s->u->ask->wanted, &s->ret->start, f);
	if (r < 0)
		return r;
	s->interpreter = tree_resolve(&s->tree, s->ret->start.argv[0]);
	inventory_init(&s->inventory, &s->tree);
	r = write_all(s, f);
	return r < 0 ? r : list(s, f);
}

int unpack_run(const struct unpack *u, struct msg_unpacked *ret, struct fault *f)
{
	cleanup_free struct bundle *bundle = calloc(1, sizeof(*bundle));
	cleanup_free struct layer *layer = calloc(1, sizeof(*layer));
	struct state s = {
		.u = u,
		.ret = ret,
		.bundle = bundle,
		.layer = layer,
		.origin = { u->in_fd, u->ask->bytes_max },
	};
	int r;

	if (!bundle || !layer)
		return fault_set(f, -ENOMEM, "unpack");
	memset(ret, 0, sizeof(*ret));
	r = run(&s, f);
	inventory_done(&s.inventory);
	tree_done(&s.tree);
	(void)archive_write_free(s.out);
	archive_entry_free(s.entry);
	return r;
}
