#include "tests/unit/lineage_play.h"

#include "base/clock.h"
#include "base/own.h"
#include "tests/unit/count_fds.h"
#include "tests/unit/unit.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define DEADLINE_MS  20000
#define TOKEN        1000
#define CHILDREN_MAX 16 /* of one test */

struct play play;

static struct reaper reaper;
static struct runtime runtime = { .name = "play" };
static struct cell_factory factory = { .runtime = &runtime };
static uint64_t generations; /* as of all lines */
static int null_fd = -1;
static unsigned fds_before;

/* The zygotes' ends of what was started, by their generation. */
static struct {
	int channel_fd, pidfd;
} started[PLAY_GENERATIONS];

static char told[256]; /* what the owner was told, in words */

/* ---- Children ---- */

static pid_t children[CHILDREN_MAX];
static unsigned children_count;

struct process play_child(void)
{
	struct process p = { .pid = fork(), .pidfd = -1, .release_fd = -1 };

	if (p.pid == 0) {
		(void)alarm(2 * DEADLINE_MS / 1000); /* not before the test has failed */
		for (;;)
			(void)pause();
	}
	assert_true(p.pid > 0 && children_count < CHILDREN_MAX);
	children[children_count++] = p.pid;
	p.pidfd = (int)syscall(SYS_pidfd_open, p.pid, 0);
	assert_true(p.pidfd >= 0);
	return p;
}

static bool is_dead_within(int pidfd, int ms)
{
	struct pollfd p = { .fd = pidfd, .events = POLLIN };

	return poll(&p, 1, ms) == 1;
}

bool play_is_ended(const struct process *p)
{
	return is_dead_within(p->pidfd, DEADLINE_MS);
}

int __wrap_zygote_start(struct zygote *z, const struct cell_factory *with, const char *preload,
	uint64_t generation, struct fault *f);

int __wrap_zygote_start(struct zygote *z, const struct cell_factory *with, const char *preload,
	uint64_t generation, struct fault *f)
{
	int pair[2];

	assert_ptr_equal(with, &factory);
	assert_ptr_equal(preload, play.settings.preload);
	assert_int_equal(z->state, ZYGOTE_ABSENT);
	assert_int_equal(z->process.pid, 0);
	assert_in_range(generation, 1, PLAY_GENERATIONS - 1);
	assert_int_equal(play.pids[generation], 0);
	zygote_clear(z);
	z->generation = generation;
	z->runtime = with->runtime->name;
	z->started_ns = clock_ns();
	z->deadline_ns = z->started_ns + PLAY_START_NS;
	if (play.start_fails) {
		z->fault = *f;
		return fault_set(&z->fault, -EMFILE, "zygote: no start");
	}
	assert_int_equal(channel_pair(pair, 1), 0);
	z->process = play_child();
	z->channel_fd = pair[0];
	z->state = ZYGOTE_STARTING;
	started[generation].channel_fd = pair[1];
	play.pids[generation] = z->process.pid;
	started[generation].pidfd = dup(z->process.pidfd);
	return 0;
}

/* ---- The owner ---- */

static void tell(const char *what, uint64_t number)
{
	size_t len = strlen(told);

	(void)snprintf(told + len, sizeof(told) - len, "%s%s %lu", len ? ", " : "", what,
		(unsigned long)number);
}

/* Whoever answers says who it is. */
static void must_be(uint64_t generation)
{
	assert_in_range(generation, 1, PLAY_GENERATIONS - 1);
	assert_int_equal(generation, play.answers);
}

static bool on_forked(void *ctx, uint64_t generation, uint64_t id, struct process *child)
{
	assert_ptr_equal(ctx, &play.line);
	must_be(generation);
	tell("forked", id);
	assert_int_equal(play.given.pid, 0);
	play.given = *child;
	return play.is_awaited;
}

static void on_unforked(void *ctx, uint64_t generation, uint64_t id)
{
	assert_ptr_equal(ctx, &play.line);
	must_be(generation);
	tell("unforked", id);
}

static void on_lost(void *ctx, uint64_t generation)
{
	assert_ptr_equal(ctx, &play.line);
	tell("lost", generation);
}

void play_must_have_told(const char *expected)
{
	assert_string_equal(told, expected);
	told[0] = '\0';
}

/* ---- The line ---- */

void play_open(bool wanted)
{
	const struct lineage_owner owner = { &play.settings, &factory, play.settings.preload,
		&generations, &reaper, &play.line, on_forked, on_unforked, on_lost };

	lineage_open(&play.line, &owner, wanted);
	play.line.watch = (struct watch){ epoll_create1(EPOLL_CLOEXEC), TOKEN };
	assert_true(play.line.watch.epoll_fd >= 0);
}

void play_forget(void)
{
	told[0] = '\0';
}

int play_begin(void **state)
{
	(void)state;
	fds_before = count_fds();
	reaper_clear(&reaper);
	play.settings.zygote_max_forks = 1000;
	play.settings.zygote_max_age_us = 600 * UINT64_C(1000000);
	for (unsigned i = 0; i < PLAY_GENERATIONS; i++) {
		started[i].channel_fd = started[i].pidfd = -1;
		play.pids[i] = 0;
	}
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	told[0] = '\0';
	generations = 0;
	play.start_fails = false;
	play.is_awaited = true;
	process_clear(&play.given);
	play_open(true);
	return null_fd < 0;
}

