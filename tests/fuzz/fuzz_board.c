/* Fuzz target: the supervisor's state machines (board, pool, lineage, zygote, cell) with all that
 * talks to them gone bad. The input is a list of deeds: of a client, of inits and mains of
 * cells, of zygotes, of the kernel and of the clock. The kernel is that of no_kernel.h. Checks,
 * beyond memory errors and the CHECKs of the code, that
 *  - every run that was taken is answered once, and nothing else is;
 *  - START goes only to a main that has said ENTERED, within the ceilings;
 *  - no process is signalled that is not the supervisor's;
 *  - a run has a gate as long as it goes on and has asked for a network, and never another one;
 *  - after the end nothing is left: no process, group, run or descriptor.
 */
#include "tests/fuzz/no_kernel.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/own.h"
#include "priv/supervisor/board.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/api_settings.h"
#include "wire/network.h"
#include "wire/report.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define SLOTS        4
#define POOL_SIZE    3
#define RUNS         16  /* numbers that a client uses */
#define DEEDS_MAX    300 /* of one input */
#define TURNS_MAX    8   /* of the loop after each deed */
#define ENDING_TURNS 400 /* until everything has to be over */
#define FORKS        8   /* requests that a zygote may owe an answer to */
#define TOKEN_ZYGOTE 1   /* the same order as in supervisor/main.c */
#define TOKEN_LINES  4
#define TOKEN_SLOTS  (TOKEN_LINES + LINES_MAX * LINEAGE_ZYGOTES)
#define POOL_END_AT  offsetof(struct pool, taken)

static struct settings settings;
static struct runtime runtime = { .name = "python", .main_file = "main.py" };
static struct cgroup_tree tree = {
	.count = 2, .of = { 1, 1, 1, 1 }, .h = { { .version = 2 }, { .version = 1 } }
};
static struct cgroup inits, zygotes, collectors, gates;
static int policy_fd = -1; /* known by its seal */
static struct view view;
static struct cell_factory factory;
static struct taskstats_feed records;
static struct languages languages;
static struct factories factories;
static struct pool pool;
static struct board board;
static char fresh_pool_end[sizeof(struct pool) - POOL_END_AT]; /* all but the cells */
static cell_fork_fn *pool_fork_main;
static int epoll_fd = -1;

/* The client's side, and what it is owed. */
static struct {
	int fd, supervisors_fd;
	unsigned owed[RUNS]; /* answers, by number */
} client;

/* What zygotes were asked for. */
static struct {
	struct msg asked[FORKS];
	unsigned count;
} forks;

/* ---- A supervisor as main.c makes it ---- */

static void connect_client(void)
{
	int pair[2], small = 1; /* the kernel makes it a handful of messages */

	CHECK(channel_pair(pair, 1) == 0);
	CHECK(setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)) == 0);
	client.fd = pair[0];
	client.supervisors_fd = pair[1];
	memset(client.owed, 0, sizeof(client.owed));
	board.client_fd = pair[1];
}

static void client_gone(void)
{
	board_lose_client(&board);
	drop_fd(&client.supervisors_fd);
	drop_fd(&client.fd);
	connect_client();
}

static void hear_client(void)
{
	static struct msg m;
	const char *rule = "";

	for (;;) {
		int r = channel_recv(board.client_fd, ROLE_CLIENT, ROLE_SUPERVISOR, &m, &rule);

		if (r == -EAGAIN)
			return;
		if (r == 1 && m.type == MSG_CANCEL) {
			board_cancel(&board, m.as.CANCEL.run);
		} else if (r == 1 && m.type == MSG_NETWORK) {
			if (board_network(&board, &m, &rule) < 0)
				client_gone();
		} else if (r == 1 && m.type == MSG_COLLECT) {
			if (board_collect(&board, &m, &rule) < 0)
				client_gone();
		} else if (r == 1) {
			uint64_t run = m.as.SUBMIT.run;

			CHECK(m.type == MSG_SUBMIT);
			if (board_submit(&board, &m, &rule) == 0) {
				/* Taken, or refused by a message that waits for us. */
				if (run < RUNS)
					client.owed[run]++;
				continue;
			}
			client_gone();
		} else {
			CHECK(r == 0 || rule[0]);
			client_gone();
		}
	}
}

