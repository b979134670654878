#include "box/zygote/rehearse.h"

#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "box/zygote/finish.h"
#include "box/zygote/program.h"
#include "box/zygote/python.h"
#include "box/zygote/report.h"
#include "kernel/sys.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

/* Pipes, as a run has them: an empty one to read, and one to write that nobody reads (the
 * program says less than a pipe holds). */
static int place_streams(int *ret_read_fd, struct fault *f)
{
	cleanup_fd int in_read = -1, in_write = -1, out_read = -1, out_write = -1;
	int fds[2], r = sys.pipe2(fds, O_CLOEXEC);

	if (r < 0)
		return fault_set(f, r, "pipe");
	in_read = fds[0];
	in_write = fds[1];
	r = sys.pipe2(fds, O_CLOEXEC);
	if (r < 0)
		return fault_set(f, r, "pipe");
	out_read = fds[0];
	out_write = fds[1];
	r = sys.dup3(in_read, 0, 0);
	if (r >= 0)
		r = sys.dup3(out_write, 1, 0);
	if (r >= 0)
		r = sys.dup3(out_write, 2, 0);
	if (r < 0)
		return fault_set(f, r, "streams");
	*ret_read_fd = take_fd(&out_read);
	return 0;
}

/* The program as a file that no directory ever held. */
static int open_training(const char *source, unsigned long bytes, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = sys.memfd_create("main.py", MFD_CLOEXEC);
	int r;

	if (fd < 0)
		return fault_set(f, fd, "memfd_create");
	r = io_write_all(fd, source, bytes);
	if (r < 0)
		return fault_set(f, r, "write the training program");
	*ret_fd = take_fd(&fd);
	return 0;
}

static int run(int program_fd, int (*scrub)(void), bool in_full, struct fault *f)
{
	struct report silent = { 0 };
	struct program_end end;
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", program_fd);
	silent.path = path;
	end = program_run(&silent);
	finish_rehearse(in_full);
	if (end.status != 0)
		return fault_say(f, -EINVAL, "the training program fails");
	if (scrub() < 0)
		return python_fault(f, "rehearsal");
	return 0;
}

/* The training program's output, for whoever has to find out why it fails. */
static void explain(int read_fd, struct fault *f)
{
	char text[256];
	ssize_t n = sys.read(read_fd, text, sizeof(text) - 1);

	if (n <= 0)
		return;
	text[n] = '\0';
	(void)fault_wrap(f, "rehearsal printed \"%s\"", text);
}

int rehearse(const struct rehearsal *rehearsal, struct fault *f)
{
	cleanup_fd int program_fd = -1, read_fd = -1;
	int r = open_training(rehearsal->source, rehearsal->bytes, &program_fd, f);

	if (r == 0)
		r = place_streams(&read_fd, f);
	if (r == 0)
		r = run(program_fd, rehearsal->scrub, rehearsal->in_full, f);
	if (r < 0 && read_fd >= 0)
		explain(read_fd, f);
	return r;
}
