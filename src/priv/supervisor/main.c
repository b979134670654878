/* The supervisor: the one process that keeps privileges, and the parent of every other.
 *
 * While it serves it reads two kinds of things only: fixed-size messages of wire/msg.h
 * from its one client, and files of the kernel. The client is the front of a server, or
 * libglovebox in the process of somebody who called `glovebox run`; it is trusted with
 * nothing (submit.h).
 *
 * One loop: epoll tells that something happened at a slot, or that the client spoke, or
 * that a signal came; board_look() and board_tick() do the rest. Nothing in the loop
 * waits for anything else.
 *
 * When the front dies, its runs are killed and it is started again. When this process
 * dies, everything dies: children by PDEATHSIG, cells with their init, whose channel
 * closes; the groups that remain are swept by the next start.
 */
#include "priv/supervisor/main.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "kernel/caps.h"
#include "kernel/signals.h"
#include "priv/supervisor/board.h"
#include "priv/supervisor/boot.h"
#include "priv/supervisor/engine.h"
#include "priv/supervisor/front.h"
#include "priv/supervisor/stored.h"
#include "priv/supervisor/tested.h"
#include "priv/supervisor/urgency.h"
#include "priv/supervisor/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <unistd.h>

enum token {
	TOKEN_SIGNAL,
	TOKEN_CLIENT,
	TOKEN_LOG,
	TOKEN_RECORDS,
	TOKEN_TESTED,
	TOKEN_STORED,
	/* Three for the pool's own line of zygotes, three for each of the images'. */
	TOKEN_ZYGOTE,
	TOKEN_LINES = TOKEN_ZYGOTE + LINEAGE_ZYGOTES,
	/* The first slot; everything from here on: the slots, then their listeners. */
	TOKEN_SLOTS = TOKEN_LINES + LINES_MAX * LINEAGE_ZYGOTES
};

#define RESTART_MIN_NS (100 * NS_PER_MS)
#define RESTART_MAX_NS (5 * NS_PER_S)
#define KILL_GRACE_NS  (5 * NS_PER_S)  /* for the cells, after everything was killed */
#define CLIENT_BURST   64              /* messages read in one go, so that slots get their turn */
#define RESEND_NS      (5 * NS_PER_MS) /* as board.c does with answers */

static struct {
	struct engine engine;
	struct pool pool;
	struct board board;
	struct front front;
	struct urgency urgency;
	struct tested tested;
	struct stored stored;
	struct msg_hello hello;
	struct msg_health told; /* what the client heard last, and when */
	uint64_t told_ns;
	int epoll_fd, signal_fd;
	bool server; /* false: one library client, and the end with it */
	bool keeper; /* of a library that has many runs: with ready cells, as a server */
	bool draining, stopped;
	uint64_t drain_deadline_ns;           /* when the rest is killed */
	uint64_t drain_due_ns, tested_due_ns; /* found the channel full: sent again; 0: was sent */
	uint64_t restart_ns, restart_wait_ns; /* of the front; 0: it runs */
	int exit_status;
} sv;

static void watch(int fd, enum token token)
{
	const struct watch w = { sv.epoll_fd, token };

	watch_add(&w, 0, fd, EPOLLIN);
}

static void unwatch(int fd)
{
	const struct watch w = { .epoll_fd = sv.epoll_fd };

	watch_drop(&w, fd);
}

static int open_loop(struct fault *f)
{
	sigset_t set;
	int r = signals_reset(
		f); /* SIGCHLD ignored by whoever started us: no child could be awaited */

	if (r < 0)
		return r;
	(void)signal(SIGPIPE, SIG_IGN);
	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	if (sigprocmask(SIG_BLOCK, &set, NULL) < 0)
		return fault_set(f, -errno, "block signals");
	sv.signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	sv.epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (sv.signal_fd < 0 || sv.epoll_fd < 0)
		return fault_set(f, -errno, "event loop");
	watch(sv.signal_fd, TOKEN_SIGNAL);
	return 0;
}

#define HEALTH_NS (50 * NS_PER_MS) /* at most so often, when only the pool has changed */

