#include "tests/lib/flaky.h"

#include "kernel/sys.h"

#include <string.h>

#ifndef GLOVEBOX_TEST
#error "flaky.c replaces entries of the system-call table: build with -DGLOVEBOX_TEST"
#endif

static struct sys_ops real;
static unsigned calls_left;
static int fail_code;
static bool armed, reached;
static const char *failed_name = "";

static int (*ask)(const char *name); /* in the place of the count */

/* The errno to fail with, 0: make the call. */
static int whose_turn(const char *name)
{
	if (ask)
		return ask(name);
	if (reached || calls_left-- > 0)
		return 0;
	reached = true;
	failed_name = name;
	return strcmp(name, "close") != 0 ? fail_code : 0;
}

#define FLAKY(type, name, params, args)       \
	static type flaky_##name params       \
	{                                     \
		int code = whose_turn(#name); \
		if (code != 0)                \
			return (type)-code;   \
		return real.name args;        \
	}
SYS_CALLS(FLAKY)

#define ENTRY(type, name, params, args) .name = flaky_##name,
static const struct sys_ops flaky = { SYS_CALLS(ENTRY) };

void flaky_arm(unsigned n, int code)
{
	if (!armed)
		real = sys;
	armed = true;
	reached = false;
	calls_left = n;
	fail_code = code;
	failed_name = "";
	sys = flaky;
}

bool flaky_disarm(void)
{
	if (armed)
		sys = real;
	armed = false;
	return reached;
}

const char *flaky_name(void)
{
	return failed_name;
}

void flaky_ask(int (*turn)(const char *name))
{
	flaky_arm(0, 0);
	ask = turn;
}
