#include "kernel/taskstats.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "kernel/sys.h"
#include "wire/cell.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/acct.h>
#include <linux/filter.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <linux/taskstats.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Only children's records get in, and one takes some 2 KiB of it with the kernel's own. */
#define RECEIVE_BYTES (1 << 20)
/* A record with its thread group's part is below 2 KiB; the structure only ever grows. */
#define MESSAGE_MAX   8192
#define BATCH         64 /* messages read in one go, so that the others have their turn */
#define CONTROL_MAX   64 /* messages that may come before the answer to a request */
#define CPUS_MAX      1024

#define VERSION_FIRST 12 /* AGROUP and ac_tgid */
#define VERSION_MOVED 15 /* put new fields in the middle; 16 took that back */
#define STATS_LEAST   (offsetof(struct taskstats, ac_tgid) + sizeof(uint32_t))

/* Where a record's fields lie in its message: two headers, the nested attribute, the pid. */
#define STATS_ATTR_AT (NLMSG_HDRLEN + GENL_HDRLEN + NLA_HDRLEN + NLA_HDRLEN + NLA_ALIGN(4))
#define STATS_AT      (STATS_ATTR_AT + NLA_HDRLEN)

struct span {
	const unsigned char *at;
	size_t len;
};

void taskstats_clear(struct taskstats_feed *t)
{
	*t = (struct taskstats_feed){ .fd = -1 };
}

void taskstats_close(struct taskstats_feed *t)
{
	/* The kernel notices at the next exit and forgets the registration. */
	drop_fd(&t->fd);
}

/* ---- Reading ---- */

/* Cut the first attribute off `s`: 1, 0 when nothing is left, -EBADMSG. */
static int cut(struct span *s, uint16_t *ret_type, struct span *ret)
{
	struct nlattr head;
	size_t whole;

	if (s->len == 0)
		return 0;
	if (s->len < NLA_HDRLEN)
		return -EBADMSG;
	memcpy(&head, s->at, sizeof(head));
	if (head.nla_len < NLA_HDRLEN || head.nla_len > s->len)
		return -EBADMSG;
	*ret_type = head.nla_type & NLA_TYPE_MASK;
	*ret = (struct span){ s->at + NLA_HDRLEN, head.nla_len - (size_t)NLA_HDRLEN };
	whole = NLA_ALIGN((size_t)head.nla_len);
	if (whole > s->len)
		whole = s->len;
	s->at += whole;
	s->len -= whole;
	return 1;
}

/* The attribute of that type in `s`: as cut(). */
static int find(struct span s, uint16_t type, struct span *ret)
{
	uint16_t seen;
	int r;

	while ((r = cut(&s, &seen, ret)) == 1 && seen != type)
		continue;
	return r;
}

/* The payload of a message of `family`: 1, 0 for other messages, -EBADMSG. */
static int open_message(
	const void *bytes, size_t len, uint16_t family, uint8_t command, struct span *ret)
{
	const size_t least = NLMSG_HDRLEN + GENL_HDRLEN;
	struct nlmsghdr head;
	struct genlmsghdr genl;

	if (len < NLMSG_HDRLEN)
		return -EBADMSG;
	memcpy(&head, bytes, sizeof(head));
	if (head.nlmsg_len > len || head.nlmsg_len < NLMSG_HDRLEN)
		return -EBADMSG;
	if (head.nlmsg_type != family)
		return 0;
	if (head.nlmsg_len < least)
		return -EBADMSG;
	memcpy(&genl, (const unsigned char *)bytes + NLMSG_HDRLEN, sizeof(genl));
	if (genl.cmd != command)
		return 0;
	*ret = (struct span){ (const unsigned char *)bytes + least, head.nlmsg_len - least };
	return 1;
}

/* The two parts of a record's PID half, of one and the same process. */
static int read_record(struct span half, uint32_t *ret_pid, struct taskstats *ret)
{
	struct span pid, stats;

	if (find(half, TASKSTATS_TYPE_PID, &pid) != 1 ||
		find(half, TASKSTATS_TYPE_STATS, &stats) != 1 || pid.len != sizeof(*ret_pid) ||
		stats.len < STATS_LEAST)
		return -EBADMSG;
	memcpy(ret_pid, pid.at, sizeof(*ret_pid));
	memset(ret, 0, sizeof(*ret));
	memcpy(ret, stats.at, stats.len < sizeof(*ret) ? stats.len : sizeof(*ret));
	/* Also what tells that the fields lie where this program believes. */
	if (ret->version < VERSION_FIRST || ret->version == VERSION_MOVED ||
		ret->ac_pid != *ret_pid)
		return -EBADMSG;
	return 1;
}

