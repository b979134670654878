#include "tests/lib/flaky_page.h"

#include "kernel/sys.h"
#include "tests/lib/flaky.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* How the page gets into the interpreter, whose root has no such file: above what it has open
 * otherwise, below its limit. */
#define PAGE_FD 200

static struct flaky_page *page;
static uint32_t role, child_role; /* child_role: what a child of this process is, 0: never asked */
static pid_t own_pid;
static uint32_t epoch, count;
static uint32_t dice = 1;

/* Does this call count, and could it fail? */
static bool counts(const char *name)
{
	char word[32];

	(void)snprintf(word, sizeof(word), " %s ", name);
	return strcmp(name, "close") != 0 &&
	       (strstr(page->spared, word) != NULL) == (page->only_spared != 0);
}

static bool has_come(uint32_t n)
{
	uint32_t seen;

	seen = __atomic_load_n(&page->calls, __ATOMIC_SEQ_CST);
	while (seen <= n && !__atomic_compare_exchange_n(&page->calls, &seen, n + 1, false,
				    __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST))
		;
	if (page->mode == FLAKY_NTH && n != page->nth)
		return false;
	if (page->mode == FLAKY_RANDOM) {
		dice = dice * 1664525u + 1013904223u;
		if ((dice >> 16) >= page->odds)
			return false;
	}
	return true;
}

/* Take one of a number that all processes share; false: none is left. */
static bool take(uint32_t *number)
{
	uint32_t left = __atomic_load_n(number, __ATOMIC_SEQ_CST);

	do {
		if (left == 0)
			return false;
	} while (!__atomic_compare_exchange_n(
		number, &left, left - 1, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST));
	return true;
}

static int turn(const char *name)
{
	uint32_t hit, n;

	if (child_role != 0 && getpid() != own_pid) {
		own_pid = getpid();
		role = child_role;
		child_role = 0;
		count = 0;
		dice += (uint32_t)own_pid;
	}
	if (!counts(name))
		return 0;
	/* Those that live long are counted from a change of the page on. */
	if ((role & (FLAKY_SUPERVISOR | FLAKY_PYTHON)) && epoch != page->epoch) {
		epoch = page->epoch;
		count = 0;
	}
	n = count++;
	if (page->mode == FLAKY_OFF || !(page->roles & role) || !has_come(n))
		return 0;
	if (take(&page->passes) || !take(&page->shots))
		return 0;
	hit = __atomic_fetch_add(&page->hits, 1, __ATOMIC_SEQ_CST) % FLAKY_NAMES;
	(void)snprintf(page->names[hit], sizeof(page->names[hit]), "%s", name);
	page->by[hit] = role;
	return (int)page->code;
}

/* ---- A kernel that lacks what no filter of system calls sees ---- */

static struct sys_ops next;

static bool is_hidden(const char *what, const char *name)
{
	char rule[64];

	(void)snprintf(rule, sizeof(rule), "%s:%s", what, name);
	for (int i = 0; i < 4; i++) {
		if (strcmp(page->hidden[i], rule) == 0)
			return true;
	}
	return false;
}

/* "file:NAME": no file of that name, wherever it would be. */
static bool is_hidden_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	return is_hidden("file", slash ? slash + 1 : path);
}

static int openat_unless_hidden(int dir_fd, const char *path, int flags, mode_t mode)
{
	return is_hidden_file(path) ? -ENOENT : next.openat(dir_fd, path, flags, mode);
}

static int fstatat_unless_hidden(int dir_fd, const char *path, struct stat *ret, int flags)
{
	return is_hidden_file(path) ? -ENOENT : next.fstatat(dir_fd, path, ret, flags);
}

/* "fsopen:TYPE": no such file system. */
static int fsopen_unless_hidden(const char *type, unsigned flags)
{
	return type && is_hidden("fsopen", type) ? -ENODEV : next.fsopen(type, flags);
}

