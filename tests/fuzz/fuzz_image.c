/* Fuzz target: an archive of an image, any bytes. The first byte says what it is taken for: what
 * `docker save` writes, a layer by itself, or a manifest. Whatever it is, what comes out is a tar of
 * files, directories and links, each below the root, each after what it is in, none with power.
 */
#include "base/fault.h"
#include "edge/config/document.h"
#include "edge/image/manifest.h"
#include "edge/image/tree.h"
#include "edge/image/unpack.h"
#include "tests/fuzz/fuzz.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#define BYTES_MAX   (1u << 20)
#define ENTRIES_MAX 200

static int memory_of(const uint8_t *bytes, size_t len)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	CHECK(fd >= 0 && write(fd, bytes, len) == (ssize_t)len);
	return fd;
}

static void check_entry(struct archive_entry *e, struct tree *t)
{
	const char *name = archive_entry_pathname(e), *to = archive_entry_hardlink(e);
	char path[TREE_PATH_MAX];
	struct tree_inode *i;
	struct fault f = { 0 };
	bool directory = archive_entry_filetype(e) == AE_IFDIR;

	CHECK(name && name[0] != '/' && tree_path(name, path, &f) == 0 && path[0]);
	CHECK((archive_entry_perm(e) & 07022) == 0 && archive_entry_uid(e) == 0);
	CHECK(archive_entry_gid(e) == 0 && archive_entry_xattr_count(e) == 0);
	CHECK(!tree_resolve(t, path)); /* each name once */
	if (to) {
		CHECK(tree_link(t, path, to, 1, &f) == 0);
		return;
	}
	CHECK(directory || archive_entry_filetype(e) == AE_IFREG ||
		archive_entry_filetype(e) == AE_IFLNK);
	/* A link's target is of no matter here, and a node that is a file can have nothing in it. */
	CHECK(tree_put(t, path, directory ? TREE_DIRECTORY : TREE_FILE, 1, &i, &f) == 0);
}

static void check_tar(int fd)
{
	struct archive *a = archive_read_new();
	struct archive_entry *e;
	struct tree t;
	struct fault f = { 0 };
	int r;

	CHECK(a && lseek(fd, 0, SEEK_SET) == 0 && tree_init(&t, &f) == 0);
	(void)archive_read_support_format_tar(a);
	(void)archive_read_support_format_empty(a);
	CHECK(archive_read_open_fd(a, fd, 10240) == ARCHIVE_OK);
	while ((r = archive_read_next_header(a, &e)) >= ARCHIVE_WARN && r != ARCHIVE_EOF)
		check_entry(e, &t);
	CHECK(r == ARCHIVE_EOF);
	(void)archive_read_free(a);
	tree_done(&t);
}

static void on_progress(void *ctx, const struct msg_unpacking *now)
{
	(void)ctx;
	CHECK(now->layer <= now->layers && now->bytes <= BYTES_MAX);
}

static int on_listed(void *ctx, const char *text, size_t len)
{
	(void)ctx;
	CHECK(image_inventory_is_valid(text, len));
	return 0;
}

static void try_archive(const uint8_t *bytes, size_t len, enum image_source source)
{
	struct msg_unpack ask = {
		.source = source, .bytes_max = BYTES_MAX, .entries_max = ENTRIES_MAX
	};
	struct unpack u = {
		.in_fd = memory_of(bytes, len),
		.out_fd = memfd_create("out", MFD_CLOEXEC),
		.ask = &ask,
		.progress = on_progress,
		.listed = on_listed,
	};
	static struct msg_unpacked done;
	struct fault f = { 0 };
	int r = unpack_run(&u, &done, &f);

	CHECK((r == 0) == (f.code == 0) && r == f.code);
	if (r == 0)
		check_tar(u.out_fd);
	(void)close(u.in_fd);
	(void)close(u.out_fd);
}

static void try_manifest(const uint8_t *bytes, size_t len)
{
	char *text = malloc(len + 1);
	static struct msg_plan plan;
	struct fault f = { 0 };

	CHECK(text);
	memcpy(text, bytes, len);
	text[len] = '\0';
	if (manifest_parse(&(struct document){ text, len, "x" }, &plan, &f) == 0)
		CHECK(!plan_fault(&plan));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	unsigned before = fuzz_count_fds();

	if (len == 0)
		return 0;
	if (bytes[0] == 'm')
		try_manifest(bytes + 1, len - 1);
	else
		try_archive(bytes + 1, len - 1,
			bytes[0] == 'd' ? IMAGE_SOURCE_ARCHIVE : IMAGE_SOURCE_ROOT);
	CHECK(fuzz_count_fds() == before);
	return 0;
}