/* No time is longer than there has been any. */
static void check_times(const struct msg_result *r)
{
	uint64_t most = no.now_ns / NS_PER_US;

	CHECK(r->setup_us <= most && r->wall_us <= most && r->teardown_us <= most);
}

/* What the supervisor has said to its client. */
static void read_answers(void)
{
	static struct msg m;

	while (channel_recv(client.fd, ROLE_SUPERVISOR, ROLE_CLIENT, &m, NULL) == 1) {
		uint64_t run = m.type == MSG_RESULT ? m.as.RESULT.run : m.as.REFUSED.run;

		CHECK(m.type == MSG_RESULT || m.type == MSG_REFUSED);
		CHECK(m.type == MSG_REFUSED || m.as.RESULT.cause < CAUSE_MAX);
		CHECK(m.type == MSG_RESULT || m.as.REFUSED.fault.code < 0);
		if (m.type == MSG_RESULT)
			check_times(&m.as.RESULT);
		if (run >= RUNS)
			continue;
		CHECK(client.owed[run] > 0);
		client.owed[run]--;
	}
}

/* Who is somebody's, and alive as far as the board knows. */
static void check_gates(void)
{
	for (unsigned i = 0; i < SLOTS; i++) {
		const struct job *j = &board.jobs[i];
		bool may = j->state == JOB_RUNNING && j->submit.allow_network;

		CHECK(j->gate.process.pid <= 0 || may);
		CHECK(j->state == JOB_NONE || j->network_fd < 0 || j->submit.allow_network);
		if (j->state != JOB_NONE && j->cell)
			CHECK((j->cell->tun_fd >= 0) == (j->submit.allow_network == 1));
	}
}

static void turn(void)
{
	struct epoll_event ev[32];

	for (unsigned t = 0; t < TURNS_MAX; t++) {
		int n = epoll_wait(epoll_fd, ev, 32, 0);

		for (int i = 0; i < n; i++) {
			uint64_t token = ev[i].data.u64;

			if (token >= TOKEN_SLOTS)
				board_look(&board, (unsigned)(token - TOKEN_SLOTS));
			else if (token >= TOKEN_LINES)
				lines_look(&pool.lines, (unsigned)(token - TOKEN_LINES));
			else
				lineage_look(&pool.lineage, (unsigned)(token - TOKEN_ZYGOTE));
		}
		board_hear_records(&board);
		hear_client();
		(void)board_tick(&board);
		check_gates();
		if (board.client_broken) {
			board.client_broken = false;
			client_gone();
		}
		if (n <= 0)
			return;
	}
}

/* ---- What may be sent ---- */

static int sealed(size_t size, int seals)
{
	int fd = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	(void)fcntl(fd, F_ADD_SEALS, seals);
	return fd;
}

/* A descriptor of a kind that the input chooses; `made` are closed by the caller. */
static int some_fd(struct fuzz *z, const int pipe_fds[2])
{
	switch (fuzz_u8(z) % 8) {
	case 1:
		return dup(pipe_fds[0]);
	case 2:
		return dup(pipe_fds[1]);
	case 3:
		return sealed(4, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	case 4:
		return sealed(4, F_SEAL_SHRINK);
	case 5:
		return open("/", O_PATH | O_CLOEXEC);
	case 6:
		return eventfd(0, EFD_CLOEXEC);
	case 7:
		/* The pidfd of a process of the supervisor's. */
		for (unsigned i = fuzz_u8(z) % NO_PROCESSES; i < NO_PROCESSES; i++) {
			if (no.processes[i].life_fd >= 0 && no.processes[i].pid > 0) {
				char path[32];

				/* Our write end's other side. */
				(void)snprintf(path, sizeof(path), "/proc/self/fd/%d",
					no.processes[i].life_fd);
				return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
			}
		}
		return open("/dev/null", O_RDONLY | O_CLOEXEC);
	default:
		return open("/dev/null", O_RDWR | O_CLOEXEC);
	}
}

/* Any bytes as a packet, with up to five descriptors of any kind. */
static void send_packet(struct fuzz *z, int fd, uint32_t type, const void *payload, size_t len)
{
	static char bytes[sizeof(union msg_any) + 64];
	uint32_t head[2] = { type, 1 };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * (MSG_FDS_MAX + 1))];
	} control = { 0 };
	struct iovec iov = { .iov_base = bytes };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	unsigned count = fuzz_u8(z) % (MSG_FDS_MAX + 2);
	int pipe_fds[2], fds[MSG_FDS_MAX + 1];

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	head[1] += fuzz_u8(z) == 255;
	memcpy(bytes, head, sizeof(head));
	memcpy(bytes + sizeof(head), payload, len);
	iov.iov_len = sizeof(head) + len;
	for (unsigned i = 0; i < count; i++)
		fds[i] = some_fd(z, pipe_fds);
	if (count > 0) {
		struct cmsghdr *c;

		mh.msg_control = control.bytes;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * count);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * count);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * count);
	}
	(void)sendmsg(fd, &mh, MSG_NOSIGNAL | MSG_DONTWAIT);
	for (unsigned i = 0; i < count; i++)
		(void)close(fds[i]);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
}

