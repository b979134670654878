#include "caller/image/make.h"

#include "base/fault.h"
#include "base/own.h"
#include "caller/image/command.h"
#include "caller/image/imager.h"
#include "caller/image/uids.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <time.h>
#include <unistd.h>

/* What mksquashfs may take: a million directories need some 900 MiB, and each processor the stacks of
 * three threads. -mem is about its queues only. */
#define PACKER_MEMORY   "4294967296"
#define PACKER_CPUS_MAX 32

/* ---- Tar to squashfs ---- */

static int create_root(const struct make *m, const char *fresh, struct fault *f)
{
	char path[sizeof(IMAGE_ROOT_FILE) + STORE_FRESH_MAX];
	cleanup_fd int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/" IMAGE_ROOT_FILE, fresh);
	fd = openat(m->store->fd, path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0 || fchown(fd, PACKER_UID, PACKER_UID) < 0)
		return fault_set(f, -errno, "create %s/%s", m->store->path, path);
	return take_fd(&fd);
}

/* What mksquashfs reads is clean, but what needs no right has none.
 *
 * The same files give the same bytes. It dates the file system and, of a tar, also the root's
 * directory by the clock (4.5.1 forgets its -root-time there), but nothing later than
 * SOURCE_DATE_EPOCH: with the date of the newest file in it, no other date is changed. (A file
 * dated in the future takes that from it.) Level 6, because the usual 15 takes ten times as long for a
 * twelfth less. It opens its target by name, for which that must be its own; -noappend, because it
 * is there. (mksquashfs, which is the same program, takes no level in 4.5.1.) */
static int start_packer(
	struct command *c, int in_fd, int root_fd, uint32_t newest_s, struct fault *f)
{
	char uid[32], gid[32], processors[16], epoch[40];
	const char *const argv[] = { "prlimit", "--data=" PACKER_MEMORY, "setpriv", "--pdeathsig",
		"KILL", uid, gid, "--clear-groups", "--no-new-privs", "--bounding-set=-all",
		"--inh-caps=-all", "env", epoch, "mksquashfs", "-", "/proc/self/fd/1", "-tar",
		"-noappend", "-comp", "zstd", "-Xcompression-level", "6", "-all-root", "-no-xattrs",
		"-root-mode", "0755", "-mem", "256M", "-processors", processors, "-quiet",
		"-no-progress", NULL };
	int cpus = get_nprocs();
	int r;

	(void)snprintf(processors, sizeof(processors), "%d",
		cpus < PACKER_CPUS_MAX ? cpus : PACKER_CPUS_MAX);
	(void)snprintf(epoch, sizeof(epoch), "SOURCE_DATE_EPOCH=%u", newest_s);
	(void)snprintf(uid, sizeof(uid), "--reuid=%d", PACKER_UID);
	(void)snprintf(gid, sizeof(gid), "--regid=%d", PACKER_UID);
	r = command_start(c, argv, in_fd, root_fd, f);
	c->name = "mksquashfs";
	return r;
}

/* ---- The pipeline ---- */

/* What is installed, as it was told (wire/image.h). */
struct inventory {
	size_t len;
	char text[IMAGE_INVENTORY_MAX];
};

struct pipeline {
	struct imager imager;
	struct command packer;
	int tar_fd; /* what the imager writes, until the packer has it */
	int root_fd;
	struct inventory *inventory;
};

static int start_in_time(struct pipeline *p, const struct msg_unpacking *now, struct fault *f)
{
	int r;

	if (now->pass == 0 || p->tar_fd < 0)
		return 0;
	r = start_packer(&p->packer, p->tar_fd, p->root_fd, now->newest_s, f);
	drop_fd(&p->tar_fd);
	return r;
}

static int take_listed(struct inventory *in, const struct msg_listed *m, struct fault *f)
{
	if (m->len > sizeof(m->text) || m->len > sizeof(in->text) - in->len)
		return fault_say(f, -EPROTO, "the process that reads it lists more than it may");
	memcpy(in->text + in->len, m->text, m->len);
	in->len += m->len;
	return 0;
}

static int await_unpacked(
	const struct make *m, struct pipeline *p, struct msg_unpacked *ret, struct fault *f)
{
	static struct msg message;

	for (;;) {
		int r = imager_hear(&p->imager, &message, f);

		if (r == 0 && message.type == MSG_UNPACKED) {
			*ret = message.as.UNPACKED;
			return p->tar_fd < 0
				       ? 0
				       : fault_say(f, -EPROTO,
						 "the process that reads it has written nothing");
		}
		if (r == 0 && message.type == MSG_LISTED)
			r = take_listed(p->inventory, &message.as.LISTED, f);
		if (r == 0 && message.type == MSG_UNPACKING) {
			m->progress(m->ctx, &message.as.UNPACKING);
			r = start_in_time(p, &message.as.UNPACKING, f);
		}
		if (r < 0)
			return r;
	}
}

static int start_imager(const struct make *m, struct pipeline *p, struct fault *f)
{
	cleanup_fd int write_end = -1;
	int ends[2], r;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, -errno, "pipe");
	p->tar_fd = ends[0];
	write_end = ends[1];
	r = imager_start(&p->imager, "unpack", m->source_fd, write_end, f);
	if (r == 0 && channel_send(p->imager.channel_fd, MSG_UNPACK, &m->ask, NULL) < 0)
		r = fault_say(f, -ECONNRESET, "the process that reads it has ended");
	return r;
}