static void fill_health(struct msg_health *m)
{
	const struct lineage *l = &sv.pool.lineage;
	const struct zygote *z = &l->current;

	m->running = board_busy(&sv.board);
	m->pool_ready = pool_ready(&sv.pool);
	m->generation = z->state == ZYGOTE_WARM ? z->generation : 0;
	if (!l->wanted)
		m->warm = WARM_OFF;
	else if (z->state == ZYGOTE_WARM)
		m->warm = WARM_ON;
	else
		m->warm = l->lost.code ? WARM_LOST : WARM_STARTING;
	m->warm_why = l->lost;
	m->warm_images = lines_warm(&sv.pool.lines);
}

static void send_health(bool ready, const struct fault *why)
{
	struct msg_health m = { .ready = ready, .why = *why };

	fill_health(&m);
	sv.told = m;
	sv.told_ns = clock_ns();
	if (sv.board.client_fd >= 0 && channel_send(sv.board.client_fd, MSG_HEALTH, &m, NULL) < 0) {
		log_warn("health_lost", "ready=%d", ready);
		sv.told.pool_ready = UINT32_MAX; /* nothing is like it: it is told again */
	}
}

/* Tell the front what has become of the pool, now and then. */
static uint64_t tell_pool(uint64_t now)
{
	const struct fault none = { 0 };
	struct msg_health m = { .ready = 0 };

	if (!(sv.server || sv.keeper) || sv.draining || sv.board.client_fd < 0)
		return UINT64_MAX;
	/* A library waits for the first ready cell, and between its runs it reads nothing. */
	if (sv.keeper && sv.told.pool_ready > 0)
		return UINT64_MAX;
	fill_health(&m);
	if (m.pool_ready == sv.told.pool_ready && m.warm == sv.told.warm &&
		m.generation == sv.told.generation && m.warm_images == sv.told.warm_images)
		return UINT64_MAX;
	if (now - sv.told_ns < HEALTH_NS)
		return sv.told_ns + HEALTH_NS;
	send_health(true, &none);
	return UINT64_MAX;
}

static void send_tested(void)
{
	int r = 0;

	if (sv.server && sv.board.client_fd >= 0)
		r = channel_send(sv.board.client_fd, MSG_SELFTEST, &sv.tested.last, NULL);
	sv.tested_due_ns = r < 0 ? clock_ns() + RESEND_NS : 0;
}

static int greet(struct fault *f)
{
	const struct fault none = { 0 };
	int r;

	sv.hello.languages = sv.engine.languages.count;
	r = channel_send(sv.board.client_fd, MSG_HELLO, &sv.hello, NULL);
	if (r == 0)
		r = engine_offer(&sv.engine, sv.board.client_fd);
	if (r < 0)
		return fault_set(f, r, "send HELLO");
	stored_greeted(&sv.stored);
	send_tested();
	send_health(true, &none);
	return 0;
}

static void end_front(void)
{
	unwatch(sv.front.channel_fd);
	unwatch(sv.front.log_fd);
	sv.board.client_fd = -1;
	urgency_front(&sv.urgency, 0);
	front_end(&sv.front);
}

static int start_front(struct fault *f)
{
	int r = front_start(&sv.front, sv.engine.self_fd, &sv.engine.settings, f);

	if (r < 0)
		return r;
	sv.restart_ns = 0;
	sv.pool.other_child = sv.front.process.pid;
	urgency_front(&sv.urgency, sv.front.process.pid);
	sv.board.client_fd = sv.front.channel_fd;
	watch(sv.front.channel_fd, TOKEN_CLIENT);
	watch(sv.front.log_fd, TOKEN_LOG);
	r = greet(f);
	if (r < 0)
		end_front();
	return r;
}

static int start_server(struct fault *f)
{
	int r = front_listen(&sv.front, &sv.engine.settings, f);

	if (r < 0)
		return r;
	engine_hello(&sv.engine, sv.front.port, &sv.hello);
	tested_open(&sv.tested);
	if (sv.tested.watch_fd >= 0)
		watch(sv.tested.watch_fd, TOKEN_TESTED);
	return start_front(f);
}

static int start_library(struct fault *f)
{
	int flags = fcntl(BOOT_CHANNEL, F_GETFL);

	if (flags < 0 || fcntl(BOOT_CHANNEL, F_SETFL, flags | O_NONBLOCK) < 0 ||
		fcntl(BOOT_CHANNEL, F_SETFD, FD_CLOEXEC) < 0)
		return fault_set(f, -errno, "the library's channel");
	sv.board.client_fd = BOOT_CHANNEL;
	engine_hello(&sv.engine, 0, &sv.hello);
	watch(BOOT_CHANNEL, TOKEN_CLIENT);
	return greet(f);
}