static bool is_ours(pid_t pid, void *ctx)
{
	(void)ctx;
	return reaper_knows(&reaper, pid);
}

int play_end(void **state)
{
	bool all_ended = true;

	(void)state;
	lineage_close(&play.line);
	reaper_keep(&reaper, &play.given);
	for (unsigned i = 0; i < PLAY_GENERATIONS; i++) {
		drop_fd(&started[i].channel_fd);
		if (started[i].pidfd >= 0)
			all_ended = all_ended && is_dead_within(started[i].pidfd, DEADLINE_MS);
		drop_fd(&started[i].pidfd);
	}
	/* The reaper has reaped nobody: the numbers are theirs. */
	while (children_count > 0) {
		pid_t pid = children[--children_count];

		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, 0);
	}
	reaper_tick(&reaper, 0, is_ours, NULL);
	drop_fd(&play.line.watch.epoll_fd);
	drop_fd(&null_fd);
	return all_ended && count_fds() == fds_before ? 0 : -1;
}

void play_tick(void)
{
	lineage_tick(&play.line, clock_ns());
}

/* Hand on all that the epoll tells, as the supervisor's loop does. */
static void listen_all(void)
{
	struct epoll_event ev;

	for (int i = 0; epoll_wait(play.line.watch.epoll_fd, &ev, 1, 0) == 1; i++) {
		assert_true(i < 100);
		assert_in_range(ev.data.u64, TOKEN, TOKEN + 2);
		lineage_look(&play.line, (unsigned)(ev.data.u64 - TOKEN));
	}
}

static void say(uint64_t generation, enum msg_type type, const void *payload, const int *fds)
{
	play.answers = generation;
	assert_int_equal(channel_send(started[generation].channel_fd, type, payload, fds), 0);
}

void play_warm_up(uint64_t generation)
{
	const struct msg_warm m = { .generation = generation, .version = "3" };

	say(generation, MSG_WARM, &m, NULL);
	listen_all();
}

void play_have_one(void)
{
	play_tick();
	play_warm_up(1);
	assert_true(lineage_is_warm(&play.line));
}

void play_succeed(uint64_t generation)
{
	uint64_t now = clock_ns();

	play.settings.zygote_max_forks = 1;
	/* One that was lost just now makes it wait. */
	lineage_tick(&play.line, now > play.line.retry_ns ? now : play.line.retry_ns);
	play.settings.zygote_max_forks = 1000;
	assert_true(play.pids[generation] > 0);
	play_warm_up(generation);
}

uint64_t play_ask(uint64_t id)
{
	static struct cell c;
	static struct msg m;

	c = (struct cell){ .id = id, .init = { .pidfd = null_fd }, .leaf = { .fd = { null_fd } } };
	assert_int_equal(lineage_fork(&play.line, &c, null_fd, true), 0);
	assert_true(c.rehearsed);
	assert_int_equal(channel_recv(started[c.generation].channel_fd, ROLE_SUPERVISOR,
				 ROLE_ZYGOTE, &m, NULL),
		1);
	assert_int_equal(m.type, MSG_FORK);
	assert_int_equal(m.as.FORK.cell, id);
	assert_int_equal(m.as.FORK.rehearse, 1);
	msg_done(&m);
	return c.generation;
}

void play_answer(uint64_t generation, uint64_t id, const struct process *child, pid_t pid)
{
	const struct msg_forked m = { .cell = id, .pid = pid };

	say(generation, MSG_FORKED, &m, &child->pidfd);
	listen_all();
}

void play_refuse(uint64_t generation, uint64_t id)
{
	struct msg_broken m = { .cell = id };

	(void)fault_set(&m.fault, -EAGAIN, "fork");
	say(generation, MSG_UNFORKED, &m, NULL);
	listen_all();
}

void play_die(uint64_t generation)
{
	/* Not only closed: later children have copies of it. */
	assert_int_equal(shutdown(started[generation].channel_fd, SHUT_RDWR), 0);
	listen_all();
}

void play_must_be_ended(uint64_t generation)
{
	assert_true(play.pids[generation] > 0);
	assert_true(reaper_knows(&reaper, play.pids[generation]));
	assert_false(lineage_knows(&play.line, play.pids[generation]));
	assert_true(is_dead_within(started[generation].pidfd, DEADLINE_MS));
}

void play_must_live(uint64_t generation)
{
	assert_true(play.pids[generation] > 0);
	assert_true(lineage_knows(&play.line, play.pids[generation]));
	assert_false(is_dead_within(started[generation].pidfd, 0));
}

void play_fork(uint64_t generation)
{
	struct process child = play_child();

	assert_int_equal(play_ask(generation), generation);
	play_answer(generation, generation, &child, child.pid);
	assert_int_equal(play.given.pid, child.pid);
	reaper_keep(&reaper, &play.given);
	process_close(&child);
	play_forget();
}
