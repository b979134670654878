#include "wire/channel.h"

#include "base/check.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* What stands in front of every payload. */
struct header {
	uint32_t type;
	uint32_t version;
};

#define WIRE_VERSION UINT32_C(1)

int channel_pair(int ret_fds[2], int nonblock)
{
	int type = SOCK_SEQPACKET | SOCK_CLOEXEC | (nonblock ? SOCK_NONBLOCK : 0);

	return socketpair(AF_UNIX, type, 0, ret_fds) < 0 ? -errno : 0;
}

int channel_send(int fd, enum msg_type type, const void *payload, const int *fds)
{
	struct header h = { .type = type, .version = WIRE_VERSION };
	struct iovec iov[2] = {
		{ .iov_base = &h, .iov_len = sizeof(h) },
		{ .iov_base = (void *)(uintptr_t)payload, .iov_len = msg_size(type) },
	};
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * MSG_FDS_MAX)];
	} control = { 0 };
	struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };
	unsigned nfds = msg_fds(type);
	ssize_t n;

	if (nfds > 0) {
		struct cmsghdr *c;

		CHECK(fds);
		mh.msg_control = control.bytes;
		mh.msg_controllen = CMSG_SPACE(sizeof(int) * nfds);
		c = CMSG_FIRSTHDR(&mh);
		c->cmsg_level = SOL_SOCKET;
		c->cmsg_type = SCM_RIGHTS;
		c->cmsg_len = CMSG_LEN(sizeof(int) * nfds);
		memcpy(CMSG_DATA(c), fds, sizeof(int) * nfds);
	}
	do
		n = sendmsg(fd, &mh, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

/* Take every descriptor that came along: those beyond MSG_FDS_MAX are closed but
 * counted, so that the gate sees how many there were. */
static unsigned take_descriptors(struct msghdr *mh, int fds[MSG_FDS_MAX])
{
	unsigned n = 0;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(mh); c; c = CMSG_NXTHDR(mh, c)) {
		size_t bytes = c->cmsg_len - CMSG_LEN(0);

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < bytes / sizeof(int); i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof(int));
			if (n < MSG_FDS_MAX)
				fds[n] = fd;
			else
				(void)close(fd);
			n++;
		}
	}
	return n;
}

static const char *judge(const struct msghdr *mh, const struct header *h, size_t n, enum role from,
	enum role to, unsigned nfds)
{
	if (mh->msg_flags & (MSG_TRUNC | MSG_CTRUNC))
		return "too long, or too many descriptors";
	if (n < sizeof(*h))
		return "shorter than its header";
	if (h->version != WIRE_VERSION)
		return "wrong version";
	return msg_admit(from, to, h->type, n - sizeof(*h), nfds);
}

int channel_recv(int fd, enum role from, enum role to, struct msg *ret, const char **ret_rule)
{
	struct header h = { 0 };
	struct iovec iov[2] = {
		{ .iov_base = &h, .iov_len = sizeof(h) },
		{ .iov_base = &ret->as, .iov_len = sizeof(ret->as) },
	};
	union {
		struct cmsghdr align;
		/* One more than allowed, so that excess is seen as such. */
		char bytes[CMSG_SPACE(sizeof(int) * (MSG_FDS_MAX + 1))];
	} control;
	struct msghdr mh = {
		.msg_iov = iov,
		.msg_iovlen = 2,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes),
	};
	const char *rule;
	unsigned nfds;
	ssize_t n;

	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		ret->fds[i] = -1;
	ret->nfds = 0;
	ret->type = MSG_NONE;
	do
		n = recvmsg(fd, &mh, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return -errno;
	nfds = take_descriptors(&mh, ret->fds);
	ret->nfds = nfds < MSG_FDS_MAX ? nfds : MSG_FDS_MAX;
	if (n == 0 && nfds == 0)
		return 0;
	rule = judge(&mh, &h, (size_t)n, from, to, nfds);
	if (rule) {
		msg_done(ret);
		if (ret_rule)
			*ret_rule = rule;
		return -EPROTO;
	}
	ret->type = h.type;
	return 1;
}

void msg_done(struct msg *m)
{
	for (unsigned i = 0; i < MSG_FDS_MAX; i++) {
		if (m->fds[i] >= 0)
			(void)close(m->fds[i]);
		m->fds[i] = -1;
	}
	m->nfds = 0;
}
