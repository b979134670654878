#include "tests/unit/taskstats_ends.h"

#include "base/check.h"
#include "base/io.h"
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *spin(void *arg)
{
	for (;;)
		(void)pause();
	return arg;
}

static void *end_all(void *arg)
{
	exit((int)(intptr_t)arg);
}

static void *end_later(void *arg)
{
	(void)usleep(20000);
	return arg;
}

/* When the main thread is dead, and waits for the others to be reaped with it. */
static void *end_after_main(void *arg)
{
	char path[64], text[512] = "";

	(void)snprintf(path, sizeof(path), "/proc/self/task/%d/stat", getpid());
	while (!strstr(text, ") Z ")) {
		if (io_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
			text[0] = '\0';
	}
	return arg;
}

static void *exec_other(void *arg)
{
	(void)execl("/bin/sh", "sh", "-c", "exit 9", (char *)NULL);
	return arg;
}

static void start(void *(*run)(void *), void *arg)
{
	pthread_t t;

	if (pthread_create(&t, NULL, run, arg) != 0)
		_exit(99);
}

void end_0(void)
{
	_exit(0);
}
void end_7(void)
{
	_exit(7);
}
static void end_255(void)
{
	_exit(255);
}
static void end_by_the_bare_call(void)
{
	(void)syscall(SYS_exit, 5);
}
static void end_by_kill(void)
{
	(void)raise(SIGKILL);
}
static void end_by_term(void)
{
	(void)raise(SIGTERM);
}
static void end_with_a_core(void)
{
	const struct rlimit all = { RLIM_INFINITY, RLIM_INFINITY };

	(void)setrlimit(RLIMIT_CORE, &all);
	(void)signal(SIGABRT, SIG_DFL);
	abort();
}
static void end_without_a_core(void)
{
	const struct rlimit none = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &none);
	(void)signal(SIGSEGV, SIG_DFL);
	(void)raise(SIGSEGV);
}
static void end_with_a_thread_alive(void)
{
	start(spin, NULL);
	exit(3);
}
static void end_by_another_thread(void)
{
	start(end_all, (void *)(intptr_t)6);
	(void)spin(NULL);
}
static void end_of_main_before_the_others(void)
{
	start(end_after_main, NULL);
	pthread_exit(NULL);
}
static void end_after_the_others(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, end_later, NULL) == 0)
		(void)pthread_join(t, NULL);
	_exit(8);
}
static void end_after_an_exec_by_another_thread(void)
{
	start(exec_other, NULL);
	(void)spin(NULL);
}
void end_after_a_child(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(1);
	(void)waitpid(pid, NULL, 0);
	_exit(4);
}
static void end_after_a_vfork(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(1);
	_exit(10); /* the child is dead, and nobody's but init's */
}

const struct end ends[] = {
	{ "0", end_0, ALWAYS, false },
	{ "7", end_7, ALWAYS, false },
	{ "255", end_255, ALWAYS, false },
	{ "bare exit", end_by_the_bare_call, ALWAYS, false },
	{ "SIGKILL", end_by_kill, ALWAYS, false },
	{ "SIGTERM", end_by_term, ALWAYS, false },
	{ "core", end_with_a_core, ALWAYS, false },
	{ "no core", end_without_a_core, ALWAYS, false },
	{ "thread alive", end_with_a_thread_alive, MAYBE, true },
	{ "by another thread", end_by_another_thread, MAYBE, true },
	{ "main first", end_of_main_before_the_others, NEVER, true },
	{ "main last", end_after_the_others, ALWAYS, true },
	{ "exec by another thread", end_after_an_exec_by_another_thread, ALWAYS, true },
	{ "after a child", end_after_a_child, ALWAYS, false },
	{ "after a vfork", end_after_a_vfork, ALWAYS, false },
};
const unsigned ends_count = ARRAY_LEN(ends);

int end_reap(pid_t pid, struct rusage *ret_usage)
{
	int status;

	assert_int_equal(wait4(pid, &status, 0, ret_usage), pid);
	return status;
}

pid_t end_run(void (*program)(void))
{
	pid_t pid = fork();

	if (pid == 0) {
		program();
		_exit(98);
	}
	assert_true(pid > 0);
	return pid;
}