static void send_anything(struct fuzz *z, int fd)
{
	static char payload[sizeof(union msg_any)];
	uint32_t type = fuzz_u8(z) % (MSG_TYPE_MAX + 1);
	size_t len = type > 0 && type < MSG_TYPE_MAX ? msg_size((enum msg_type)type) : 0;

	if (fuzz_u8(z) == 255)
		len = len / 2 + fuzz_u8(z);
	fuzz_fill(z, payload, len);
	send_packet(z, fd, type, payload, len);
}

/* ---- Deeds of the client ---- */

static uint64_t extreme(struct fuzz *z, uint64_t usual, uint64_t least, uint64_t most)
{
	switch (fuzz_u8(z) % 32) {
	case 1:
		return 0;
	case 2:
		return UINT64_MAX;
	case 3:
		return least - 1;
	case 4:
		return most;
	case 5:
		return most + 1;
	case 6:
		return fuzz_u64(z);
	case 7:
		return least;
	default:
		return usual;
	}
}

/* For the run that is submitted next; now and then not as it should be. */
static void send_network(struct fuzz *z, uint64_t run)
{
	const size_t size = sizeof(struct network_memory);
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;
	struct msg_network m = { .run = run };
	uint8_t how = fuzz_u8(z) % 32;
	int fd = sealed(how == 1 ? size - 1 : size, how == 2 ? F_SEAL_SHRINK : seals);

	m.run += how == 3;
	if (how != 4)
		(void)channel_send(client.fd, MSG_NETWORK, &m, &fd);
	(void)close(fd);
}

static void submit(struct fuzz *z)
{
	const struct run_limits *max = &settings.max;
	struct msg_submit m = { .run = fuzz_u8(z) % RUNS, .limits = settings.def, .code_bytes = 4 };
	int fds[MSG_FDS_MAX], in[2], out[2], err[2], report;
	uint8_t kind;

	CHECK(pipe2(in, O_CLOEXEC) == 0 && pipe2(out, O_CLOEXEC) == 0 &&
		pipe2(err, O_CLOEXEC) == 0);
	fds[0] = sealed(4, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE);
	fds[1] = in[0];
	fds[2] = out[1];
	fds[3] = err[1];
	fds[4] = report = sealed(REPORT_BYTES, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW);
	kind = fuzz_u8(z);
	m.allow_network = kind >= 192;
	if (kind % 4 == 0) {
		m.limits.timeout_us = extreme(z, 100000, LIMIT_TIMEOUT_MIN_US, max->timeout_us);
		m.limits.memory_bytes =
			extreme(z, 64 << 20, LIMIT_MEMORY_MIN_BYTES, max->memory_bytes);
		m.limits.cpu_time_us = extreme(z, 50000, 1, max->timeout_us);
		m.limits.cpu_milli = (uint32_t)extreme(z, 500, LIMIT_CPU_MIN_MILLI, max->cpu_milli);
		m.limits.pids = (uint32_t)extreme(z, 32, 1, max->pids);
		m.code_bytes = extreme(z, 4, 0, settings.code_bytes);
		m.allow_network = (uint32_t)extreme(z, m.allow_network, 1, 1);
		m.language = (uint32_t)extreme(z, 1, 1, languages.count - 1);
		m.collect = (uint32_t)extreme(z, 0, 1, 1);
		m.report = (uint32_t)extreme(z, 0, 1, REPORT_ALL);
		if (fuzz_u8(z) % 4 == 3)
			fds[1 + fuzz_u8(z) % 3] = fds[fuzz_u8(z) % 4];
	}
	if (m.allow_network)
		send_network(z, m.run);
	(void)channel_send(client.fd, MSG_SUBMIT, &m, fds);
	(void)close(fds[0]);
	(void)close(report);
	for (unsigned i = 0; i < 2; i++) {
		(void)close(in[i]);
		(void)close(out[i]);
		(void)close(err[i]);
	}
}

