/* Run a program on a kernel that lacks something: some system calls, or some of their flags,
 * answer as an older kernel would.
 *
 *     without RULE… -- PROGRAM [ARGUMENT…]
 *     RULE    NAME=ERRNO            the call
 *             NAME/N&MASK=ERRNO     the call when all bits of MASK are set in argument N
 *             NAME/N:VALUE=ERRNO    the call when argument N is VALUE
 *     ERRNO   ENOSYS, EINVAL, …
 *
 * By a filter of seccomp, which all that the program starts inherits, in every role, and
 * which no filter of theirs can undo. What a call gets by address (clone3's flags) it does not
 * see.
 */
#include <errno.h>
#include <inttypes.h>
#include <seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USAGE_STATUS 125

static _Noreturn void fail(const char *what, const char *why)
{
	(void)fprintf(stderr, "without: %s: %s\n", what, why);
	exit(USAGE_STATUS);
}

static int errno_of(const char *name)
{
	/* Larger than any of Linux's. */
	for (int e = 1; e < 200; e++) {
		const char *known = strerrorname_np(e);

		if (known && strcmp(known, name) == 0)
			return e;
	}
	return 0;
}

/* Cut `text` at the first of `marks`: what is behind it, and which it was. */
static char *cut(char *text, const char *marks, char *ret_mark)
{
	char *at = strpbrk(text, marks);

	if (!at)
		return NULL;
	*ret_mark = *at;
	*at = '\0';
	return at + 1;
}

static void add_rule(scmp_filter_ctx filter, const char *rule)
{
	char text[128], mark, *code, *condition, *value;
	uint32_t action;
	int call, r;

	(void)snprintf(text, sizeof(text), "%s", rule);
	code = cut(text, "=", &mark);
	if (!code || errno_of(code) == 0)
		fail(rule, "no errno");
	action = SCMP_ACT_ERRNO((uint32_t)errno_of(code));
	condition = cut(text, "/", &mark);
	call = seccomp_syscall_resolve_name(text);
	if (call == __NR_SCMP_ERROR)
		fail(rule, "no such call");
	if (condition) {
		unsigned n;
		uint64_t v;

		value = cut(condition, "&:", &mark);
		if (!value)
			fail(rule, "no value");
		n = (unsigned)strtoul(condition, NULL, 10);
		v = strtoull(value, NULL, 0);
		if (mark == '&')
			r = seccomp_rule_add(
				filter, action, call, 1, SCMP_CMP64(n, SCMP_CMP_MASKED_EQ, v, v));
		else
			r = seccomp_rule_add(
				filter, action, call, 1, SCMP_CMP64(n, SCMP_CMP_EQ, v, 0));
	} else {
		r = seccomp_rule_add(filter, action, call, 0);
	}
	if (r < 0)
		fail(rule, strerrordesc_np(-r));
}

int main(int argc, char **argv)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int i, r;

	if (!filter)
		fail("filter", "no memory");
	/* no_new_privs would be another host, too. */
	(void)seccomp_attr_set(filter, SCMP_FLTATR_CTL_NNP, 0);
	for (i = 1; i < argc && strcmp(argv[i], "--") != 0; i++)
		add_rule(filter, argv[i]);
	if (i + 1 >= argc)
		fail("usage", "without RULE... -- PROGRAM [ARGUMENT...]");
	r = seccomp_load(filter);
	if (r < 0)
		fail("load", strerrordesc_np(-r));
	seccomp_release(filter);
	(void)execv(argv[i + 1], argv + i + 1);
	fail(argv[i + 1], strerrordesc_np(errno));
}