/* "clone3:into_cgroup": a kernel that is older than that flag. */
static pid_t clone3_unless_hidden(struct clone_args *args, size_t size)
{
	if ((args->flags & CLONE_INTO_CGROUP) && is_hidden("clone3", "into_cgroup"))
		return -EINVAL;
	if (args->set_tid_size > 0 && is_hidden("clone3", "set_tid"))
		return -EINVAL;
	return next.clone3(args, size);
}

/* ---- Calls that are not made through the table; see meson.build ---- */

#define WRAP(type, name, params, args)             \
	type __real_##name params;                 \
	type __wrap_##name params;                 \
	type __wrap_##name params                  \
	{                                          \
		int code = page ? turn(#name) : 0; \
                                                   \
		if (code != 0) {                   \
			errno = code;              \
			return (type)-1;           \
		}                                  \
		return __real_##name args;         \
	}

WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags))
WRAP(ssize_t, recvmsg, (int fd, struct msghdr *m, int flags), (fd, m, flags))
WRAP(int, epoll_wait, (int fd, struct epoll_event *e, int room, int ms), (fd, e, room, ms))
WRAP(pid_t, wait4, (pid_t pid, int *status, int options, struct rusage *u),
	(pid, status, options, u))

/* To drop what is watched needs nothing that could be short. */
int __real_epoll_ctl(int fd, int op, int on_fd, struct epoll_event *e);
int __wrap_epoll_ctl(int fd, int op, int on_fd, struct epoll_event *e);
int __wrap_epoll_ctl(int fd, int op, int on_fd, struct epoll_event *e)
{
	int code = page && op != EPOLL_CTL_DEL ? turn("epoll_ctl") : 0;

	if (code == 0)
		return __real_epoll_ctl(fd, op, on_fd, e);
	errno = code;
	return -1;
}

int __real_io_seal(int fd);
int __wrap_io_seal(int fd);
int __wrap_io_seal(int fd)
{
	int code = page ? turn("io_seal") : 0;

	return code != 0 ? -code : __real_io_seal(fd);
}

int __real_faccessat(int dir_fd, const char *path, int mode, int flags);
int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags);
int __wrap_faccessat(int dir_fd, const char *path, int mode, int flags)
{
	if (page && is_hidden_file(path)) {
		errno = ENOENT;
		return -1;
	}
	return __real_faccessat(dir_fd, path, mode, flags);
}

/* ---- Who this is ---- */

static const struct {
	const char *argument;
	uint32_t role, child_role;
} who[] = {
	{ "@supervisor", FLAKY_SUPERVISOR, FLAKY_SPAWN },
	{ "@probe", FLAKY_SUPERVISOR, FLAKY_SPAWN },
	{ "init", FLAKY_INIT, 0 },
	{ "enter", FLAKY_ENTER, 0 },
	{ "zygote", FLAKY_ZYGOTE, 0 },
	{ "collect", FLAKY_COLLECT, 0 },
	{ "module", FLAKY_PYTHON, FLAKY_CHILD },
};

static bool is_mine(const char *argument)
{
	for (unsigned i = 0; i < sizeof(who) / sizeof(who[0]); i++) {
		if (strcmp(argument, who[i].argument) != 0)
			continue;
		role = who[i].role;
		child_role = who[i].child_role;
		return true;
	}
	return false;
}

void flaky_page_open(const char *path, const char *argument)
{
	void *at;
	int fd;

	if (!is_mine(argument))
		return;
	fd = role == FLAKY_PYTHON ? PAGE_FD : open(path, O_RDWR | O_CLOEXEC);
	at = mmap(NULL, sizeof(*page), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		abort(); /* a test that fails nothing must not pass */
	if (role == FLAKY_ZYGOTE)
		(void)dup2(fd, PAGE_FD);
	(void)close(fd);
	own_pid = getpid();
	page = at;
	/* Numbers of processes are the same in each cell; what fails at random must not be. */
	dice = 2654435761u * __atomic_add_fetch(&page->processes, 1, __ATOMIC_SEQ_CST);
	flaky_ask(turn);
	next = sys;
	sys.openat = openat_unless_hidden;
	sys.fstatat = fstatat_unless_hidden;
	sys.fsopen = fsopen_unless_hidden;
	sys.clone3 = clone3_unless_hidden;
}
