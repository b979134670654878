#include "base/child.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

int child_streams(posix_spawn_file_actions_t *a, int err_fd)
{
	int r = posix_spawn_file_actions_addopen(a, STDIN_FILENO, "/dev/null", O_RDONLY, 0);

	if (r == 0)
		r = posix_spawn_file_actions_addopen(a, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	if (r)
		return r;
	if (err_fd >= 0)
		return posix_spawn_file_actions_adddup2(a, err_fd, STDERR_FILENO);
	return posix_spawn_file_actions_addopen(a, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
}

int child_attributes(posix_spawnattr_t *a)
{
	sigset_t none, all;
	int r;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	r = posix_spawnattr_setflags(
		a, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSID);
	if (r == 0)
		r = posix_spawnattr_setsigmask(a, &none);
	return r ? r : posix_spawnattr_setsigdefault(a, &all);
}