/* The archive through the confined process and through mksquashfs into `root_fd`. */
static int pack(const struct make *m, int root_fd, struct msg_unpacked *ret,
	struct inventory *ret_inventory, struct fault *f)
{
	struct pipeline p = { { .channel_fd = -1 }, { .err_fd = -1 }, -1, root_fd, ret_inventory };
	struct fault packing = { 0 };
	int r = start_imager(m, &p, f);

	if (r == 0)
		r = await_unpacked(m, &p, ret, f);
	m->progress(m->ctx, NULL);
	imager_end(&p.imager);
	drop_fd(&p.tar_fd);
	/* The imager could not write to it, and has said so: it knows why. */
	if ((r == 0 || r == -EPIPE) && p.packer.pid > 0 && command_wait(&p.packer, &packing) < 0) {
		*f = packing;
		r = packing.code;
	}
	command_end(&p.packer);
	return r;
}

/* From now on the file is root's, and nobody writes to it: neither by its name, nor by a descriptor
 * from before, which a change of owner does not close. A lease for reading is given only while
 * nobody has the file open for writing (fcntl(2)), and so we must not, either. */
static int finish(const struct make *m, const char *fresh, int *root_fd, struct fault *f)
{
	char path[sizeof(IMAGE_ROOT_FILE) + STORE_FRESH_MAX];
	cleanup_fd int fd = -1;
	int r;

	(void)snprintf(path, sizeof(path), "%s/" IMAGE_ROOT_FILE, fresh);
	fd = openat(m->store->fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fchown(fd, 0, 0) < 0 || fchmod(fd, 0444) < 0 || fsync(fd) < 0)
		return fault_set(f, -errno, "finish the image's file");
	drop_fd(root_fd);
	r = fcntl(fd, F_SETLEASE, F_RDLCK) < 0 ? -errno : 0;
	if (r == -EAGAIN)
		return fault_say(f, r,
			"somebody has the image's file open for writing: which process is of uid "
			"%d, and not ours?",
			PACKER_UID);
	if (r < 0)
		return fault_set(
			f, r, "%s: make sure that nobody writes (F_SETLEASE)", m->store->path);
	(void)fcntl(fd, F_SETLEASE, F_UNLCK);
	*root_fd = take_fd(&fd);
	return 0;
}

static int measure(const struct make *m, int root_fd, const struct msg_unpacked *u,
	struct image_record *ret, struct fault *f)
{
	struct msg_digest d = { .bytes = 0 };
	time_t now = time(NULL);
	struct tm utc;
	int r = imager_digest(root_fd, &d, f);

	if (r < 0)
		return r;
	*ret = (struct image_record){
		.magic = IMAGE_MAGIC,
		.trusted = m->trusted,
		.bytes = d.bytes,
		.unpacked_bytes = u->unpacked_bytes,
		.entries = u->entries,
		.start = u->start,
	};
	memcpy(ret->digest, d.digest, sizeof(ret->digest));
	memcpy(ret->arch, u->arch, sizeof(ret->arch));
	(void)snprintf(ret->name, sizeof(ret->name), "%s", m->name);
	if (gmtime_r(&now, &utc))
		(void)strftime(ret->at, sizeof(ret->at), "%Y-%m-%dT%H:%M:%SZ", &utc);
	return 0;
}

static int keep_inventory(const struct make *m, const char *fresh, const struct inventory *in,
	struct image_record *ret, struct fault *f)
{
	cleanup_fd int fd = -1;
	struct msg_digest d;
	int r;

	if (!image_inventory_is_valid(in->text, in->len))
		return fault_say(f, -EPROTO, "the process that reads it lists what is no text");
	fd = store_put_inventory(m->store, fresh, in->text, in->len, f);
	r = fd < 0 ? fd : imager_digest(fd, &d, f);
	if (r < 0)
		return r;
	ret->inventory_bytes = d.bytes;
	memcpy(ret->inventory_digest, d.digest, sizeof(ret->inventory_digest));
	return 0;
}

static int make_in(const struct make *m, const char *fresh, struct image_record *ret,
	struct image_losses *ret_losses, struct fault *f)
{
	cleanup_fd int root_fd = create_root(m, fresh, f);
	static struct msg_unpacked done;
	static struct inventory inventory;
	const char *rule;
	int r = root_fd < 0 ? root_fd : pack(m, root_fd, &done, &inventory, f);

	if (r == 0)
		r = finish(m, fresh, &root_fd, f);
	if (r == 0)
		r = measure(m, root_fd, &done, ret, f);
	if (r == 0)
		r = keep_inventory(m, fresh, &inventory, ret, f);
	if (r < 0)
		return r;
	*ret_losses = done.losses;
	rule = image_record_fault(ret);
	if (rule)
		return fault_say(f, -EINVAL, "%s", rule);
	return store_commit(m->store, fresh, ret, f);
}

int make_image(const struct make *m, struct image_record *ret, struct image_losses *ret_losses,
	struct fault *f)
{
	char fresh[STORE_FRESH_MAX];
	struct fault none = { 0 };
	int r = uids_are_ours(f);

	if (r == 0)
		r = store_begin(m->store, fresh, f);
	if (r < 0)
		return r;
	r = make_in(m, fresh, ret, ret_losses, f);
	if (r < 0)
		(void)store_remove(m->store, fresh, &none); /* else the next command sweeps it */
	return r;
}
