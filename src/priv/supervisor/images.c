#include "priv/supervisor/images.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "priv/supervisor/offered.h"
#include "wire/language.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* A file that only root can have written, whatever the store lies in. */
static int open_file(int folder, const char *file, struct stat *ret, struct fault *f)
{
	cleanup_fd int fd =
		sys.openat(folder, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0);
	int r = fd < 0 ? fd : sys.fstat(fd, ret);

	if (r < 0)
		return fault_set(f, r, "%s", file);
	if (!S_ISREG(ret->st_mode) || ret->st_uid != 0 || (ret->st_mode & 022))
		return fault_say(f, -EPERM, "%s: is no file of root's alone", file);
	return take_fd(&fd);
}

static int read_record(int folder, const char *name, struct image_record *ret, struct fault *f)
{
	struct stat st;
	cleanup_fd int fd = open_file(folder, IMAGE_RECORD_FILE, &st, f);
	const char *why;

	if (fd < 0)
		return fd;
	memset(ret, 0, sizeof(*ret));
	why = io_read_all(fd, ret, sizeof(*ret)) == (ssize_t)sizeof(*ret)
		      ? image_record_fault(ret)
		      : "its record is cut short";
	if (!why && strcmp(ret->name, name) != 0)
		why = "its record is another image's";
	return why ? fault_say(f, -EBADMSG, "%s", why) : 0;
}

static int open_sized(int folder, const char *file, uint64_t bytes, struct fault *f)
{
	struct stat st;
	cleanup_fd int fd = open_file(folder, file, &st, f);

	if (fd >= 0 && (uint64_t)st.st_size != bytes)
		return fault_say(f, -EBADMSG, "%s has another size than when it was made", file);
	return take_fd(&fd);
}

/* The folder of the image, open, and its record. */
static int open_folder(int store, const char *name, struct image_record *ret, struct fault *f)
{
	cleanup_fd int folder =
		sys.openat(store, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	int r;

	if (folder < 0)
		return fault_set(f, folder, "open it");
	r = read_record(folder, name, ret, f);
	return r < 0 ? r : take_fd(&folder);
}

static int open_in(int store, const char *name, struct image_record *ret, struct fault *f)
{
	cleanup_fd int folder = open_folder(store, name, ret, f);

	return folder < 0 ? folder : open_sized(folder, IMAGE_ROOT_FILE, ret->bytes, f);
}

int images_open(
	const char *dir, const char *name, struct image_record *ret, int *ret_fd, struct fault *f)
{
	cleanup_fd int store = sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	struct fault why = { 0 };
	int fd = store < 0 ? fault_set(&why, store, "open it") : open_in(store, name, ret, &why);

	if (fd == -ENOENT)
		return fault_say(f, fd,
			"there is no image \"%s\" in %s; `glovebox image list` names "
			"those that there are",
			name, dir);
	if (fd < 0) {
		*f = why;
		return fault_wrap(f, "image %s in %s", name, dir);
	}
	*ret_fd = fd;
	return 0;
}

_Static_assert(LANGUAGES_MAX <= 32, "each has a bit");

static int is_image(const struct dirent *e)
{
	return image_name_is_valid(e->d_name);
}

/* Put the image there, and return its bit. */
static uint32_t offer(const char *dir, const char *name, struct languages *to)
{
	uint32_t number = offered_free(to);
	struct language *l = &to->of[number];
	struct image_record record;
	cleanup_fd int root = -1;
	struct fault f = { 0 };

	if (number == LANGUAGES_MAX)
		(void)fault_say(&f, -ENOSPC,
			"there is no room for more than %u languages and images", LANGUAGES_MAX);
	else
		(void)images_open(dir, name, &record, &root, &f);
	if (f.code < 0) {
		log_warn("image", "name=%s why=%s", LQ(name), LQ(f.text));
		return 0;
	}
	to->unused &= ~(UINT32_C(1) << number);
	if (number < to->count)
		to->editions[number]++; /* nobody who asks for what it was gets this one */
	else
		to->count++;
	memset(l, 0, sizeof(*l));
	image_runtime(&record, &l->runtime);
	image_offer(&record, &l->offer);
	memcpy(to->digests[number], record.digest, sizeof(record.digest));
	log_info("image_offered", "name=%s", LQ(name));
	return UINT32_C(1) << number;
}

static bool is_shortage(int code)
{
	return code == -ENOMEM || code == -EMFILE || code == -ENFILE;
}

static uint32_t withdraw(const char *dir, struct languages *from, uint32_t number)
{
	const struct language *l = &from->of[number];
	struct image_record record;
	cleanup_fd int root = -1;
	struct fault f = { 0 };
	int r = images_open_offered(dir, l, from->digests[number], &record, &root, &f);

	/* For want of memory or descriptors nothing is known of it. */
	if (r == 0 || is_shortage(r))
		return 0;
	offered_withdraw(from, number);
	log_info("image_withdrawn", "name=%s why=%s", LQ(l->runtime.name), LQ(f.text));
	return UINT32_C(1) << number;
}

uint32_t images_offer(const char *dir, struct languages *to)
{
	struct dirent **list;
	uint32_t told = 0;
	int n;

	for (uint32_t i = 0; i < to->count; i++)
		told |= offered_is(to, i) ? withdraw(dir, to, i) : 0;
	n = scandir(dir, &list, is_image, alphasort);
	if (n < 0) {
		if (errno != ENOENT)
			log_warn("images", "why=\"%s: %s\"", dir, strerrordesc_np(errno));
		return told;
	}
	for (int i = 0; i < n; i++) {
		if (offered_find(to, list[i]->d_name) == to->count)
			told |= offer(dir, list[i]->d_name, to);
		free(list[i]);
	}
	free(list);
	return told;
}

/* Does its client know all of it? */
static bool is_offered(
	const struct image_record *r, const struct language *offered, const uint8_t *digest)
{
	struct runtime runtime;
	struct offer offer;

	image_runtime(r, &runtime);
	image_offer(r, &offer);
	return memcmp(&runtime, &offered->runtime, sizeof(runtime)) == 0 &&
	       memcmp(&offer, &offered->offer, sizeof(offer)) == 0 &&
	       memcmp(r->digest, digest, sizeof(r->digest)) == 0;
}

int images_open_offered(const char *dir, const struct language *offered, const uint8_t *digest,
	struct image_record *ret, int *ret_fd, struct fault *f)
{
	const char *name = offered->runtime.name;
	cleanup_fd int root = -1;
	int r = images_open(dir, name, ret, &root, f);

	if (r < 0)
		return r;
	if (!is_offered(ret, offered, digest))
		return fault_say(f, -ESTALE,
			"image %s: was replaced by another one since it was offered", name);
	*ret_fd = take_fd(&root);
	return 0;
}

int images_open_inventory(
	const char *dir, const struct language *offered, const uint8_t *digest, struct fault *f)
{
	cleanup_fd int store = sys.openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	cleanup_fd int folder = -1;
	struct image_record record;

	if (store < 0)
		return fault_set(f, store, "open %s", dir);
	folder = open_folder(store, offered->runtime.name, &record, f);
	if (folder < 0)
		return folder;
	if (!is_offered(&record, offered, digest))
		return fault_say(f, -ESTALE, "it was replaced");
	return open_sized(folder, IMAGE_INVENTORY_FILE, record.inventory_bytes, f);
}