static void client_deed(struct fuzz *z)
{
	struct msg_cancel cancel = { .run = 0 };

	switch (fuzz_u8(z) % 8) {
	case 0:
		send_anything(z, client.fd);
		break;
	case 1:
		cancel.run = fuzz_u8(z) % (RUNS + 1);
		(void)channel_send(client.fd, MSG_CANCEL, &cancel, NULL);
		break;
	case 2:
		read_answers();
		break;
	case 3:
		client_gone();
		break;
	default:
		submit(z);
	}
}

/* ---- Deeds of processes ---- */

static struct no_process *pick(struct fuzz *z, bool zygote)
{
	unsigned first = fuzz_u8(z) % NO_PROCESSES;

	for (unsigned k = 0; k < NO_PROCESSES; k++) {
		struct no_process *p = &no.processes[(first + k) % NO_PROCESSES];

		if (p->pid > 0 && p->life_fd >= 0 && p->zygote == zygote)
			return p;
	}
	return NULL;
}

static void check_start(const struct no_process *p, const struct msg_start *s)
{
	CHECK(p->entered && !p->init);
	CHECK(s->code_bytes <= settings.code_bytes);
	CHECK(s->file_bytes >= LIMIT_MEMORY_MIN_BYTES &&
		s->file_bytes <= settings.max.memory_bytes);
	CHECK(s->tasks > 0 && s->tasks <= settings.max.pids + 16);
	CHECK(s->mark <= 1);
	CHECK((s->report & ~REPORT_ALL) == 0);
}

/* Read what it was sent. */
static void listen_to_supervisor(struct no_process *p)
{
	static struct msg m;

	(void)fcntl(p->channel_fd, F_SETFL, O_NONBLOCK);
	while (p->channel_fd >= 0 &&
		channel_recv(p->channel_fd, ROLE_SUPERVISOR, ROLE_BOX, &m, NULL) == 1) {
		if (m.type == MSG_START)
			check_start(p, &m.as.START);
		msg_done(&m);
	}
}

static void say_broken(struct fuzz *z, int fd, enum msg_type type)
{
	struct msg_broken m = { .cell = fuzz_u8(z), .fault = { .code = -(int)fuzz_u8(z) } };

	fuzz_fill(z, m.fault.text, 1 + fuzz_u8(z) % sizeof(m.fault.text));
	(void)channel_send(fd, type, &m, NULL);
}

/* What it was told, of whom it is to carry packets. */
static void listen_as_gate(struct no_process *p)
{
	static struct msg m;

	(void)fcntl(p->channel_fd, F_SETFL, O_NONBLOCK);
	while (channel_recv(p->channel_fd, ROLE_SUPERVISOR, ROLE_GATE, &m, NULL) == 1) {
		CHECK(m.type != MSG_GATE || (m.as.GATE.uid == factory.uid_base + GATE_UID &&
						    fcntl(m.fds[2], F_GET_SEALS) == F_SEAL_GROW));
		msg_done(&m);
	}
}