/* A front that has much to read gets it a little later; one that cannot be told has nothing to
 * finish. */
static void send_drain(void)
{
	uint64_t now = clock_ns();
	struct msg_drain m = {
		.grace_us =
			now < sv.drain_deadline_ns ? (sv.drain_deadline_ns - now) / NS_PER_US : 0,
	};
	int r = sv.board.client_fd >= 0 ? channel_send(sv.board.client_fd, MSG_DRAIN, &m, NULL)
					: -EPIPE;

	sv.drain_due_ns = r == -EAGAIN ? now + RESEND_NS : 0;
	if (r < 0 && r != -EAGAIN)
		sv.stopped = true;
}

/* Begin the orderly end: nothing new, what runs may finish within the grace. */
static void drain(void)
{
	const struct fault why = { .code = -ESHUTDOWN, .text = "shutting down" };
	uint64_t grace_us = sv.engine.settings.shutdown_grace_us;

	if (sv.draining || !sv.server) {
		/* The second signal, or a library whose only purpose was the run. */
		sv.draining = true;
		sv.stopped = true;
		return;
	}
	sv.draining = true;
	sv.drain_deadline_ns = clock_ns() + grace_us * NS_PER_US;
	log_info("drain", "running=%u grace_ms=%lu", board_busy(&sv.board),
		(unsigned long)(grace_us / 1000));
	send_health(false, &why);
	send_drain();
	/* Our copy too, or whoever connects now would wait in the backlog until the end. */
	front_unlisten(&sv.front, &sv.engine.settings);
}

static void on_signal(void)
{
	struct signalfd_siginfo si;

	while (read(sv.signal_fd, &si, sizeof(si)) == (ssize_t)sizeof(si)) {
		/* Started from a terminal that has gone: a server stays. */
		if (si.ssi_signo != SIGHUP || !sv.server)
			drain();
	}
}

/* The client is gone, by its own doing or by ours. */
static void client_gone(const char *why)
{
	uint64_t wait = sv.restart_wait_ns;

	unwatch(sv.board.client_fd);
	board_lose_client(&sv.board);
	if (!sv.server) {
		sv.stopped = true;
		return;
	}
	end_front();
	if (sv.draining) {
		sv.stopped = true;
		return;
	}
	log_err("front_lost", "why=\"%s\" restart_ms=%lu", why, (unsigned long)(wait / NS_PER_MS));
	sv.restart_ns = clock_ns() + wait;
	sv.restart_wait_ns = wait * 2 > RESTART_MAX_NS ? RESTART_MAX_NS : wait * 2;
}

static void on_message(struct msg *m)
{
	const struct fault draining = { .code = -ESHUTDOWN, .text = "shutting down" };
	const char *rule = "";

	if (m->type == MSG_CANCEL) {
		board_cancel(&sv.board, m->as.CANCEL.run);
	} else if (m->type == MSG_SUBMIT && sv.draining && !sv.server) {
		struct msg_refused no = { .run = m->as.SUBMIT.run, .retry = 1, .fault = draining };

		(void)channel_send(sv.board.client_fd, MSG_REFUSED, &no, NULL);
		msg_done(m);
	} else if (m->type == MSG_SUBMIT && board_submit(&sv.board, m, &rule) < 0) {
		client_gone(rule);
	} else if (m->type == MSG_NETWORK && board_network(&sv.board, m, &rule) < 0) {
		client_gone(rule);
	} else if (m->type == MSG_COLLECT && board_collect(&sv.board, m, &rule) < 0) {
		client_gone(rule);
	}
	/* A front that can send a message has come up: its next crash is a new one. */
	sv.restart_wait_ns = RESTART_MIN_NS;
}

static void on_client(void)
{
	static struct msg m;
	const char *rule = "";

	for (unsigned i = 0; i < CLIENT_BURST && sv.board.client_fd >= 0; i++) {
		int r = channel_recv(sv.board.client_fd, ROLE_CLIENT, ROLE_SUPERVISOR, &m, &rule);

		if (r == -EAGAIN)
			return;
		if (r == 1)
			on_message(&m);
		else
			client_gone(r == 0         ? "it closed its channel"
				    : r == -EPROTO ? rule
						   : strerrordesc_np(-r));
	}
}

