#include "client.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGUMENTS_MAX 128
#define REPLACED_MAX  8

extern char **environ;

/* In an argument, %w is the client's number, %u a text that no other run has. */
static const char *replace(const struct worker *w, const char *argument, char *bytes, size_t size)
{
	const char *at = strstr(argument, "%w"), *unique = strstr(argument, "%u");

	if (unique)
		snprintf(bytes, size, "%.*s%d-%u-%u%s", (int)(unique - argument), argument,
			(int)getpid(), w->number, w->runs, unique + 2);
	else if (at)
		snprintf(
			bytes, size, "%.*s%u%s", (int)(at - argument), argument, w->number, at + 2);
	else
		return argument;
	return bytes;
}

static bool start(struct worker *w, int stdout_fd, pid_t *ret_pid)
{
	char *argv[ARGUMENTS_MAX + 1] = { NULL }, replaced[REPLACED_MAX][512];
	posix_spawn_file_actions_t actions;
	unsigned n = 0, used = 0;
	int r;

	for (; w->load->argv[n] && n < ARGUMENTS_MAX; n++) {
		argv[n] = w->load->argv[n];
		if (used < REPLACED_MAX &&
			replace(w, argv[n], replaced[used], sizeof(replaced[0])) != argv[n])
			argv[n] = replaced[used++];
	}
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, stdout_fd, 1);
	posix_spawn_file_actions_adddup2(&actions, w->load->stderr_fd, 2);
	r = posix_spawnp(ret_pid, argv[0], &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	return r == 0 || wrong(w, "start %s: %s", argv[0], strerrordesc_np(r));
}

/* All that the child prints, to the end of the stream. */
static size_t collect(struct worker *w, int fd, pid_t pid)
{
	uint64_t end = now_ns() + ANSWER_TIMEOUT_MS * 1000000ull;
	size_t length = 0;

	while (length < w->size) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		int64_t left_ms = ((int64_t)end - (int64_t)now_ns()) / 1000000;
		ssize_t n;

		if (poll(&p, 1, left_ms > 0 ? (int)left_ms : 0) <= 0) {
			kill(pid, SIGKILL);
			return length;
		}
		n = read(fd, w->buffer + length, w->size - length);
		if (n <= 0)
			return length;
		length += (size_t)n;
	}
	kill(pid, SIGKILL);
	return length;
}

static uint64_t microseconds(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* The file that it has left, which is removed: the next run has to make its own. */
static bool check_left(struct worker *w)
{
	const char *name = w->load->left_name;
	const struct text *left = &w->load->left;
	struct text found;
	bool same;

	if (!read_file(name, &found))
		return wrong(w, "it left no %s", name);
	(void)unlink(name);
	same = found.length >= left->length && memcmp(found.bytes, left->bytes, left->length) == 0;
	free(found.bytes);
	return same || wrong(w, "%s does not begin as it has to", name);
}

bool command_once(struct worker *w, struct sample *ret)
{
	const struct text *expect = &w->load->expect;
	uint64_t began = now_ns();
	struct rusage usage;
	int pipe_fds[2], status = 0;
	size_t length;
	pid_t pid;
	bool ok;

	if (pipe2(pipe_fds, O_CLOEXEC) < 0)
		return wrong(w, "pipe: %m");
	ok = start(w, pipe_fds[1], &pid);
	close(pipe_fds[1]);
	if (!ok) {
		close(pipe_fds[0]);
		return false;
	}
	length = collect(w, pipe_fds[0], pid);
	close(pipe_fds[0]);
	wait4(pid, &status, 0, &usage);
	*ret = (struct sample){
		.latency_ns = now_ns() - began,
		.faults = (uint64_t)usage.ru_minflt,
		.cpu_us = microseconds(&usage.ru_utime) + microseconds(&usage.ru_stime),
	};
	if (status != 0)
		return wrong(w, "wait status %d", status);
	if (length != expect->length || memcmp(w->buffer, expect->bytes, length) != 0)
		return wrong(w, "printed \"%.*s\"", (int)(length < 80 ? length : 80), w->buffer);
	return !w->load->left_name || check_left(w);
}