static void gate_deed(struct fuzz *z, struct no_process *p, unsigned what)
{
	if (what < 6)
		listen_as_gate(p);
	if (what == 0)
		send_anything(z, p->channel_fd);
	if (what == 1)
		say_broken(z, p->channel_fd, MSG_GATE_BAD);
	if (what <= 2) /* after whatever it has said */
		no_process_die(p, fuzz_u8(z) << 8 | fuzz_u8(z));
}

static void box_deed(struct fuzz *z)
{
	const struct msg_built built = { 0 };
	struct no_process *p = pick(z, false);
	struct msg_entered entered;
	const struct msg_listener listener = { 0 };
	unsigned what = fuzz_u8(z) % 8;

	if (!p)
		return;
	if (what == 7) {
		no_process_die(p, fuzz_u8(z) << 8 | fuzz_u8(z));
		return;
	}
	if (p->channel_fd < 0)
		return;
	if (p->gate) {
		gate_deed(z, p, what);
		return;
	}
	switch (what) {
	case 0:
		send_anything(z, p->channel_fd);
		break;
	case 1:
		say_broken(z, p->channel_fd, MSG_BROKEN);
		break;
	case 2:
		listen_to_supervisor(p);
		break;
	case 6:
		/* Any end of a pipe will do. */
		(void)channel_send(p->channel_fd, MSG_LISTENER, &listener, &p->life_fd);
		break;
	case 3: /* as an exec does */
		listen_to_supervisor(p);
		drop_fd(&p->channel_fd);
		break;
	default:
		listen_to_supervisor(p);
		fuzz_fill(z, &entered, sizeof(entered));
		p->entered |= !p->init;
		(void)channel_send(p->channel_fd, p->init ? MSG_BUILT : MSG_ENTERED,
			p->init ? (const void *)&built : &entered, NULL);
	}
}

/* ---- Deeds of zygotes ---- */

static void keep_forks(struct no_process *p)
{
	static struct msg m;

	(void)fcntl(p->channel_fd, F_SETFL, O_NONBLOCK);
	for (;;) {
		/* Until WARM it is spoken to as a box is. */
		int r = recv(p->channel_fd, &m, 4, MSG_PEEK | MSG_DONTWAIT) == 4 &&
					m.type == MSG_FORK
				? channel_recv(
					  p->channel_fd, ROLE_SUPERVISOR, ROLE_ZYGOTE, &m, NULL)
				: channel_recv(p->channel_fd, ROLE_SUPERVISOR, ROLE_BOX, &m, NULL);

		if (r != 1)
			return;
		if (m.type == MSG_FORK && forks.count < FORKS)
			forks.asked[forks.count++] = m;
		else
			msg_done(&m);
	}
}

/* An honest child for the oldest request. */
static void fork_child(struct no_process *z, bool lie)
{
	struct msg *m = &forks.asked[0];
	struct msg_forked said = { .cell = m->as.FORK.cell };
	struct no_process *child;
	int pidfd = -1;

	child = no_process_make(m->fds[1], take_fd(&m->fds[2]), &pidfd);
	if (child) {
		child->home = no_identity(m->fds[0]);
		said.pid = child->pid - lie;
		(void)channel_send(z->channel_fd, MSG_FORKED, &said, &pidfd);
	}
	drop_fd(&pidfd);
	msg_done(m);
	memmove(&forks.asked[0], &forks.asked[1], --forks.count * sizeof(forks.asked[0]));
}

/* In the place of a child that it has not told of. */
static void speak_for_child(void)
{
	const struct msg_entered entered = { .minor_faults = 1 };

	if (forks.count > 0)
		(void)channel_send(forks.asked[0].fds[2], MSG_ENTERED, &entered, NULL);
}

static void say_forked(struct fuzz *z, int fd)
{
	struct msg_forked said = { .cell = fuzz_u8(z), .pid = 1000 + fuzz_u8(z) };
	int pipe_fds[2], any;

	CHECK(pipe2(pipe_fds, O_CLOEXEC) == 0);
	any = some_fd(z, pipe_fds);
	(void)channel_send(fd, MSG_FORKED, &said, &any);
	(void)close(any);
	(void)close(pipe_fds[0]);
	(void)close(pipe_fds[1]);
}