/* Everything from TOKEN_ZYGOTE on. */
static void on_pool(uint64_t token)
{
	if (token >= TOKEN_SLOTS + LEASE_CELLS)
		pool_answer(&sv.pool, (unsigned)(token - TOKEN_SLOTS - LEASE_CELLS));
	else if (token >= TOKEN_SLOTS)
		board_look(&sv.board, (unsigned)(token - TOKEN_SLOTS));
	else if (token >= TOKEN_LINES)
		lines_look(&sv.pool.lines, (unsigned)(token - TOKEN_LINES));
	else
		lineage_look(&sv.pool.lineage, (unsigned)(token - TOKEN_ZYGOTE));
}

static void on_event(const struct epoll_event *ev)
{
	uint64_t token = ev->data.u64;

	switch ((enum token)token) {
	case TOKEN_SIGNAL:
		on_signal();
		break;
	case TOKEN_CLIENT:
		if (sv.board.client_fd >= 0)
			on_client();
		break;
	case TOKEN_LOG:
		if (sv.front.log_fd >= 0 && !front_relay_log(&sv.front))
			unwatch(sv.front.log_fd);
		break;
	case TOKEN_RECORDS:
		board_hear_records(&sv.board);
		break;
	case TOKEN_TESTED:
		if (tested_look(&sv.tested))
			send_tested();
		break;
	case TOKEN_STORED:
		stored_look(&sv.stored);
		stored_renew(&sv.stored, &sv.engine, sv.board.client_fd);
		break;
	case TOKEN_ZYGOTE:
	case TOKEN_LINES:
	case TOKEN_SLOTS:
	default:
		on_pool(token);
		break;
	}
}

/* What is to be sent again. */
static uint64_t resend(uint64_t now)
{
	uint64_t next = UINT64_MAX;

	if (sv.tested_due_ns != 0 && now >= sv.tested_due_ns)
		send_tested();
	if (sv.drain_due_ns != 0 && now >= sv.drain_due_ns)
		send_drain();
	if (sv.tested_due_ns != 0)
		next = clock_earlier(next, sv.tested_due_ns);
	if (sv.drain_due_ns != 0)
		next = clock_earlier(next, sv.drain_due_ns);
	return next;
}

static uint64_t tick(void)
{
	uint64_t next = board_tick(&sv.board), now = clock_ns();
	struct fault f = { 0 };

	if (board_drop_images(&sv.board)) {
		/* Images that there was no room for may have some now. */
		stored_renew(&sv.stored, &sv.engine, sv.board.client_fd);
		next = now; /* what ended with them is to be looked at */
	}
	next = clock_earlier(next, stored_tick(&sv.stored, &sv.engine, sv.board.client_fd, now));
	next = clock_earlier(next, tell_pool(now));
	next = clock_earlier(next, resend(now));
	next = clock_earlier(next, urgency_tick(&sv.urgency, board_busy(&sv.board), now));

	if (sv.draining && !sv.stopped) {
		if (now >= sv.drain_deadline_ns)
			sv.stopped = true;
		else if (sv.drain_deadline_ns < next)
			next = sv.drain_deadline_ns;
	}
	if (sv.restart_ns == 0)
		return next;
	if (now < sv.restart_ns)
		return clock_earlier(next, sv.restart_ns);
	if (start_front(&f) < 0) {
		log_err("front_restart", "why=%s", LQ(f.text));
		sv.restart_ns = now + RESTART_MAX_NS;
		return clock_earlier(next, sv.restart_ns);
	}
	log_warn("front_restarted", "starts=%u", sv.front.starts);
	return next;
}

static void turn(uint64_t until_ns)
{
	struct epoll_event ev[32];
	uint64_t next = clock_earlier(until_ns, watch_retry(clock_ns()));
	int n = epoll_wait(sv.epoll_fd, ev, 32, clock_ms_until(next));

	for (int i = 0; i < n; i++)
		on_event(&ev[i]);
	if (sv.board.client_broken) {
		sv.board.client_broken = false;
		if (sv.board.client_fd >= 0)
			client_gone("it does not take its answers");
	}
}

static void serve(void)
{
	while (!sv.stopped)
		turn(tick());

	/* Whatever still runs ends here, and is waited for. */
	board_cancel_all(&sv.board);
	pool_close(&sv.pool);
	sv.drain_deadline_ns = clock_ns() + KILL_GRACE_NS;
	while (clock_ns() < sv.drain_deadline_ns) {
		uint64_t next = board_tick(&sv.board);

		/* After the tick: it removes cells, and what it has removed wakes nobody. */
		if (board_busy(&sv.board) == 0 && pool_alive(&sv.pool) == 0)
			break;
		turn(next < sv.drain_deadline_ns ? next : sv.drain_deadline_ns);
	}
}

