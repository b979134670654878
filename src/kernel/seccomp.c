#include "kernel/seccomp.h"

#include "base/check.h"
#include "base/fault.h"
#include "kernel/seccomp_policies.h"
#include "kernel/sys.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/ioctl.h>

/* The kernel's struct sock_fprog with the `const` that it forgot: the filters are
 * read-only tables. */
struct program {
	unsigned short len;
	const struct sock_filter *filter;
};
_Static_assert(sizeof(struct program) == sizeof(struct sock_fprog) &&
		       offsetof(struct program, filter) == offsetof(struct sock_fprog, filter),
	"same layout");

#define PROGRAM(name)                 \
	{                             \
		ARRAY_LEN(name), name \
	}

static const struct program programs[SECCOMP_POLICY_MAX] = {
	[SECCOMP_FRONT] = PROGRAM(seccomp_front),
	[SECCOMP_CONFIG] = PROGRAM(seccomp_config),
	[SECCOMP_COLLECTOR] = PROGRAM(seccomp_collector),
	[SECCOMP_GATE] = PROGRAM(seccomp_gate),
	[SECCOMP_INIT] = PROGRAM(seccomp_init),
	[SECCOMP_PROGRAM] = PROGRAM(seccomp_program),
};

static const char *const names[SECCOMP_POLICY_MAX] = {
	[SECCOMP_FRONT] = "front",
	[SECCOMP_CONFIG] = "config",
	[SECCOMP_COLLECTOR] = "collector",
	[SECCOMP_GATE] = "gate",
	[SECCOMP_INIT] = "init",
	[SECCOMP_PROGRAM] = "program",
};

int seccomp_install(enum seccomp_policy policy, struct fault *f)
{
	struct program p;
	int r;

	CHECK((unsigned)policy < SECCOMP_POLICY_MAX);
	p = programs[policy];

	/* No FILTER_FLAG_LOG: a cell could flood the host's audit log. */
	r = sys.seccomp(SECCOMP_SET_MODE_FILTER, 0, &p);
	return r < 0 ? fault_set(f, r, "seccomp: install the %s filter", names[policy]) : 0;
}

int seccomp_install_told(int *ret_listener, struct fault *f)
{
	struct program p = PROGRAM(seccomp_program_told);
	int r = sys.seccomp(SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &p);

	*ret_listener = r;
	if (r >= 0)
		return 0;
	*ret_listener = -1;
	/* Below a container's manager that has a listener of its own. */
	if (r == -EBUSY)
		return seccomp_install(SECCOMP_PROGRAM, f);
	return fault_set(f, r, "seccomp: install the program filter with a listener");
}

/* What the filter says to a call: the kernel has asked it already, but passes on no errno. The
 * instructions are those that tools/seccomp-compile.c emits; jumps go forward only. */
static uint32_t evaluate(const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t pc = 0; pc < ARRAY_LEN(seccomp_program_told); pc++) {
		const struct sock_filter *f = &seccomp_program_told[pc];

		if (f->code == (BPF_LD | BPF_W | BPF_ABS) && f->k <= sizeof(*d) - sizeof(a))
			memcpy(&a, (const char *)d + f->k, sizeof(a));
		else if (f->code == (BPF_ALU | BPF_AND | BPF_K))
			a &= f->k;
		else if (f->code == (BPF_JMP | BPF_JA))
			pc += f->k;
		else if (f->code == (BPF_JMP | BPF_JEQ | BPF_K))
			pc += a == f->k ? f->jt : f->jf;
		else if (f->code == (BPF_JMP | BPF_JGE | BPF_K))
			pc += a >= f->k ? f->jt : f->jf;
		else
			return f->code == (BPF_RET | BPF_K) ? f->k : SECCOMP_RET_KILL_PROCESS;
	}
	return SECCOMP_RET_KILL_PROCESS;
}

static int errno_of(const struct seccomp_data *d)
{
	uint32_t action = evaluate(d), code = action & SECCOMP_RET_DATA;

	return (action & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_USER_NOTIF && code > 0 ? (int)code
											: EPERM;
}

int seccomp_answer(int listener, uint32_t *ret_number)
{
	struct pollfd p = { .fd = listener, .events = POLLIN };
	struct seccomp_notif asked;
	struct seccomp_notif_resp answer = { 0 };
	int r = sys.poll(&p, 1, 0);

	if (r <= 0)
		return r;
	/* Only when one waits: receiving would wait for the next one otherwise. */
	if (!(p.revents & POLLIN)) /* POLLERR: the kernel could not look, for once */
		return p.revents & POLLERR ? 0 : -EPIPE;
	memset(&asked, 0, sizeof(asked)); /* the kernel wants it so */
	r = sys.ioctl(listener, SECCOMP_IOCTL_NOTIF_RECV, &asked);
	if (r < 0)
		return r == -ENOENT || r == -EINTR ? 0 : r; /* it was killed in the meantime */
	answer.id = asked.id;
	answer.error = -errno_of(&asked.data);
	r = sys.ioctl(listener, SECCOMP_IOCTL_NOTIF_SEND, &answer);
	if (r < 0 && r != -ENOENT)
		return r;
	*ret_number = (uint32_t)asked.data.nr;
	return 1;
}

int seccomp_available(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return sys.seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action);
}
