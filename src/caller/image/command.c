#include "caller/image/command.h"

#include "base/child.h"
#include "base/fault.h"
#include "base/own.h"
#include "caller/lib/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define SAID_MAX 320 /* of the end of what it says */

static void actions_done(posix_spawn_file_actions_t *a)
{
	(void)posix_spawn_file_actions_destroy(a);
}

static void attr_done(posix_spawnattr_t *a)
{
	(void)posix_spawnattr_destroy(a);
}

/* None of ours is one of the three numbers: stdin, stdout and stderr are open. */
static int plan(
	posix_spawn_file_actions_t *a, posix_spawnattr_t *attr, int in_fd, int out_fd, int err_fd)
{
	int r = child_streams(a, err_fd);

	if (r == 0 && in_fd >= 0)
		r = posix_spawn_file_actions_adddup2(a, in_fd, STDIN_FILENO);
	if (r == 0 && out_fd >= 0)
		r = posix_spawn_file_actions_adddup2(a, out_fd, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn_file_actions_addclosefrom_np(a, STDERR_FILENO + 1);
	return r ? r : child_attributes(attr);
}

int command_start(
	struct command *c, const char *const *argv, int in_fd, int out_fd, struct fault *f)
{
	/* posix_spawn() takes char *, for reasons of history; it does not write. */
	static char path[] = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
	static char lang[] = "LANG=C.UTF-8", room[] = "TMPDIR=/var/tmp";
	char *const envp[] = { path, lang, room, NULL };
	CLEANUP(actions_done) posix_spawn_file_actions_t actions;
	CLEANUP(attr_done) posix_spawnattr_t attr;
	union {
		const char *const *from;
		char *const *to;
	} args = { argv };
	int r;

	*c = (struct command){ .err_fd = memfd_create("stderr", MFD_CLOEXEC), .name = argv[0] };
	r = posix_spawn_file_actions_init(&actions);
	if (r == 0)
		r = posix_spawnattr_init(&attr);
	if (r == 0)
		r = plan(&actions, &attr, in_fd, out_fd, c->err_fd);
	if (r == 0)
		r = posix_spawnp(&c->pid, argv[0], &actions, &attr, args.to, envp);
	if (r == ENOENT)
		return fault_say(f, -r, "%s is not installed, and is needed for this", argv[0]);
	return r ? fault_set(f, -r, "start %s", argv[0]) : 0;
}

/* The end of what it has said on one line, with nothing in it that a terminal would obey. */
static void last_words(int fd, char ret[static SAID_MAX])
{
	struct stat st = { 0 };
	off_t from;
	ssize_t n;

	(void)fstat(fd, &st);
	from = st.st_size > SAID_MAX - 1 ? st.st_size - (SAID_MAX - 1) : 0;
	n = pread(fd, ret, SAID_MAX - 1, from);
	n = n < 0 ? 0 : n;
	while (n > 0 && ret[n - 1] == '\n')
		n--;
	ret[n] = '\0';
	for (char *p = ret; *p; p++)
		if (*p == '\n')
			*p = ';';
		else if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

int command_wait(struct command *c, struct fault *f)
{
	char said[SAID_MAX];
	int status = c->pid > 0 ? spawn_wait(c->pid) : -1;

	c->pid = 0;
	if (status == 0)
		return 0;
	last_words(c->err_fd, said);
	if (WIFSIGNALED(status))
		return fault_say(f, -EIO, "%s was killed by signal %d", c->name, WTERMSIG(status));
	return fault_say(f, -EIO, "%s failed: %s", c->name, said[0] ? said : "it does not say why");
}

int command_watch(
	struct command *c, void (*tick)(void *ctx, unsigned seconds), void *ctx, struct fault *f)
{
	cleanup_fd int fd = c->pid > 0 ? pidfd_open(c->pid, 0) : -1;
	struct pollfd ended = { .fd = fd, .events = POLLIN };

	for (unsigned seconds = 1; fd >= 0 && poll(&ended, 1, 1000) == 0; seconds++)
		tick(ctx, seconds);
	return command_wait(c, f);
}

void command_end(struct command *c)
{
	if (c->pid > 0) {
		(void)kill(c->pid, SIGKILL);
		(void)spawn_wait(c->pid);
	}
	c->pid = 0;
	drop_fd(&c->err_fd);
}