int taskstats_parse(
	const void *bytes, size_t len, uint16_t family, pid_t parent, struct taskstats_exit *ret)
{
	struct span payload, half, group;
	struct taskstats s;
	uint32_t pid;
	int r = open_message(bytes, len, family, TASKSTATS_CMD_NEW, &payload);

	if (r <= 0)
		return r;
	r = find(payload, TASKSTATS_TYPE_AGGR_PID, &half);
	if (r == 1)
		r = read_record(half, &pid, &s);
	if (r <= 0)
		return r;
	/* The last of its threads, and the main one: no other's end says how it ended. */
	if (!(s.ac_flag & AGROUP) || s.ac_tgid != pid || s.ac_ppid != (uint32_t)parent)
		return 0;
	r = find(payload, TASKSTATS_TYPE_AGGR_TGID, &group);
	if (r < 0)
		return r;
	*ret = (struct taskstats_exit){
		.pid = (pid_t)pid,
		.status = (int)s.ac_exitcode,
		.minor_faults = s.ac_minflt,
		.major_faults = s.ac_majflt,
		.told = strncmp(s.ac_comm, CELL_TOLD_NAME, sizeof(s.ac_comm)) == 0,
		.had_threads = r == 1,
	};
	return 1;
}

/* Whoever reads a process's `stat` holds on to its memory meanwhile, and has to take it down
 * when the process lets go of it just then. So only after that: without memory there is no
 * program file. */
static bool has_memory(pid_t pid)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/exe", pid);
	fd = sys.openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	if (fd >= 0)
		(void)sys.close(fd);
	return fd != -ENOENT;
}

int taskstats_add_children(struct taskstats_exit *e)
{
	char path[32], text[1024];
	uint64_t minor, major;
	const char *after;

	if (has_memory(e->pid))
		return -EBUSY;
	(void)snprintf(path, sizeof(path), "/proc/%d/stat", e->pid);
	if (io_read_text(AT_FDCWD, path, text, sizeof(text)) < 0)
		return -ESRCH;
	/* The name may hold anything, also a parenthesis. Then: state, ppid, pgrp, session, tty,
	 * tpgid, flags, minflt, cminflt, majflt, cmajflt. */
	after = strrchr(text, ')');
	if (!after || sscanf(after + 1, " %*c %*d %*d %*d %*d %*d %*u %*u %" SCNu64 " %*u %" SCNu64,
			      &minor, &major) != 2)
		return -EBADMSG;
	e->minor_faults += minor;
	e->major_faults += major;
	return 0;
}

/* One message: its length, 0 for one that is passed over, or a negative errno. */
static ssize_t receive(struct taskstats_feed *t, void *bytes, size_t room)
{
	struct sockaddr_nl from = { .nl_pid = ~0u };
	struct iovec part = { bytes, room };
	struct msghdr m = {
		.msg_name = &from, .msg_namelen = sizeof(from), .msg_iov = &part, .msg_iovlen = 1
	};
	ssize_t n = sys.recvmsg(t->fd, &m, MSG_DONTWAIT);

	if (n == -ENOBUFS) {
		t->lost++; /* said once; what is in the buffer is still good */
		return 0;
	}
	if (n < 0)
		return n == -EINTR ? 0 : n;
	/* Port 0 is the kernel's own: another process may have sent this, with a right that
	 * only root of the host has. */
	if (m.msg_namelen != sizeof(from) || from.nl_family != AF_NETLINK || from.nl_pid != 0)
		return 0;
	return m.msg_flags & MSG_TRUNC ? 0 : n;
}

int taskstats_next(struct taskstats_feed *t, struct taskstats_exit *ret)
{
	static union {
		struct nlmsghdr head; /* for the alignment */
		unsigned char bytes[MESSAGE_MAX];
	} m;

	for (unsigned i = 0; i < BATCH; i++) {
		uint64_t before = clock_ns();
		ssize_t n = receive(t, m.bytes, sizeof(m.bytes));

		if (n == -EAGAIN) {
			t->empty_ns = before;
			return 0;
		}
		if (n < 0)
			return (int)n;
		if (taskstats_parse(m.bytes, (size_t)n, t->family, t->parent, ret) == 1) {
			t->heard++;
			return 1;
		}
	}
	return -EAGAIN;
}

/* ---- Opening ---- */

struct request {
	struct nlmsghdr head;
	struct genlmsghdr genl;
	unsigned char attrs[CPUS_MAX + NLA_HDRLEN];
};

/* A request of one attribute, a string. */
static int ask(const struct taskstats_feed *t, uint16_t family, uint8_t command, uint16_t type,
	const char *text, struct fault *f)
{
	struct sockaddr_nl kernel = { .nl_family = AF_NETLINK };
	struct nlattr attr = { .nla_type = type };
	struct request q = {
		.head = { .nlmsg_type = family, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK },
		.genl = { .cmd = command, .version = 1 },
	};
	size_t len = strlen(text) + 1;
	ssize_t n;

	if (len > CPUS_MAX)
		return fault_set(f, -E2BIG, "taskstats: %.40s", text);
	attr.nla_len = (uint16_t)(NLA_HDRLEN + len);
	memcpy(q.attrs, &attr, sizeof(attr));
	memcpy(q.attrs + NLA_HDRLEN, text, len);
	q.head.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + GENL_HDRLEN + NLA_ALIGN(attr.nla_len));
	n = sys.sendto(
		t->fd, &q, q.head.nlmsg_len, 0, (const struct sockaddr *)&kernel, sizeof(kernel));
	return n < 0 ? fault_set(f, (int)n, "taskstats: send") : 0;
}

