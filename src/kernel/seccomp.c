#include "kernel/seccomp.h"

#include "base/check.h"
#include "base/fault.h"
#include "kernel/seccomp_policies.h"
#include "kernel/sys.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>

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
	[SECCOMP_INIT] = PROGRAM(seccomp_init),
	[SECCOMP_PROGRAM] = PROGRAM(seccomp_program),
};

static const char *const names[SECCOMP_POLICY_MAX] = {
	[SECCOMP_FRONT] = "front",
	[SECCOMP_CONFIG] = "config",
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

int seccomp_available(void)
{
	uint32_t action = SECCOMP_RET_ERRNO;

	return sys.seccomp(SECCOMP_GET_ACTION_AVAIL, 0, &action);
}
