/* Fuzz target: one packet of any bytes with any descriptors, received in any of the roles, and
 * what the receiver looks at next: settings, a SUBMIT's rules, a fault's text. Checks, beyond
 * memory errors, that
 *  - only a message of the list passes, in its direction, with its size and its descriptors;
 *  - what is refused leaves no descriptor open, and what passes just those that it owns;
 *  - what passes as settings, or as a run, is within every bound;
 *  - a laundered text is printable and ends.
 */
#include "base/fault.h"
#include "base/own.h"
#include "priv/supervisor/submit.h"
#include "tests/fuzz/fuzz.h"
#include "tests/unit/api_settings.h"
#include "wire/channel.h"
#include "wire/layer.h"

#include <errno.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/socket.h>

#define SENT_FDS_MAX 8

static struct {
	int file, sealed, in[2], out[2], err[2];
} some;

static void open_some(void)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE;

	some.file = open("/dev/null", O_RDWR | O_CLOEXEC);
	some.sealed = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	CHECK(ftruncate(some.sealed, 3) == 0 && fcntl(some.sealed, F_ADD_SEALS, seals) == 0);
	CHECK(pipe2(some.in, O_CLOEXEC) == 0 && pipe2(some.out, O_CLOEXEC) == 0 &&
		pipe2(some.err, O_CLOEXEC) == 0);
}

static int some_fd(uint8_t which)
{
	const int all[] = { some.file, some.sealed, some.in[0], some.in[1], some.out[0],
		some.out[1], some.err[0], some.err[1] };

	return all[which % 8];
}

static size_t send_packet(struct fuzz *z, int fd, unsigned *ret_count)
{
	static char bytes[sizeof(union msg_any) + 256];
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int) * SENT_FDS_MAX)];
	} control = { 0 };
	struct iovec iov = { .iov_base = bytes };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	unsigned count = fuzz_u8(z) % (SENT_FDS_MAX + 1);
	uint32_t head[2] = { fuzz_u8(z), 1 };
	uint8_t how = fuzz_u8(z);
	int fds[SENT_FDS_MAX];

	for (unsigned i = 0; i < count; i++)
		fds[i] = some_fd(fuzz_u8(z));
	memset(bytes, 0, sizeof(bytes));
	if (how % 4 == 0) { /* bytes as they are */
		const uint8_t *p = fuzz_take(z, sizeof(bytes), &iov.iov_len);

		memcpy(bytes, p, iov.iov_len);
	} else { /* a message of its right size, whatever is in it */
		head[0] %= MSG_TYPE_MAX;
		head[1] += how == 255;
		memcpy(bytes, head, sizeof(head));
		iov.iov_len = sizeof(head);
		if (head[0] > 0) {
			size_t room = msg_size((enum msg_type)head[0]);

			if (head[0] == MSG_CONFIG && how % 4 == 1)
				memcpy(bytes + sizeof(head), &api_settings, sizeof(api_settings));
			else
				fuzz_fill(z, bytes + sizeof(head), room);
			for (unsigned i = 0; i < 8 && z->len > 2; i++) { /* some bytes changed */
				size_t at = fuzz_u8(z) << 8 | fuzz_u8(z);

				bytes[sizeof(head) + at % room] = (char)fuzz_u8(z);
			}
			iov.iov_len += room;
			count = how % 8 == 7 ? count : msg_fds((enum msg_type)head[0]);
			for (unsigned i = 0; i < count; i++)
				fds[i] = some_fd((uint8_t)(fuzz_u8(z) + 2 * i + 1));
		}
	}
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
	CHECK(sendmsg(fd, &mh, MSG_NOSIGNAL) == (ssize_t)iov.iov_len);
	*ret_count = count;
	return iov.iov_len;
}

static void check_fault(struct fault *f)
{
	CHECK(fault_launder(f) < 0);
	for (const char *p = f->text; *p; p++)
		CHECK(p < f->text + sizeof(f->text) - 1 && *p >= 0x20 && *p < 0x7f);
}