static void zygote_deed(struct fuzz *z)
{
	struct no_process *p = pick(z, true);
	struct msg_warm warm = { .modules = 1 };

	if (!p || p->channel_fd < 0)
		return;
	keep_forks(p);
	switch (fuzz_u8(z) % 8) {
	case 0:
		send_anything(z, p->channel_fd);
		break;
	case 1:
		say_broken(z, p->channel_fd, MSG_UNFORKED);
		break;
	case 2:
		fuzz_fill(z, &warm.version, sizeof(warm.version));
		(void)channel_send(p->channel_fd, MSG_WARM, &warm, NULL);
		break;
	case 3:
		say_forked(z, p->channel_fd);
		break;
	case 4:
		no_process_die(p, fuzz_u8(z));
		break;
	case 6:
		speak_for_child();
		break;
	default:
		if (forks.count > 0)
			fork_child(p, fuzz_u8(z) == 255);
	}
}

/* ---- Deeds of the kernel ---- */

/* The kernel tells of an end before it can be waited for: such a process does nothing more, but
 * is there. */
static void tell_end(struct fuzz *z)
{
	struct no_process *p = pick(z, false);
	uint8_t flags = fuzz_u8(z);

	if (!p || p->init || p->gate || p->ending || no.records_count == 8)
		return;
	p->status = flags & 4 ? flags << 8 : flags & 0x7f;
	p->ending = true;
	drop_fd(&p->channel_fd);
	no.records[no.records_count++] = (struct taskstats_exit){
		.pid = p->pid, .status = p->status, .told = flags & 1, .had_threads = flags & 2
	};
}

static void announce_oom(struct fuzz *z)
{
	struct cell *c = &pool.cells[fuzz_u8(z) % 16];

	no.counts_oom = fuzz_u8(z) % 2;
	if (c->leaf.oom_fd >= 0 && c->leaf.name[0])
		(void)eventfd_write(c->leaf.oom_fd, 1);
}

static void kernel_deed(struct fuzz *z)
{
	static const int codes[] = { -EAGAIN, -ENOMEM, -EIO, -EPERM, -ENOSPC, -EPIPE, -ECONNRESET };

	switch (fuzz_u8(z) % 8) {
	case 0:
		no.fail_code = codes[fuzz_u8(z) % 7];
		no.fail_in = 1 + fuzz_u8(z) % 16;
		break;
	case 1:
		no.stubborn = !no.stubborn;
		break;
	case 2:
		no.leaf_renews = fuzz_u8(z) % 2;
		no.cage_as_made = fuzz_u8(z) % 2;
		no.no_last_pid = fuzz_u8(z) % 2;
		break;
	case 3:
		announce_oom(z);
		break;
	case 4:
		tell_end(z);
		break;
	case 6:
		no.denied = fuzz_u8(z);
		break;
	default:
		/* From a microsecond to a quarter of an hour. */
		no.now_ns += NS_PER_US << fuzz_u8(z) % 30;
	}
}

/* ---- From the beginning to the end ---- */

static bool is_boards(const void *ctx, pid_t pid)
{
	return board_knows(ctx, pid);
}