/* The kernel has answered before the request's send returns. *ret_id: what the answer says
 * about a family, 0 where it says nothing. 0, or the error that it answers with. */
static int hear_answer(struct taskstats_feed *t, uint16_t *ret_id)
{
	_Alignas(struct nlmsghdr) unsigned char bytes[MESSAGE_MAX];
	struct span payload, id;
	struct nlmsghdr head;

	*ret_id = 0;
	for (unsigned i = 0; i < CONTROL_MAX; i++) {
		ssize_t n = receive(t, bytes, sizeof(bytes));
		int code;

		if (n < 0)
			return (int)n;
		if (n < (ssize_t)(NLMSG_HDRLEN + sizeof(code)))
			continue;
		memcpy(&head, bytes, sizeof(head));
		if (head.nlmsg_type == NLMSG_ERROR) {
			memcpy(&code, bytes + NLMSG_HDRLEN, sizeof(code));
			return code > 0 ? -EBADMSG : code;
		}
		if (open_message(bytes, (size_t)n, GENL_ID_CTRL, CTRL_CMD_NEWFAMILY, &payload) ==
				1 &&
			find(payload, CTRL_ATTR_FAMILY_ID, &id) == 1 && id.len == sizeof(*ret_id))
			memcpy(ret_id, id.at, sizeof(*ret_id));
	}
	return -EBADMSG;
}

static int find_family(struct taskstats_feed *t, struct fault *f)
{
	uint16_t id;
	int r = ask(
		t, GENL_ID_CTRL, CTRL_CMD_GETFAMILY, CTRL_ATTR_FAMILY_NAME, TASKSTATS_GENL_NAME, f);

	if (r < 0)
		return r;
	r = hear_answer(t, &id);
	if (r == 0 && id == 0)
		r = -EBADMSG;
	if (r < 0)
		return fault_set(f, r, "taskstats: this kernel has no such family");
	t->family = id;
	return 0;
}

static int register_cpus(struct taskstats_feed *t, struct fault *f)
{
	char cpus[CPUS_MAX];
	uint16_t none;
	ssize_t n = io_read_text(AT_FDCWD, "/sys/devices/system/cpu/possible", cpus, sizeof(cpus));
	int r;

	if (n < 0)
		return fault_set(f, (int)n, "taskstats: which CPUs there are");
	cpus[strcspn(cpus, "\n")] = '\0';
	r = ask(t, t->family, TASKSTATS_CMD_GET, TASKSTATS_CMD_ATTR_REGISTER_CPUMASK, cpus, f);
	if (r == 0) {
		r = hear_answer(t, &none);
		if (r < 0)
			(void)fault_set(f, r, "taskstats: register for CPUs %.40s", cpus);
	}
	return r;
}

/* Away with all that is not the last thread's end of a child of ours. What the filter does not
 * understand it lets through: taskstats_parse() decides. Half words and words are compared in
 * network order. */
static int filter(const struct taskstats_feed *t, struct fault *f)
{
	const uint32_t parent = __builtin_bswap32((uint32_t)t->parent);
	const uint16_t stats = __builtin_bswap16(TASKSTATS_TYPE_STATS);
	struct sock_filter list[] = {
		BPF_STMT(BPF_LD | BPF_H | BPF_ABS,
			STATS_ATTR_AT + offsetof(struct nlattr, nla_type)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, stats, 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, STATS_AT + offsetof(struct taskstats, ac_ppid)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, parent, 0, 3),
		BPF_STMT(BPF_LD | BPF_B | BPF_ABS, STATS_AT + offsetof(struct taskstats, ac_flag)),
		BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, AGROUP, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, MESSAGE_MAX),
		BPF_STMT(BPF_RET | BPF_K, 0),
	};
	struct sock_fprog program = { sizeof(list) / sizeof(list[0]), list };
	int r;

	_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the constants are swapped");
	r = sys.setsockopt(t->fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
	return r < 0 ? fault_set(f, r, "taskstats: filter") : 0;
}

static int set_up(struct taskstats_feed *t, struct fault *f)
{
	const int room = RECEIVE_BYTES;
	int r;

	t->fd = sys.socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_GENERIC);
	if (t->fd < 0)
		return fault_set(f, t->fd, "taskstats: netlink socket");
	if (sys.setsockopt(t->fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) < 0)
		(void)sys.setsockopt(t->fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
	r = find_family(t, f);
	if (r == 0)
		r = register_cpus(t, f);
	if (r == 0)
		r = filter(t, f);
	return r;
}

int taskstats_open(struct taskstats_feed *ret, struct fault *f)
{
	struct taskstats_feed t = { .fd = -1, .parent = getpid() };
	int r = set_up(&t, f);

	if (r < 0) {
		drop_fd(&t.fd);
		return r;
	}
	*ret = t;
	return 0;
}
