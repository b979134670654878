#include "caller/cli/run_out.h"

#include "base/io.h"
#include "base/log.h"
#include "base/own.h"

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEFT_OUT_SHOWN 20 /* lines of stderr */

#define OPEN_DIRECTORY (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)

int run_out_open(struct run_out *o, const char *dir)
{
	if (mkdir(dir, 0777) < 0 && errno != EEXIST) {
		error(0, errno, "%s", dir);
		return -1;
	}
	o->dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->dir_fd < 0) {
		error(0, errno, "%s", dir);
		return -1;
	}
	return 0;
}

/* Nothing has become of the file: what was there stays. */
static void abandon(struct run_out *o)
{
	if (o->file_fd >= 0)
		(void)unlinkat(o->parent_fd, o->unfinished, 0);
	drop_fd(&o->file_fd);
	drop_fd(&o->parent_fd);
}

static void complain(struct run_out *o, int e)
{
	error(0, e, "--out: %s", LQ(o->path));
	o->failed = true;
	abandon(o);
}

/* The directory that the file lies in, made if it is missing; o->name is what is left. */
static int open_parent(struct run_out *o)
{
	cleanup_fd int fd = fcntl(o->dir_fd, F_DUPFD_CLOEXEC, 0);
	char *slash;

	o->name = o->path;
	while (fd >= 0 && (slash = strchr(o->name, '/'))) {
		int next;

		*slash = '\0';
		if (mkdirat(fd, o->name, 0777) < 0 && errno != EEXIST)
			next = -1;
		else
			next = openat(fd, o->name, OPEN_DIRECTORY);
		*slash = '/';
		if (next < 0)
			return -errno;
		(void)close(fd);
		fd = next;
		o->name = slash + 1;
	}
	if (fd < 0)
		return -errno;
	o->parent_fd = take_fd(&fd);
	return 0;
}

/* A name that no program could have chosen for one of its files. */
static int open_unfinished(struct run_out *o)
{
	uint64_t number;

	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		return -errno;
	(void)snprintf(o->unfinished, sizeof(o->unfinished), ".glovebox-%016" PRIx64, number);
	o->file_fd = openat(o->parent_fd, o->unfinished,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	return o->file_fd < 0 ? -errno : 0;
}

static void begin(struct run_out *o, const struct gbx_artifact *a)
{
	int r;

	(void)snprintf(o->path, sizeof(o->path), "%s", a->path);
	r = open_parent(o);
	if (r == 0)
		r = open_unfinished(o);
	if (r < 0)
		complain(o, -r);
}

/* What bounds it, as far as a setting does. */
static const char *setting_of(const char *reason)
{
	static const char *const list[][2] = { { "count", " (artifact-files)" },
		{ "too_large", " (artifact-file-bytes)" }, { "total_bytes", " (artifact-bytes)" } };

	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (strcmp(list[i][0], reason) == 0)
			return list[i][1];
	return "";
}

static void leave_out(struct run_out *o, const struct gbx_artifact *a)
{
	if (o->quiet || o->left_out++ >= LEFT_OUT_SHOWN)
		return;
	(void)snprintf(o->path, sizeof(o->path), "%s", a->path);
	error(0, 0, "--out: %s is left out: %s%s", LQ(o->path), a->reason, setting_of(a->reason));
}

/* What is there under the name is replaced, not written into: it may have other names. And only by
 * what is whole: some file systems tell of a full disk as late as in close(). */
static int finish(struct run_out *o)
{
	int r = close(take_fd(&o->file_fd)) < 0 ? -errno : 0;

	if (r == 0 && renameat(o->parent_fd, o->unfinished, o->parent_fd, o->name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(o->parent_fd, o->unfinished, 0);
	return r;
}

static void end(struct run_out *o, const struct gbx_artifact *a)
{
	int r = o->file_fd >= 0 && !a->reason ? finish(o) : 0;

	if (r < 0)
		complain(o, -r);
	abandon(o);
	if (a->reason)
		leave_out(o, a);
}

void run_out_take(
	struct run_out *o, int event, const struct gbx_artifact *a, const void *bytes, size_t len)
{
	int r = 0;

	switch ((enum gbx_artifact_event)event) {
	case GBX_ARTIFACT_BEGIN:
		begin(o, a);
		break;
	case GBX_ARTIFACT_BYTES:
		if (o->file_fd >= 0)
			r = io_write_all(o->file_fd, bytes, len);
		if (r < 0)
			complain(o, -r);
		break;
	case GBX_ARTIFACT_END:
		end(o, a);
		break;
	case GBX_ARTIFACT_SKIPPED:
		leave_out(o, a);
		break;
	}
}

int run_out_end(struct run_out *o, const struct gbx_result *result)
{
	uint64_t more = result->artifacts_unnamed;

	if (o->left_out > LEFT_OUT_SHOWN)
		more += o->left_out - LEFT_OUT_SHOWN;
	if (more > 0 && !o->quiet)
		error(0, 0, "--out: %llu more files are left out", (unsigned long long)more);
	if (!result->artifacts_complete)
		error(0, 0, "--out: collecting the files failed; there may be more");
	return o->failed || !result->artifacts_complete ? -1 : 0;
}

void run_out_close(struct run_out *o)
{
	abandon(o);
	drop_fd(&o->dir_fd);
}
