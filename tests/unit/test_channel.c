#include "unit.h"

#include "base/own.h"
#include "tests/unit/count_fds.h"
#include "wire/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

/* The two ends: `client` sends, `supervisor` receives. */
static int client = -1, supervisor = -1;

static int open_pair(void **state)
{
	int fds[2];

	(void)state;
	if (channel_pair(fds, 1) < 0)
		return -1;
	client = fds[0];
	supervisor = fds[1];
	return 0;
}

static int close_pair(void **state)
{
	(void)state;
	drop_fd(&client);
	drop_fd(&supervisor);
	return 0;
}

/* A packet made by hand, as a peer that keeps no rule would make it. */
static void send_raw(const void *bytes, size_t len, const int *fds, size_t nfds)
{
	struct iovec iov = { .iov_base = (void *)(uintptr_t)bytes, .iov_len = len };
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * 16)];
	} control = { 0 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (nfds > 0) {
		struct cmsghdr *c;

		mh.msg_control = control.bytes;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	assert_int_equal(sendmsg(client, &mh, MSG_NOSIGNAL), (ssize_t)len);
}

struct raw_cancel {
	uint32_t type, version;
	struct msg_cancel body;
};

static int receive(struct msg *m, const char **rule)
{
	*rule = NULL;
	return channel_recv(supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, m, rule);
}

static void expect_refused(const char *why)
{
	struct msg m;
	const char *rule;

	assert_int_equal(receive(&m, &rule), -EPROTO);
	assert_string_equal(rule, why);
	assert_int_equal(m.type, MSG_NONE);
	assert_int_equal(m.nfds, 0);
}

static void message_arrives_with_its_payload(void **state)
{
	struct msg_cancel c = { .run = 0x1122334455667788 };
	struct msg m;
	const char *rule;

	(void)state;
	assert_int_equal(channel_send(client, MSG_CANCEL, &c, NULL), 0);
	assert_int_equal(receive(&m, &rule), 1);
	assert_int_equal(m.type, MSG_CANCEL);
	assert_true(m.as.CANCEL.run == c.run);
	assert_int_equal(m.nfds, 0);
	for (int i = 0; i < MSG_FDS_MAX; i++)
		assert_int_equal(m.fds[i], -1);
}

static void descriptors_arrive_in_order_and_close_on_exec(void **state)
{
	struct msg_submit s = { .run = 1 };
	int pipes[2][2];
	unsigned before = count_fds();
	struct msg m;
	const char *rule;
	char b;

	(void)state;
	assert_int_equal(pipe2(pipes[0], O_CLOEXEC), 0);
	assert_int_equal(pipe2(pipes[1], O_CLOEXEC), 0);
	assert_int_equal(
		channel_send(client, MSG_SUBMIT, &s,
			(int[]){ pipes[0][0], pipes[0][1], pipes[1][0], pipes[1][1], pipes[0][0] }),
		0);
	assert_int_equal(receive(&m, &rule), 1);
	assert_int_equal(m.nfds, 5);
	for (int i = 0; i < 5; i++)
		assert_int_equal(fcntl(m.fds[i], F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(write(m.fds[1], "a", 1), 1);
	assert_int_equal(read(pipes[0][0], &b, 1), 1);
	assert_int_equal(write(pipes[1][1], "b", 1), 1);
	assert_int_equal(read(m.fds[2], &b, 1), 1);
	msg_done(&m);
	for (int i = 0; i < 2; i++) {
		(void)close(pipes[i][0]);
		(void)close(pipes[i][1]);
	}
	assert_int_equal(count_fds(), before);
}

static void closed_peer_is_the_end(void **state)
{
	struct msg m;
	const char *rule;

	(void)state;
	drop_fd(&client);
	assert_int_equal(receive(&m, &rule), 0);
}

static void empty_channel_says_again(void **state)
{
	struct msg m;
	const char *rule;

	(void)state;
	assert_int_equal(receive(&m, &rule), -EAGAIN);
}

static void full_channel_says_again_and_sends_nothing(void **state)
{
	struct msg_cancel c = { .run = 0 };
	struct msg m;
	const char *rule;
	uint64_t sent = 0;
	int r;

	(void)state;
	while ((r = channel_send(client, MSG_CANCEL, &c, NULL)) == 0)
		c.run = ++sent;
	assert_int_equal(r, -EAGAIN);
	for (uint64_t i = 0; i < sent; i++) {
		assert_int_equal(receive(&m, &rule), 1);
		assert_true(m.as.CANCEL.run == i);
	}
	assert_int_equal(receive(&m, &rule), -EAGAIN);
}

static void sending_to_a_closed_peer_is_an_error_not_a_signal(void **state)
{
	struct msg_cancel c = { .run = 1 };

	(void)state;
	drop_fd(&supervisor);
	assert_int_equal(channel_send(client, MSG_CANCEL, &c, NULL), -EPIPE);
}

static void message_against_its_direction_is_refused(void **state)
{
	struct msg_result r = { .run = 1 };

	(void)state;
	assert_int_equal(channel_send(client, MSG_RESULT, &r, NULL), 0);
	expect_refused("not allowed between these two");
}

static void wrong_version_is_refused(void **state)
{
	struct raw_cancel c = { .type = MSG_CANCEL, .version = 99 };

	(void)state;
	send_raw(&c, sizeof(c), NULL, 0);
	expect_refused("wrong version");
}

static void packet_shorter_than_a_header_is_refused(void **state)
{
	(void)state;
	send_raw("abc", 3, NULL, 0);
	expect_refused("shorter than its header");
}

static void short_and_long_payloads_are_refused(void **state)
{
	struct {
		struct raw_cancel c;
		uint64_t more;
	} raw = { .c = { .type = MSG_CANCEL, .version = 1 } };

	(void)state;
	send_raw(&raw, sizeof(raw.c) - 1, NULL, 0);
	expect_refused("wrong length");
	send_raw(&raw, sizeof(raw), NULL, 0);
	expect_refused("wrong length");
}

static void packet_longer_than_any_message_is_refused(void **state)
{
	static char big[sizeof(union msg_any) + 100];
	struct raw_cancel c = { .type = MSG_CANCEL, .version = 1 };

	(void)state;
	memcpy(big, &c, sizeof(c));
	send_raw(big, sizeof(big), NULL, 0);
	expect_refused("too long, or too many descriptors");
}

static void descriptors_that_were_not_asked_for_are_refused_and_closed(void **state)
{
	struct raw_cancel c = { .type = MSG_CANCEL, .version = 1 };
	int fds[] = { STDIN_FILENO, STDIN_FILENO, STDIN_FILENO, STDIN_FILENO, STDIN_FILENO,
		STDIN_FILENO, STDIN_FILENO, STDIN_FILENO };
	unsigned before = count_fds();

	(void)state;
	send_raw(&c, sizeof(c), fds, 1);
	expect_refused("wrong number of descriptors");
	send_raw(&c, sizeof(c), fds, MSG_FDS_MAX);
	expect_refused("wrong number of descriptors");
	send_raw(&c, sizeof(c), fds, MSG_FDS_MAX + 1);
	expect_refused("wrong number of descriptors");
	send_raw(&c, sizeof(c), fds, 8);
	expect_refused("too long, or too many descriptors");
	assert_int_equal(count_fds(), before);
}

static void refused_packet_leaves_the_next_one_readable(void **state)
{
	struct msg_cancel c = { .run = 5 };
	struct msg m;
	const char *rule;

	(void)state;
	send_raw("abc", 3, NULL, 0);
	assert_int_equal(channel_send(client, MSG_CANCEL, &c, NULL), 0);
	expect_refused("shorter than its header");
	assert_int_equal(receive(&m, &rule), 1);
	assert_true(m.as.CANCEL.run == 5);
}

/* By this the supervisor knows that a process died before it had read START, and so that no
 * program began. */
static void an_end_that_closes_with_a_packet_unread_resets_the_other(void **state)
{
	struct msg_cancel c = { .run = 5 };
	struct msg m;
	const char *rule = "";

	(void)state;
	assert_int_equal(channel_send(client, MSG_CANCEL, &c, NULL), 0);
	drop_fd(&supervisor);
	assert_int_equal(
		channel_recv(client, ROLE_SUPERVISOR, ROLE_CLIENT, &m, &rule), -ECONNRESET);
	assert_int_equal(channel_recv(client, ROLE_SUPERVISOR, ROLE_CLIENT, &m, &rule), 0);
}

static void an_end_that_has_read_all_packets_is_only_the_end(void **state)
{
	struct msg_cancel c = { .run = 5 };
	struct msg m;
	const char *rule = "";

	(void)state;
	assert_int_equal(channel_send(client, MSG_CANCEL, &c, NULL), 0);
	assert_int_equal(receive(&m, &rule), 1);
	drop_fd(&supervisor);
	assert_int_equal(channel_recv(client, ROLE_SUPERVISOR, ROLE_CLIENT, &m, &rule), 0);
}

static void an_empty_packet_with_a_descriptor_is_not_the_end(void **state)
{
	const int fds[1] = { STDERR_FILENO };
	unsigned before = count_fds();

	(void)state;
	send_raw("", 0, fds, 1);
	expect_refused("shorter than its header");
	assert_int_equal(count_fds(), before);
}

static void what_carries_no_descriptor_is_passed_over(void **state)
{
	struct msg_cancel c = { .run = 5 };
	struct msg m;
	const char *rule;
	int on = 1;

	(void)state;
	/* The kernel then adds the sender's credentials to each packet. */
	assert_int_equal(setsockopt(supervisor, SOL_SOCKET, SO_PASSCRED, &on, sizeof(on)), 0);
	assert_int_equal(channel_send(client, MSG_CANCEL, &c, NULL), 0);
	assert_int_equal(receive(&m, &rule), 1);
	assert_int_equal(m.nfds, 0);
	assert_int_equal(m.as.CANCEL.run, 5);
}

static void who_does_not_ask_for_the_rule_is_told_eproto_all_the_same(void **state)
{
	struct msg m;

	(void)state;
	send_raw("", 1, NULL, 0);
	assert_int_equal(channel_recv(supervisor, ROLE_CLIENT, ROLE_SUPERVISOR, &m, NULL), -EPROTO);
}

/* In the middle of the wait: the packet comes with the signal. */
static void send_from_handler(int sig)
{
	static const struct msg_cancel c = { .run = 6 };

	(void)sig;
	(void)channel_send(client, MSG_CANCEL, &c, NULL);
}

static void make_blocking(int fd)
{
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
}

static void catch_alarms(void (*handler)(int sig), long first_us, long then_us)
{
	const struct sigaction catch = { .sa_handler = handler }; /* without SA_RESTART */
	const struct itimerval soon = { { 0, then_us }, { 0, first_us } };

	assert_int_equal(sigaction(SIGALRM, &catch, NULL), 0);
	assert_int_equal(setitimer(ITIMER_REAL, &soon, NULL), 0);
}

static void a_signal_does_not_end_the_wait_for_a_packet(void **state)
{
	struct msg m;
	const char *rule;

	(void)state;
	make_blocking(supervisor);
	catch_alarms(send_from_handler, 20000, 0);
	assert_int_equal(receive(&m, &rule), 1);
	assert_int_equal(m.as.CANCEL.run, 6);
}

static void read_from_handler(int sig)
{
	char byte;

	(void)sig;
	while (recv(supervisor, &byte, 1, MSG_DONTWAIT) > 0)
		continue;
}

static void a_signal_does_not_end_the_wait_for_room(void **state)
{
	const struct msg_cancel c = { .run = 7 };

	(void)state;
	while (channel_send(client, MSG_CANCEL, &c, NULL) == 0)
		continue;
	make_blocking(client);
	catch_alarms(read_from_handler, 20000, 20000);
	assert_int_equal(channel_send(client, MSG_CANCEL, &c, NULL), 0);
	catch_alarms(read_from_handler, 0, 0);
}

static void without_descriptors_there_is_no_pair(void **state)
{
	struct rlimit was, none;
	int fds[2] = { -1, -1 };

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = was;
	none.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(channel_pair(fds, 1), -EMFILE);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(fds[0], -1);
}

#define channel_test(f) cmocka_unit_test_setup_teardown(f, open_pair, close_pair)

int main(void)
{
	const struct CMUnitTest tests[] = {
		channel_test(message_arrives_with_its_payload),
		channel_test(descriptors_arrive_in_order_and_close_on_exec),
		channel_test(closed_peer_is_the_end),
		channel_test(an_end_that_closes_with_a_packet_unread_resets_the_other),
		channel_test(an_end_that_has_read_all_packets_is_only_the_end),
		channel_test(empty_channel_says_again),
		channel_test(full_channel_says_again_and_sends_nothing),
		channel_test(sending_to_a_closed_peer_is_an_error_not_a_signal),
		channel_test(message_against_its_direction_is_refused),
		channel_test(wrong_version_is_refused),
		channel_test(packet_shorter_than_a_header_is_refused),
		channel_test(short_and_long_payloads_are_refused),
		channel_test(packet_longer_than_any_message_is_refused),
		channel_test(descriptors_that_were_not_asked_for_are_refused_and_closed),
		channel_test(refused_packet_leaves_the_next_one_readable),
		channel_test(an_empty_packet_with_a_descriptor_is_not_the_end),
		channel_test(what_carries_no_descriptor_is_passed_over),
		channel_test(who_does_not_ask_for_the_rule_is_told_eproto_all_the_same),
		channel_test(a_signal_does_not_end_the_wait_for_a_packet),
		channel_test(a_signal_does_not_end_the_wait_for_room),
		channel_test(without_descriptors_there_is_no_pair),
	};

	return cmocka_run_group_tests_name("channel", tests, NULL, NULL);
}
