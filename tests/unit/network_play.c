#include "tests/unit/network_play.h"

#include "base/check.h"
#include "base/own.h"
#include "tests/unit/board_play.h"
#include "tests/unit/unit.h"
#include "wire/channel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);
int __real_channel_send(int fd, enum msg_type type, const void *payload, const int *fds);

struct network_play network;

int __wrap_channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
{
	if (type == network.unsendable)
		return network.send_code;
	network.sent[network.sent_count++ % ARRAY_LEN(network.sent)] = type;
	return __real_channel_send(fd, type, payload, fds);
}

static unsigned fds_before;
static int policy_fd = -1;

unsigned network_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	assert_int_equal(closedir(dir), 0);
	return n;
}

static bool boards(const void *ctx, pid_t pid)
{
	return board_knows(ctx, pid);
}

void network_claim(void)
{
	play.pool.claims = boards;
	play.pool.claims_ctx = &play.board;
}

int network_begin(void **state)
{
	int r;

	fds_before = network_count_fds();
	network = (struct network_play){ .unsendable = (enum msg_type)0 };
	r = play_begin(state);
	play.settings.network = 1;
	play.settings.pool_size = 0; /* only what runs ask for is made */
	policy_fd = memfd_create("policy", MFD_CLOEXEC);
	play.factory.policy_fd = policy_fd;
	network_claim();
	return r;
}

/* As the supervisor does it. */
void network_lose_client(void)
{
	int fd = play.board.client_fd;

	board_lose_client(&play.board);
	drop_fd(&fd);
}

int network_end(void **state)
{
	network.unsendable = (enum msg_type)0;
	network_lose_client();
	(void)play_end(state);
	for (unsigned i = 0; i < NO_PROCESSES; i++)
		assert_int_equal(no.processes[i].pid, 0);
	drop_fd(&policy_fd);
	assert_int_equal(network_count_fds(), fds_before);
	return 0;
}

/* ---- What the client sends ---- */

int network_memory(off_t size, int seals)
{
	int fd = memfd_create("network", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_int_equal(ftruncate(fd, size), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Takes `fd`. */
int network_send(uint64_t run, int fd)
{
	static struct msg m;
	const char *rule = NULL;
	int r;

	m = (struct msg){ .type = MSG_NETWORK, .nfds = 1, .as.NETWORK.run = run };
	m.fds[0] = fd;
	for (unsigned i = 1; i < MSG_FDS_MAX; i++)
		m.fds[i] = -1;
	r = board_network(&play.board, &m, &rule);
	assert_int_equal(r < 0, rule != NULL);
	return r;
}

void network_send_good(uint64_t run)
{
	assert_int_equal(network_send(run, network_memory(NETWORK_SIZE, NETWORK_SEALED)), 0);
}

void network_submit(uint64_t run)
{
	network_send_good(run);
	play.next = (struct msg_submit){ .run = run, .allow_network = 1 };
	play_submit();
}

void network_refused(int code)
{
	static struct msg m;

	assert_int_equal(play_cause(&m), CAUSE_MAX);
	assert_int_equal(m.as.REFUSED.fault.code, code);
}

/* ---- Gates ---- */

/* The one that lives, or NULL. */
struct no_process *network_gate(void)
{
	struct no_process *found = NULL;

	for (unsigned i = 0; i < NO_PROCESSES; i++) {
		struct no_process *p = &no.processes[i];

		if (p->pid == 0 || p->life_fd < 0 || !p->gate)
			continue;
		assert_null(found);
		found = p;
	}
	return found;
}

/* Alive, or dead and not reaped. */
unsigned network_gates(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < NO_PROCESSES; i++)
		n += no.processes[i].pid > 0 && no.processes[i].gate;
	return n;
}

/* It reads what it was sent, up to its GATE, which is `ret`. */
void network_read_gate(struct no_process *p, struct msg *ret)
{
	unsigned joins = 0;

	(void)fcntl(p->channel_fd, F_SETFL, O_NONBLOCK);
	for (;; msg_done(ret), joins++) {
		assert_int_equal(
			channel_recv(p->channel_fd, ROLE_SUPERVISOR, ROLE_GATE, ret, NULL), 1);
		if (ret->type == MSG_GATE)
			break;
		assert_int_equal(ret->type, MSG_GATE_JOIN);
	}
	assert_int_equal(joins, 1); /* of the one v1 hierarchy */
}

/* A run with a network, released: its main, which has read nothing. */
struct no_process *network_release(void)
{
	struct no_process *p;

	network_submit(PLAY_RUN);
	assert_int_equal(the_job()->state, JOB_WAITING);
	p = play_park();
	assert_int_equal(the_job()->state, JOB_RUNNING);
	assert_non_null(network_gate());
	return p;
}

/* Whatever was handed on is reaped. */
void network_settle(void)
{
	for (unsigned i = 0; i < 5; i++) {
		play_look();
		play_later(NETWORK_LOOK_NS);
	}
}

void network_end_well(struct no_process *p, struct msg *ret)
{
	play_read(p);
	no_process_die(p, 0);
	play_look();
	assert_int_equal(play_cause(ret), CAUSE_EXIT);
}