/* Why it does not start: for a person at the terminal, or for the library that asked. */
static void say_refusal(const struct fault *f)
{
	struct msg_health m = { .ready = 0, .why = *f };

	if (sv.server)
		(void)fprintf(stderr, "glovebox: %s\n", f->text);
	else
		(void)channel_send(BOOT_CHANNEL, MSG_HEALTH, &m, NULL);
}

static bool is_boards(const void *ctx, pid_t pid)
{
	return board_knows(ctx, pid);
}

/* A library's one run is served sooner by a cold start than by a zygote that must import
 * everything first. One that has many asks for it (GBX_READY_CELLS). */
static void open_pool(void)
{
	struct settings *s = &sv.engine.settings;

	pool_open(&sv.pool, s, &sv.engine.factory, (sv.server || sv.keeper) && !s->cold);
	sv.pool.factories = &sv.engine.factories;
	sv.pool.builds.count = s->max_runs;
	sv.pool.watch = (struct watch){ sv.epoll_fd, TOKEN_SLOTS };
	sv.pool.lineage.watch = (struct watch){ sv.epoll_fd, TOKEN_ZYGOTE };
	sv.pool.lines.watch = (struct watch){ sv.epoll_fd, TOKEN_LINES };
	sv.board.settings = s;
	sv.board.pool = &sv.pool;
	sv.board.collects.pool = &sv.pool;
	sv.board.collects.settings = s;
	sv.pool.claims = is_boards;
	sv.pool.claims_ctx = &sv.board;
	sv.board.slots = s->max_runs;
	sv.board.records = &sv.engine.records;
	if (sv.engine.records.fd >= 0)
		watch(sv.engine.records.fd, TOKEN_RECORDS);
}

static void open_store(void)
{
	if (sv.server)
		stored_open(&sv.stored, sv.engine.settings.image_dir);
	if (sv.stored.watch_fd >= 0)
		watch(sv.stored.watch_fd, TOKEN_STORED);
	/* After that, so that nothing is missed; nobody is to be told yet. */
	stored_renew(&sv.stored, &sv.engine, -1);
}

static int start(struct fault *f)
{
	int r = open_loop(f);

	if (r == 0)
		r = engine_open(&sv.engine, sv.server || sv.keeper, f);
	if (r < 0)
		return r;
	log_setup("supervisor", (enum log_level)sv.engine.settings.log_level);
	log_info("network", "state=%s why=%s", sv.engine.settings.network ? "on" : "off",
		LQ(network_why_text(sv.engine.settings.network_why)));
	urgency_init(&sv.urgency, sv.server && sv.engine.settings.urgent);
	open_pool();
	open_store();
	r = sv.server ? start_server(f) : start_library(f);
	if (r == 0)
		r = caps_keep_only(KEPT_CAPABILITIES | (caps_permitted() & LIKED_CAPABILITIES), f);
	return r;
}

int role_keeper(void)
{
	sv.keeper = true;
	return role_supervisor();
}

int role_supervisor(void)
{
	struct fault f = { 0 };
	struct stat st;

	log_setup("supervisor", LOG_LEVEL_INFO);
	sv.server = fstat(BOOT_CHANNEL, &st) < 0 || !S_ISSOCK(st.st_mode);
	sv.restart_wait_ns = RESTART_MIN_NS;
	engine_clear(&sv.engine);
	sv.engine.listens = sv.server;
	front_clear(&sv.front);
	tested_clear(&sv.tested);
	stored_clear(&sv.stored);
	board_init(&sv.board);
	if (start(&f) < 0) {
		say_refusal(&f);
		sv.exit_status = 1;
	} else {
		if (sv.server)
			front_print_banner(&sv.front, &sv.engine.settings);
		log_info("ready", "instance=%u runs=%u cgroup=v%u", sv.engine.lease.number,
			sv.board.slots, sv.hello.cgroup_version);
		serve();
	}
	if (sv.front.process.pid > 0)
		front_end(&sv.front);
	front_unlisten(&sv.front, &sv.engine.settings);
	engine_close(&sv.engine);
	return sv.exit_status;
}