static void check_settings(const struct settings *s)
{
	const char *why = settings_fault(s);

	if (why) {
		CHECK(why[0]);
		return;
	}
	CHECK(s->max_runs > 0 && s->max_runs <= 120 && s->pool_size <= 400);
	CHECK(s->insecure || listen_is_local(&s->listen));
	CHECK(s->def.memory_bytes <= s->max.memory_bytes && s->def.pids <= s->max.pids);
	CHECK((s->allow_degraded & ~LAYER_ALL) == 0);
	CHECK(strnlen(s->cgroup, sizeof(s->cgroup)) < sizeof(s->cgroup));
	CHECK(s->runtime.argv[0][0] == '/' && s->runtime.roots[0][0]);
}

static void check_submit(const struct msg *m)
{
	const struct msg_submit *s = &m->as.SUBMIT;
	struct fault f = { 0 };

	if (submit_violation(m))
		return;
	CHECK(fcntl(m->fds[0], F_GET_SEALS) & F_SEAL_WRITE);
	CHECK((fcntl(m->fds[1], F_GETFL) & O_ACCMODE) == O_RDONLY);
	CHECK((fcntl(m->fds[2], F_GETFL) & O_ACCMODE) == O_WRONLY);
	CHECK((fcntl(m->fds[3], F_GETFL) & O_ACCMODE) == O_WRONLY);
	if (submit_check_limits(s, &api_settings, &f) < 0) {
		CHECK(f.text[0]);
		return;
	}
	CHECK(!s->allow_network && s->limits.pids >= 1 && s->limits.pids <= api_settings.max.pids);
	CHECK(s->limits.timeout_us > 0 && s->limits.timeout_us <= api_settings.max.timeout_us);
	CHECK(s->limits.memory_bytes <= api_settings.max.memory_bytes);
	CHECK(s->limits.cpu_milli > 0 && s->limits.cpu_milli <= api_settings.max.cpu_milli);
}

static void check_message(struct msg *m, enum role from, enum role to, size_t len)
{
	CHECK(m->type > MSG_NONE && m->type < MSG_TYPE_MAX);
	CHECK(!msg_admit(from, to, m->type, len - 8, m->nfds));
	CHECK(m->nfds == msg_fds((enum msg_type)m->type) &&
		len == 8 + msg_size((enum msg_type)m->type));
	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		CHECK(i < m->nfds ? fcntl(m->fds[i], F_GETFD) == FD_CLOEXEC : m->fds[i] == -1);
	if (m->type == MSG_CONFIG)
		check_settings(&m->as.CONFIG.settings);
	else if (m->type == MSG_SUBMIT)
		check_submit(m);
	else if (m->type == MSG_BROKEN || m->type == MSG_UNFORKED)
		check_fault(&m->as.BROKEN.fault);
	else if (m->type == MSG_CONFIG_BAD)
		check_fault(&m->as.CONFIG_BAD.fault);
	else if (m->type == MSG_REFUSED)
		check_fault(&m->as.REFUSED.fault);
	else if (m->type == MSG_RESULT)
		CHECK(run_cause_word(m->as.RESULT.cause)[0] &&
			memory_counter_word(m->as.RESULT.memory_counter)[0]);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static struct msg m;
	struct fuzz z = { bytes, len };
	enum role from = fuzz_u8(&z) % 5, to = fuzz_u8(&z) % 5;
	const char *rule = NULL;
	unsigned fds, count;
	int pair[2], r;
	size_t n;

	if (some.sealed == 0)
		open_some();
	CHECK(channel_pair(pair, 1) == 0);
	n = send_packet(&z, pair[1], &count);
	fds = fuzz_count_fds();
	r = channel_recv(pair[0], from, to, &m, &rule);
	if (r == 1) {
		CHECK(fuzz_count_fds() == fds + m.nfds);
		check_message(&m, from, to, n);
		msg_done(&m);
	} else {
		CHECK((r == -EPROTO && rule && rule[0]) || (r == 0 && n == 0 && count == 0));
	}
	CHECK(fuzz_count_fds() == fds);
	CHECK(channel_recv(pair[0], from, to, &m, NULL) == -EAGAIN);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return 0;
}
