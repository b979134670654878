#include "tests/unit/board_play.h"

#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "base/own.h"
#include "tests/unit/api_settings.h"
#include "tests/unit/unit.h"
#include "wire/channel.h"
#include "wire/report.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define SLOTS 4 /* more than there are cells */

struct play play;

static struct runtime runtime = { .name = "python", .main_file = "main.py" };
static struct cgroup inits, zygotes, collectors, gates;
static struct view view;
static int epoll_fd = -1;

/* Their views are there already. */
static void open_languages(void)
{
	struct language *l = play.languages.of;

	play.languages.count = 3;
	l[0].runtime = l[1].runtime = l[2].runtime = runtime;
	memcpy(l[1].runtime.argv[0], "/dev/null", sizeof("/dev/null"));
	l[2].offer.compiled = 1;
	memcpy(l[2].compile_argv[0], "/dev/none", sizeof("/dev/none"));
	factories_open(&play.factories, &play.factory, &play.languages, &play.settings);
	for (unsigned i = 1; i < 3; i++) {
		play.factories.of[i].factory = play.factories.of[i].compiler_factory = play.factory;
		play.factories.of[i].made = true;
	}
}

int play_begin(void **state)
{
	int pair[2];

	(void)state;
	log_setup("test", LOG_LEVEL_ERR);
	no_kernel_install();
	no_kernel_reset();
	memset(&play, 0, sizeof(play));
	play.tree = (struct cgroup_tree){
		.count = 2, .of = { 1, 1, 1, 1 }, .h = { { .version = 2 }, { .version = 1 } }
	};
	play.settings = api_settings;
	play.settings.max_runs = play.settings.pool_size = play.settings.max_builds = 1;
	play.settings.cage_runs = 1;
	play.settings.cell_max_age_us = play.settings.zygote_max_age_us = UINT64_C(600) * 1000000;
	play.asked = play.settings.def;
	play.next = (struct msg_submit){ .run = PLAY_RUN };
	cgroup_clear(&inits);
	cgroup_clear(&zygotes);
	cgroup_clear(&collectors);
	collectors.fd[0] = memfd_create("collectors", MFD_CLOEXEC);
	cgroup_clear(&gates);
	gates.fd[0] = memfd_create("gates", MFD_CLOEXEC);
	play.factory = (struct cell_factory){ .tree = &play.tree,
		.inits = &inits,
		.zygotes = &zygotes,
		.image_zygotes = &zygotes,
		.collectors = &collectors,
		.gates = &gates,
		.view = &view,
		.runtime = &runtime,
		.box_image_fd = -1,
		.gate_image_fd = -1,
		.uid_base = 2000000,
		.workspace_inodes = 64,
		.usual = play.settings.def,
		.runs_max = 1 };
	open_languages();
	pool_open(&play.pool, &play.settings, &play.factory, false);
	play.pool.factories = &play.factories;
	play.pool.builds.count = 1;
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	play.pool.watch = (struct watch){ epoll_fd, 8 };
	play.pool.lineage.watch = (struct watch){ epoll_fd, 1 };
	play.pool.lines.watch = (struct watch){ epoll_fd, 1000 };
	board_init(&play.board);
	play.board.settings = &play.settings;
	play.board.pool = play.board.collects.pool = &play.pool;
	play.board.collects.settings = &play.settings;
	play.board.slots = 1;
	play.records = (struct taskstats_feed){ .fd = epoll_fd };
	play.board.records = &play.records;
	assert_int_equal(channel_pair(pair, 1), 0);
	play.client_fd = pair[0];
	play.board.client_fd = pair[1];
	return 0;
}

int play_end(void **state)
{
	(void)state;
	board_cancel_all(&play.board);
	pool_close(&play.pool);
	for (unsigned i = 0; i < 100 && (board_busy(&play.board) > 0 || pool_alive(&play.pool) > 0);
		i++) {
		play_later(100 * NS_PER_MS);
		play_look();
	}
	assert_int_equal(board_busy(&play.board), 0);
	assert_int_equal(no.groups, 0);
	drop_fd(&play.board.client_fd);
	drop_fd(&play.client_fd);
	drop_fd(&epoll_fd);
	drop_fd(&collectors.fd[0]);
	drop_fd(&gates.fd[0]);
	no_kernel_reset();
	return 0;
}

