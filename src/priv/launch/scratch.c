/* How a mount tells that it was touched: /tmp and /dev/shm are root's and have times in the
 * past. Whoever makes or removes a name there or reads the directory changes them, and cannot
 * put them back without being its owner. /workspace is not asked: the program was written there
 * and owns it, and before Linux 6.13 what happens within a tick of the clock leaves one time, that
 * of the change (ctime), which is all that an owner cannot set.
 */
#include "priv/launch/scratch.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/mount.h"
#include "kernel/sys.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/statfs.h>
#include <time.h>

void scratch_clear(struct scratch *s)
{
	*s = (struct scratch){ 0 };
	for (unsigned i = 0; i < VIEW_SCRATCH; i++)
		s->mounts[i].fd = -1;
}

/* 0 or a negative errno. */
static int take_mark(int mount_fd, struct scratch_mark *ret)
{
	struct statfs room;
	int r = sys.fstat(mount_fd, &ret->dir);

	if (r == 0)
		r = sys.fstatfs(mount_fd, &room);
	if (r < 0)
		return r;
	ret->blocks = room.f_blocks;
	ret->blocks_free = room.f_bfree;
	ret->files = room.f_files;
	ret->files_free = room.f_ffree;
	return 0;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool is_untouched(const struct scratch_mount *m)
{
	const struct scratch_mark *made = &m->made;
	struct scratch_mark now;
	const struct stat *a = &made->dir, *b = &now.dir;

	return take_mark(m->fd, &now) == 0 && a->st_mode == b->st_mode && a->st_uid == b->st_uid &&
	       a->st_gid == b->st_gid && a->st_nlink == b->st_nlink && a->st_size == b->st_size &&
	       same_time(&a->st_atim, &b->st_atim) && same_time(&a->st_mtim, &b->st_mtim) &&
	       same_time(&a->st_ctim, &b->st_ctim) && made->blocks == now.blocks &&
	       made->blocks_free == now.blocks_free && made->files == now.files &&
	       made->files_free == now.files_free;
}

int scratch_make(struct scratch *s, const struct view_scratch *how, struct fault *f)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < VIEW_SCRATCH; i++) {
		struct scratch_mount *m = &s->mounts[i];

		if (m->fd >= 0)
			continue;
		m->sent = false;
		r = view_scratch(how, i, &m->fd, f);
		if (r == 0 && take_mark(m->fd, &m->made) < 0)
			m->made.files = 0; /* no mount is like that: it will be replaced */
	}
	return r;
}

int scratch_send(struct scratch *s, int channel_fd, struct fault *f)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < VIEW_SCRATCH; i++) {
		struct scratch_mount *m = &s->mounts[i];
		struct msg_mount msg = { { 0 } };

		if (m->sent)
			continue;
		(void)snprintf(msg.path, sizeof(msg.path), "%s", view_scratch_paths[i]);
		r = channel_send(channel_fd, MSG_MOUNT, &msg, &m->fd);
		m->sent = r == 0;
	}
	return r < 0 ? fault_set(f, r, "send the writable mounts") : 0;
}

int scratch_resize(struct scratch *s, uint64_t bytes, struct fault *f)
{
	int r = 0;

	for (unsigned i = 0; r == 0 && i < VIEW_SCRATCH; i++)
		r = mount_tmpfs_resize(s->mounts[i].fd, bytes, f);
	return r;
}

static uint64_t held_by(const struct statfs *st)
{
	return (uint64_t)(st->f_blocks - st->f_bfree) * (uint64_t)st->f_bsize;
}

void scratch_look(const struct scratch *s, struct denied *ret)
{
	for (unsigned i = 0; i < VIEW_SCRATCH; i++) {
		struct statfs st;

		if (s->mounts[i].fd < 0 || sys.fstatfs(s->mounts[i].fd, &st) < 0)
			continue;
		ret->scratch_bytes += held_by(&st);
		if (st.f_bfree == 0)
			ret->full |= SCRATCH_NO_ROOM(i);
		if (st.f_ffree == 0)
			ret->full |= SCRATCH_NO_FILES(i);
	}
}

bool scratch_is_plain(const struct scratch *s, const char *main_file, uint64_t bytes)
{
	const struct scratch_mount *m = &s->mounts[VIEW_WORKSPACE];
	struct statfs now;
	struct stat st;

	if (m->fd < 0 || m->made.files == 0 || sys.fstatfs(m->fd, &now) < 0 ||
		now.f_ffree + 1 != m->made.files_free ||
		held_by(&now) / (uint64_t)now.f_bsize !=
			(bytes + (uint64_t)now.f_bsize - 1) / (uint64_t)now.f_bsize)
		return false;
	if (sys.fstatat(m->fd, main_file, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		(uint64_t)st.st_size != bytes)
		return false;
	return bytes == 0 || (st.st_mtim.tv_nsec == 0 && st.st_mtim.tv_sec == st.st_ctim.tv_sec);
}

bool scratch_holds_more(const struct scratch *s, uint64_t bytes)
{
	uint64_t held = 0;

	for (unsigned i = 0; i < VIEW_SCRATCH; i++) {
		struct statfs st;

		if (sys.fstatfs(s->mounts[i].fd, &st) < 0)
			return true;
		held += held_by(&st);
	}
	return held > bytes;
}

void scratch_drop_used(struct scratch *s)
{
	bool used = false;

	for (unsigned i = 0; i < VIEW_SCRATCH; i++) {
		used |= i == VIEW_WORKSPACE || !is_untouched(&s->mounts[i]);
		if (used)
			drop_fd(&s->mounts[i].fd);
	}
}

void scratch_close(struct scratch *s)
{
	for (unsigned i = 0; i < VIEW_SCRATCH; i++)
		drop_fd(&s->mounts[i].fd);
}
