/* A feed whose socket is ours: what the kernel says otherwise than its formats have it, or another
 * process in its place, is refused or passed over. No root. */
#include "tests/unit/unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "kernel/taskstats.h"
#include "tests/unit/taskstats_message.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define FAMILY       30
#define MESSAGES_MAX 80

ssize_t __wrap_io_read_text(int dir_fd, const char *path, char *text, size_t room);

/* What is received, in order; after it nothing. */
static struct {
	struct heard {
		unsigned char bytes[512];
		ssize_t len; /* negative: an errno */
		unsigned port, flags;
		unsigned short family;
		bool short_name;
	} heard[MESSAGES_MAX];
	unsigned count, next;
	const char *cpus, *stat; /* NULL: no such file */
	unsigned sent;
} host;

static struct sys_ops real;
static struct taskstats_feed feed;

ssize_t __wrap_io_read_text(int dir_fd, const char *path, char *text, size_t room)
{
	const char *from = strncmp(path, "/proc/", 6) == 0 ? host.stat : host.cpus;

	(void)dir_fd;
	if (!from)
		return -ENOENT;
	(void)snprintf(text, room, "%s", from);
	return (ssize_t)strlen(text);
}

static ssize_t fake_recvmsg(int fd, struct msghdr *m, int flags)
{
	struct sockaddr_nl *from = m->msg_name;
	const struct heard *h;

	(void)fd;
	assert_int_equal(flags, MSG_DONTWAIT);
	if (host.next == host.count)
		return -EAGAIN;
	h = &host.heard[host.next++];
	if (h->len < 0)
		return h->len;
	assert_true(m->msg_iov->iov_len >= (size_t)h->len);
	memcpy(m->msg_iov->iov_base, h->bytes, (size_t)h->len);
	from->nl_family = h->family;
	from->nl_pid = h->port;
	m->msg_namelen = h->short_name ? 2 : sizeof(*from);
	m->msg_flags = (int)h->flags;
	return h->len;
}

static ssize_t fake_sendto(int fd, const void *bytes, size_t len, int flags,
	const struct sockaddr *to, socklen_t to_len)
{
	(void)fd;
	(void)bytes;
	(void)flags;
	(void)to;
	(void)to_len;
	host.sent++;
	return (ssize_t)len;
}

static int fake_socket(int domain, int type, int protocol)
{
	(void)domain;
	(void)type;
	(void)protocol;
	return open("/dev/null", O_RDWR | O_CLOEXEC);
}

static int fake_setsockopt(int fd, int level, int option, const void *value, socklen_t len)
{
	(void)fd;
	(void)level;
	(void)option;
	(void)value;
	(void)len;
	return 0;
}

static struct heard *hear(const void *bytes, size_t len)
{
	struct heard *h = &host.heard[host.count++];

	assert_true(host.count <= MESSAGES_MAX && len <= sizeof(h->bytes));
	*h = (struct heard){ .len = (ssize_t)len, .family = AF_NETLINK };
	if (len > 0)
		memcpy(h->bytes, bytes, len);
	return h;
}

static void hear_error(int code)
{
	struct {
		struct nlmsghdr head;
		int code;
	} m = { { .nlmsg_len = sizeof(m), .nlmsg_type = NLMSG_ERROR }, code };

	(void)hear(&m, sizeof(m));
}

/* The kernel's word for the number of a family: `id_len` bytes of it, in an attribute. */
static void hear_family(uint8_t command, uint16_t attribute, uint16_t id_len)
{
	struct {
		struct nlmsghdr head;
		struct genlmsghdr genl;
		struct nlattr attr;
		uint16_t id, more;
	} m = { .head = { .nlmsg_type = GENL_ID_CTRL },
		.genl = { .cmd = command },
		.attr = { .nla_len = (uint16_t)(NLA_HDRLEN + id_len), .nla_type = attribute },
		.id = FAMILY };

	m.head.nlmsg_len = sizeof(m);
	(void)hear(&m, sizeof(m));
}

static void hear_the_family(void)
{
	hear_family(CTRL_CMD_NEWFAMILY, CTRL_ATTR_FAMILY_ID, sizeof(uint16_t));
	hear_error(0);
}

static int begin(void **state)
{
	(void)state;
	memset(&host, 0, sizeof(host));
	host.cpus = "0-7\n";
	real = sys;
	sys.recvmsg = fake_recvmsg;
	sys.sendto = fake_sendto;
	sys.socket = fake_socket;
	sys.setsockopt = fake_setsockopt;
	feed = (struct taskstats_feed){ .fd = 0, .family = FAMILY, .parent = MESSAGE_PARENT };
	return 0;
}

static int end(void **state)
{
	(void)state;
	sys = real;
	return 0;
}

static struct heard *hear_a_record(void)
{
	struct taskstats s = message_usual();
	static struct message m;

	message_make(&m, FAMILY, &s, false);
	return hear(m.bytes, m.len);
}

static void is_no_record(void)
{
	struct taskstats_exit e;

	assert_int_equal(taskstats_next(&feed, &e), 0);
	host.count = host.next = 0;
}