struct no_process *play_process(bool init)
{
	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		struct no_process *p = &no.processes[i];

		if (p->pid > 0 && p->life_fd >= 0 && !p->zygote && !p->gate && p->init == init)
			return p;
	}
	fail();
	return NULL;
}

void play_read(struct no_process *p)
{
	static struct msg m;

	(void)fcntl(p->channel_fd, F_SETFL, O_NONBLOCK);
	while (channel_recv(p->channel_fd, ROLE_SUPERVISOR, ROLE_BOX, &m, NULL) == 1)
		msg_done(&m);
}

void play_look(void)
{
	for (unsigned slot = 0; slot < SLOTS; slot++)
		board_look(&play.board, slot);
}

void play_later(uint64_t ns)
{
	no.now_ns += ns;
	(void)board_tick(&play.board);
}

void play_pass_the_deadline(void)
{
	no.now_ns = play.board.jobs[0].deadline_ns;
	(void)board_tick(&play.board);
}

struct no_process *play_park(void)
{
	const struct msg_built built = { 0 };
	const struct msg_entered entered = { 0 };
	struct no_process *p;

	(void)board_tick(&play.board);
	p = play_process(true);
	play_read(p);
	assert_int_equal(channel_send(p->channel_fd, MSG_BUILT, &built, NULL), 0);
	play_look();
	p = play_process(false);
	play_read(p);
	p->entered = true;
	assert_int_equal(channel_send(p->channel_fd, MSG_ENTERED, &entered, NULL), 0);
	play_look();
	return p;
}

int play_try_to_submit(const char **ret_rule)
{
	static struct msg m;
	int in[2], out[2], err[2], code = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int report = memfd_create("report", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int r;

	assert_int_equal(pipe2(in, O_CLOEXEC) + pipe2(out, O_CLOEXEC) + pipe2(err, O_CLOEXEC), 0);
	assert_int_equal(ftruncate(code, 4), 0);
	assert_int_equal(io_seal(code), 0);
	assert_int_equal(ftruncate(report, (off_t)REPORT_BYTES), 0);
	assert_int_equal(fcntl(report, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW), 0);
	memset(&m, 0, sizeof(m));
	m.type = MSG_SUBMIT;
	m.nfds = 5;
	m.as.SUBMIT = play.next;
	m.as.SUBMIT.limits = play.asked;
	m.as.SUBMIT.code_bytes = 4;
	m.fds[0] = code;
	m.fds[1] = in[0];
	m.fds[2] = out[1];
	m.fds[3] = err[1];
	m.fds[4] = report;
	r = board_submit(&play.board, &m, ret_rule);
	(void)close(in[1]);
	(void)close(out[0]);
	(void)close(err[0]);
	return r;
}

void play_submit(void)
{
	const char *rule = NULL;

	if (play_try_to_submit(&rule) < 0)
		fail_msg("%s", rule);
}

struct no_process *play_release(void)
{
	struct no_process *p = play_park();

	play_submit();
	assert_int_equal(play.board.jobs[0].state, JOB_RUNNING);
	return p;
}

enum msg_type play_answered(struct msg *ret)
{
	return channel_recv(play.client_fd, ROLE_SUPERVISOR, ROLE_CLIENT, ret, NULL) == 1
		       ? ret->type
		       : 0;
}

void play_end_program(void)
{
	struct no_process *p = play_release();

	play_read(p);
	no_process_die(p, 0);
	play_look();
}

enum run_cause play_cause(struct msg *ret)
{
	for (unsigned i = 0; i < 20; i++) {
		enum msg_type type = play_answered(ret);

		if (type != 0)
			return type == MSG_RESULT ? (enum run_cause)ret->as.RESULT.cause
						  : CAUSE_MAX;
		play_look();
		play_later(NS_PER_MS);
	}
	fail();
	return CAUSE_MAX;
}
