#include "tests/unit/taskstats_message.h"

#include <linux/acct.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <string.h>

static size_t put_attr(unsigned char *at, uint16_t type, const void *payload, size_t len)
{
	struct nlattr a = { (uint16_t)(NLA_HDRLEN + len), type };

	memcpy(at, &a, sizeof(a));
	memcpy(at + NLA_HDRLEN, payload, len);
	return NLA_ALIGN(NLA_HDRLEN + len);
}

static size_t put_half(unsigned char *at, uint16_t type, uint32_t pid, const struct taskstats *s)
{
	unsigned char inner[MESSAGE_ROOM / 2];
	size_t n = put_attr(inner,
		type == TASKSTATS_TYPE_AGGR_PID ? TASKSTATS_TYPE_PID : TASKSTATS_TYPE_TGID, &pid,
		sizeof(pid));

	n += put_attr(inner + n, TASKSTATS_TYPE_STATS, s, sizeof(*s));
	return put_attr(at, type, inner, n);
}

struct taskstats message_usual(void)
{
	return (struct taskstats){
		.version = 13,
		.ac_exitcode = 7 << 8,
		.ac_flag = AGROUP,
		.ac_pid = MESSAGE_CHILD,
		.ac_tgid = MESSAGE_CHILD,
		.ac_ppid = MESSAGE_PARENT,
		.ac_minflt = 11,
		.ac_majflt = 2,
	};
}

void message_make(struct message *m, uint16_t family, const struct taskstats *s, bool group)
{
	struct genlmsghdr genl = { .cmd = TASKSTATS_CMD_NEW, .version = 1 };
	struct nlmsghdr head = { .nlmsg_type = family };

	memset(m, 0, sizeof(*m));
	m->len = NLMSG_HDRLEN + GENL_HDRLEN;
	m->len += put_half(m->bytes + m->len, TASKSTATS_TYPE_AGGR_PID, MESSAGE_CHILD, s);
	if (group)
		m->len += put_half(m->bytes + m->len, TASKSTATS_TYPE_AGGR_TGID, MESSAGE_CHILD, s);
	head.nlmsg_len = (uint32_t)m->len;
	memcpy(m->bytes, &head, sizeof(head));
	memcpy(m->bytes + NLMSG_HDRLEN, &genl, sizeof(genl));
}