static void a_record_is_read_and_after_it_nothing(void **state)
{
	struct taskstats_exit e;

	(void)state;
	(void)hear_a_record();
	assert_int_equal(taskstats_next(&feed, &e), 1);
	assert_int_equal(e.pid, MESSAGE_CHILD);
	is_no_record();
}

static void what_does_not_come_from_the_kernel_or_not_whole_is_passed_over(void **state)
{
	(void)state;
	hear_a_record()->port = 4711;
	is_no_record();
	hear_a_record()->family = AF_UNIX;
	is_no_record();
	hear_a_record()->short_name = true;
	is_no_record();
	hear_a_record()->flags = MSG_TRUNC;
	is_no_record();
	hear_a_record()->len = -EINTR;
	is_no_record();
}

static void a_socket_that_breaks_is_said(void **state)
{
	struct taskstats_exit e;

	(void)state;
	hear_a_record()->len = -ENOMEM;
	assert_int_equal(taskstats_next(&feed, &e), -ENOMEM);
}

static void others_get_their_turn_after_so_many_messages(void **state)
{
	struct taskstats_exit e;

	(void)state;
	for (unsigned i = 0; i < 70; i++)
		(void)hear("", 0);
	assert_int_equal(taskstats_next(&feed, &e), -EAGAIN);
	assert_int_equal(feed.empty_ns, 0); /* not seen empty */
	assert_int_equal(taskstats_next(&feed, &e), 0);
}

static void is_refused(int code, const char *words)
{
	struct taskstats_feed t = { .fd = -1 };
	struct fault f = { 0 };

	host.next = 0;
	assert_int_equal(taskstats_open(&t, &f), code);
	assert_int_equal(t.fd, -1);
	if (!strstr(f.text, words))
		fail_msg("%s", f.text);
	host.count = host.next = 0;
}

static void a_kernel_that_answers_as_it_should_is_listened_to(void **state)
{
	struct taskstats_feed t;
	struct fault f = { 0 };

	(void)state;
	hear_the_family();
	hear_error(0);
	if (taskstats_open(&t, &f) < 0)
		fail_msg("%s", f.text);
	assert_int_equal(t.family, FAMILY);
	assert_int_equal(host.sent, 2);
	taskstats_close(&t);
}

static void an_answer_without_the_family_is_none(void **state)
{
	const char words[] = "this kernel has no such family";

	(void)state;
	hear_error(-ENOENT);
	is_refused(-ENOENT, words);
	hear_error(0); /* yes, and nothing else */
	is_refused(-EBADMSG, words);
	hear_error(1); /* no error that there is */
	is_refused(-EBADMSG, words);
	hear_family(CTRL_CMD_DELFAMILY, CTRL_ATTR_FAMILY_ID, sizeof(uint16_t));
	hear_error(0);
	is_refused(-EBADMSG, words);
	hear_family(CTRL_CMD_NEWFAMILY, CTRL_ATTR_VERSION, sizeof(uint16_t));
	hear_error(0);
	is_refused(-EBADMSG, words);
	hear_family(CTRL_CMD_NEWFAMILY, CTRL_ATTR_FAMILY_ID, sizeof(uint32_t));
	hear_error(0);
	is_refused(-EBADMSG, words);
}

static void an_answer_that_does_not_come_is_not_waited_for(void **state)
{
	(void)state;
	is_refused(-EAGAIN, "no such family");
	for (unsigned i = 0; i < 70; i++)
		(void)hear("", 0);
	is_refused(-EBADMSG, "no such family");
}

static void processors_that_are_not_told_or_not_taken_are_said(void **state)
{
	(void)state;
	host.cpus = NULL;
	hear_the_family();
	is_refused(-ENOENT, "which CPUs there are");
	host.cpus = "0-7\n";
	hear_the_family();
	hear_error(-EPERM);
	is_refused(-EPERM, "register for CPUs 0-7");
}

static void a_text_that_is_not_as_the_kernel_writes_it_adds_nothing(void **state)
{
	const char *const texts[] = { "", "7 (x S 1", "7 (x) S 1 2 3 4 5 6 7", "7 (x) S a b" };
	struct taskstats_exit e = { .pid = 0x7ffffff }; /* nobody has that number */

	(void)state;
	for (unsigned i = 0; i < 4; i++) {
		host.stat = texts[i];
		assert_int_equal(taskstats_add_children(&e), -EBADMSG);
	}
	host.stat = "7 (a) b) S 1 2 3 4 5 6 10 20 30 40 50";
	assert_int_equal(taskstats_add_children(&e), 0);
	assert_int_equal(e.minor_faults, 20);
	assert_int_equal(e.major_faults, 40);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(a_record_is_read_and_after_it_nothing),
		CASE(what_does_not_come_from_the_kernel_or_not_whole_is_passed_over),
		CASE(a_socket_that_breaks_is_said),
		CASE(others_get_their_turn_after_so_many_messages),
		CASE(a_kernel_that_answers_as_it_should_is_listened_to),
		CASE(an_answer_without_the_family_is_none),
		CASE(an_answer_that_does_not_come_is_not_waited_for),
		CASE(processors_that_are_not_told_or_not_taken_are_said),
		CASE(a_text_that_is_not_as_the_kernel_writes_it_adds_nothing),
	};

	return cmocka_run_group_tests_name("taskstats_feed", tests, NULL, NULL);
}
