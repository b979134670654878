#include "caller/image/imager.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "caller/lib/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Its program, carried in this one (src/edge/meson.build). */
extern const unsigned char imager_image_start[], imager_image_end[];

static int program_fd(struct fault *f)
{
	cleanup_fd int fd = memfd_create("glovebox-imager", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r = fd < 0 ? -errno : 0;

	if (r == 0)
		r = io_write_all(
			fd, imager_image_start, (size_t)(imager_image_end - imager_image_start));
	if (r == 0)
		r = io_seal(fd);
	return r < 0 ? fault_set(f, r, "the program that reads images") : take_fd(&fd);
}

int imager_start(struct imager *i, const char *job, int in_fd, int out_fd, struct fault *f)
{
	cleanup_fd int program = program_fd(f), theirs = -1;
	cleanup_fd int none = open("/dev/null", O_RDWR | O_CLOEXEC);
	char path[64];
	int pair[2], r;

	*i = (struct imager){ .channel_fd = -1 };
	if (program < 0)
		return program;
	r = channel_pair(pair, 0);
	if (r < 0 || none < 0)
		return fault_set(f, r < 0 ? r : -errno, "socket pair");
	i->channel_fd = pair[0];
	theirs = pair[1];
	/* By our own number: the child has closed the descriptor by then. */
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)getpid(), program);
	return spawn_role(
		&(struct spawn_plan){
			.program = path,
			.role = job,
			.fds = (const int[]){ theirs, in_fd, out_fd < 0 ? none : out_fd },
			.nfds = 3,
			.log_fd = STDERR_FILENO,
		},
		&i->pid, f);
}

int imager_hear(const struct imager *i, struct msg *ret, struct fault *f)
{
	const char *rule = "";
	int r = channel_recv(i->channel_fd, ROLE_IMAGER, ROLE_CLIENT, ret, &rule);

	/* It says ECONNRESET where something that we had sent was not read. */
	if (r == 0 || r == -ECONNRESET)
		return fault_say(f, -ECONNRESET,
			"the process that reads it has ended without an answer: it wanted more "
			"memory or time than an image may need");
	if (r < 0)
		return fault_set(f, r, "the process that reads it: %s", rule);
	if (ret->type != MSG_IMAGE_BAD)
		return 0;
	*f = ret->as.IMAGE_BAD.fault;
	return fault_launder(f);
}

void imager_end(struct imager *i)
{
	drop_fd(&i->channel_fd);
	if (i->pid > 0) {
		(void)kill(i->pid, SIGKILL);
		(void)spawn_wait(i->pid);
	}
	i->pid = 0;
}

int imager_digest(int fd, struct msg_digest *ret, struct fault *f)
{
	static struct msg m;
	struct imager i;
	int r = imager_start(&i, "digest", fd, -1, f);

	if (r == 0)
		r = imager_hear(&i, &m, f);
	if (r == 0 && m.type != MSG_DIGEST)
		r = fault_say(f, -EPROTO, "the process that reads it: another answer");
	if (r == 0)
		*ret = m.as.DIGEST;
	imager_end(&i);
	return r;
}