static void set_up_once(void)
{
	static bool done;

	if (done)
		return;
	done = true;
	log_setup("fuzz", LOG_LEVEL_ERR);
	no_kernel_install();
	settings = api_settings;
	settings.max_runs = SLOTS;
	settings.pool_size = POOL_SIZE;
	settings.max_builds = 2;
	settings.cage_runs = 4;
	settings.zygote_max_forks = 12;
	settings.network = 1;
	settings.network_connections = 64;
	settings.network_bytes = settings.network_rate = 1 << 20;
	settings.cell_max_age_us = settings.zygote_max_age_us = UINT64_C(600) * 1000000;
	cgroup_clear(&inits);
	cgroup_clear(&zygotes);
	cgroup_clear(&collectors);
	cgroup_clear(&gates);
	gates.fd[0] = memfd_create("gates", MFD_CLOEXEC);
	policy_fd = memfd_create("policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(fcntl(policy_fd, F_ADD_SEALS, F_SEAL_GROW) == 0);
	factory = (struct cell_factory){ .tree = &tree,
		.inits = &inits,
		.zygotes = &zygotes,
		.image_zygotes = &zygotes,
		.collectors = &collectors,
		.gates = &gates,
		.view = &view,
		.runtime = &runtime,
		.box_image_fd = -1,
		.gate_image_fd = -1,
		.policy_fd = policy_fd,
		.uid_base = 2000000,
		.workspace_inodes = 64,
		.usual = settings.def,
		.runs_max = settings.cage_runs };
	/* An image in the place of a second language, whose view is there already. */
	languages.count = 2;
	languages.of[0].runtime = languages.of[1].runtime = runtime;
	factories_open(&factories, &factory, &languages, &settings);
	factories.of[1].factory = factory;
	factories.of[1].made = true;
	languages.of[1].offer.is_image = 1;
	pool_open(&pool, &settings, &factory, true);
	pool.factories = &factories;
	pool.claims = is_boards;
	pool.claims_ctx = &board;
	pool_fork_main = factory.fork_main;
	memcpy(fresh_pool_end, (const char *)&pool + POOL_END_AT, sizeof(fresh_pool_end));
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	CHECK(epoll_fd >= 0);
}

/* As pool_open() leaves it; only the cells that were used have to be made empty. */
static void begin(bool warm)
{
	memset(pool.cells, 0, pool.high * sizeof(pool.cells[0]));
	memcpy((char *)&pool + POOL_END_AT, fresh_pool_end, sizeof(fresh_pool_end));
	no_kernel_reset();
	pool.lineage.wanted = warm;
	factory.fork_main = warm ? pool_fork_main : NULL;
	pool.watch = (struct watch){ epoll_fd, TOKEN_SLOTS };
	pool.lineage.watch = (struct watch){ epoll_fd, TOKEN_ZYGOTE };
	pool.lines.watch = (struct watch){ epoll_fd, TOKEN_LINES };
	/* The image has zygotes of its own. */
	factories.of[1].factory.fork_main = factory.fork_main;
	factories.of[1].factory.fork_ctx = factory.fork_ctx;
	board_init(&board);
	board.settings = &settings;
	board.pool = board.collects.pool = &pool;
	board.collects.settings = &settings;
	board.slots = SLOTS;
	records = (struct taskstats_feed){ .fd = epoll_fd };
	board.records = &records;
	forks.count = 0;
	connect_client();
}

static void drop_forks(void)
{
	while (forks.count > 0)
		msg_done(&forks.asked[--forks.count]);
}

static void finish(void)
{
	unsigned left = ENDING_TURNS;

	no.stubborn = false;
	no.fail_in = 0;
	turn();
	board_cancel_all(&board);
	pool_close(&pool);
	do {
		no.now_ns += 100 * NS_PER_MS;
		turn();
		read_answers();
		/* What a zygote has made without being asked ends with it. */
		for (unsigned i = 0; i < NO_PROCESSES; i++)
			if (no.processes[i].pid > 0 && left < ENDING_TURNS / 2)
				no_process_die(&no.processes[i], 0);
	} while ((board_busy(&board) > 0 || pool_alive(&pool) > 0) && --left > 0);
	CHECK(left > 0);
	for (unsigned i = 0; i < RUNS; i++)
		CHECK(client.owed[i] == 0);
	CHECK(no.groups == 0);
	board.client_fd = -1;
	drop_fd(&client.supervisors_fd);
	drop_fd(&client.fd);
	drop_forks();
	no_kernel_reset();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz z = { bytes, len };
	unsigned fds;

	set_up_once();
	fds = fuzz_count_fds();
	begin(fuzz_u8(&z) % 4 != 0);
	turn();
	for (unsigned i = 0; i < DEEDS_MAX && z.len > 0; i++) {
		switch (fuzz_u8(&z) % 8) {
		case 0:
		case 1:
			client_deed(&z);
			break;
		case 2:
		case 3:
			zygote_deed(&z);
			break;
		case 4:
			kernel_deed(&z);
			break;
		default:
			box_deed(&z);
		}
		turn();
	}
	finish();
	CHECK(fuzz_count_fds() == fds);
	return 0;
}
