/* Capabilities, as /proc tells them afterwards. Root. */
#include "unit.h"

#include "base/fault.h"
#include "kernel/caps.h"
#include "kernel/sys.h"
#include "tests/lib/flaky.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/securebits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define KILL_ONLY CAPS_BIT(CAP_KILL)

/* Assertions do not work in a child: it returns the number of the line that is wrong. */
#define WANT(cond)                       \
	do {                             \
		if (!(cond))             \
			return __LINE__; \
	} while (0)

static uint64_t status_hex(const char *key)
{
	FILE *in = fopen("/proc/self/status", "re");
	char line[256];
	uint64_t v = UINT64_MAX;

	while (in && fgets(line, sizeof(line), in)) {
		if (strncmp(line, key, strlen(key)) == 0)
			v = strtoull(line + strlen(key), NULL, 16);
	}
	if (in)
		(void)fclose(in);
	return v;
}

static int all_are(uint64_t eff_and_prm, uint64_t bounding)
{
	WANT(status_hex("CapEff:") == eff_and_prm);
	WANT(status_hex("CapPrm:") == eff_and_prm);
	WANT(status_hex("CapBnd:") == bounding);
	WANT(status_hex("CapInh:") == 0);
	WANT(status_hex("CapAmb:") == 0);
	return 0;
}

/* Make one capability inheritable and ambient, so that there is something to clear. */
static int raise_ambient(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct d[2];

	WANT(syscall(SYS_capget, &h, d) == 0);
	d[0].inheritable = (uint32_t)KILL_ONLY;
	WANT(syscall(SYS_capset, &h, d) == 0);
	WANT(prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_KILL, 0, 0) == 0);
	WANT(status_hex("CapAmb:") == KILL_ONLY);
	return 0;
}

static void in_child(int (*body)(void))
{
	int pair[2], line = -1, status;
	pid_t pid;

	assert_int_equal(pipe(pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		line = body();
		_exit(write(pair[1], &line, sizeof(line)) == sizeof(line) ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(pair[0], &line, sizeof(line)), sizeof(line));
	(void)close(pair[0]);
	(void)close(pair[1]);
	if (line)
		fail_msg("the child failed at line %d", line);
}

static int keep_nothing(void)
{
	struct fault f = { 0 };

	WANT(raise_ambient() == 0);
	WANT(caps_keep_only(0, &f) == 0);
	WANT(all_are(0, 0) == 0);
	WANT(caps_permitted() == 0);
	return 0;
}

static void keeping_nothing_empties_all_five_sets(void **state)
{
	(void)state;
	in_child(keep_nothing);
}

static int keep_one(void)
{
	struct fault f = { 0 };

	WANT(raise_ambient() == 0);
	WANT(caps_keep_only(KILL_ONLY, &f) == 0);
	WANT(all_are(KILL_ONLY, KILL_ONLY) == 0);
	WANT(caps_permitted() == KILL_ONLY);
	return 0;
}

static void what_is_kept_is_kept_and_nothing_else(void **state)
{
	(void)state;
	in_child(keep_one);
}

static int keep_too_much(void)
{
	struct fault f = { 0 };

	WANT(caps_keep_only(KILL_ONLY, &f) == 0);
	WANT(caps_keep_only(KILL_ONLY | CAPS_BIT(CAP_CHOWN), &f) == -EPERM);
	WANT(strstr(f.text, "keep the capabilities"));
	WANT(all_are(KILL_ONLY, KILL_ONLY) == 0);
	return 0;
}

static void a_capability_that_one_has_not_cannot_be_kept(void **state)
{
	(void)state;
	in_child(keep_too_much);
}

static int halves_around_uid(void)
{
	struct fault f = { 0 };
	uint64_t before = caps_permitted();

	WANT(before & KILL_ONLY);
	WANT(caps_lock(&f) == 0);
	WANT(setresuid(12345, 12345, 12345) == 0);
	WANT(all_are(before, 0) == 0); /* the change of uid took nothing: clear must */
	WANT(caps_clear(&f) == 0);
	WANT(all_are(0, 0) == 0);
	return 0;
}

static void a_change_of_uid_between_the_halves_leaves_nothing_behind(void **state)
{
	(void)state;
	in_child(halves_around_uid);
}

static int locked_bits(void)
{
	struct fault f = { 0 };
	int want = SECBIT_NOROOT | SECBIT_NO_SETUID_FIXUP | SECBIT_NO_CAP_AMBIENT_RAISE |
		   SECURE_ALL_LOCKS;

	WANT(raise_ambient() == 0);
	WANT(caps_lock(&f) == 0);
	WANT(status_hex("CapAmb:") == 0);
	WANT((prctl(PR_GET_SECUREBITS) & (want | SECBIT_KEEP_CAPS)) == want);
	WANT(prctl(PR_SET_SECUREBITS, 0) < 0 && errno == EPERM); /* it still has CAP_SETPCAP */
	return 0;
}

static void the_lock_clears_ambient_and_holds(void **state)
{
	(void)state;
	in_child(locked_bits);
}

static void an_exec_as_uid_0_brings_nothing_back(void **state)
{
	int pair[2], status;
	char text[64] = "";
	pid_t pid;

	(void)state;
	assert_int_equal(pipe(pair), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct fault f = { 0 };

		if (caps_keep_only(0, &f) == 0 && dup2(pair[1], 1) == 1)
			(void)execl("/bin/grep", "grep", "CapEff", "/proc/self/status", NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_true(read(pair[0], text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "CapEff:\t0000000000000000\n");
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static struct sys_ops real;

/* Kernels that say yes and do nothing. */
static int idle_capset(
	struct __user_cap_header_struct *header, const struct __user_cap_data_struct *sets)
{
	(void)header;
	(void)sets;
	return 0;
}

static int idle_prctl(int op, unsigned long a, unsigned long b, unsigned long c, unsigned long d)
{
	return op == PR_CAPBSET_DROP || op == PR_CAP_AMBIENT
		       ? op == PR_CAP_AMBIENT && a == PR_CAP_AMBIENT_IS_SET
		       : real.prctl(op, a, b, c, d);
}

static int not_believed(void)
{
	struct fault f = { 0 };

	real = sys;
	sys.capset = idle_capset;
	WANT(caps_keep_only(KILL_ONLY, &f) == -EPERM);
	WANT(strstr(f.text, "capabilities are permitted"));
	sys.capset = real.capset;
	sys.prctl = idle_prctl;
	WANT(caps_keep_only(KILL_ONLY, &f) == -EPERM);
	WANT(strstr(f.text, "still"));
	return 0;
}

static void a_call_that_says_yes_is_not_believed(void **state)
{
	(void)state;
	in_child(not_believed);
}

static unsigned turn; /* of the call that fails */
static uint64_t kept;

static int one_call_fails(void)
{
	struct fault f = { 0 };
	bool reached;
	int r;

	flaky_arm(turn, EIO);
	r = caps_keep_only(kept, &f);
	reached = flaky_disarm();
	WANT(!reached || r < 0);
	WANT(!reached || f.text[0]);
	WANT(reached || r == 0);
	return 0;
}

static void whichever_call_fails_it_is_told(void **state)
{
	(void)state;
	/* 41 capabilities, each looked at, dropped, and looked at twice; and some more. */
	for (unsigned k = 0; k < 2; k++) {
		kept = k == 0 ? 0 : KILL_ONLY;
		for (turn = 0; turn < 180; turn++)
			in_child(one_call_fails);
	}
}

static void names_are_cut_where_there_is_no_room(void **state)
{
	char text[64], small[8];

	(void)state;
	caps_names(0, text, sizeof(text));
	assert_string_equal(text, "");
	caps_names(CAPS_BIT(CAP_KILL) | CAPS_BIT(CAP_SYS_ADMIN), text, sizeof(text));
	assert_non_null(strstr(text, "CAP_KILL"));
	assert_non_null(strstr(text, "CAP_SYS_ADMIN"));
	assert_non_null(strchr(text, ' '));
	caps_names(CAPS_BIT(CAP_KILL) | CAPS_BIT(CAP_SYS_ADMIN), small, sizeof(small));
	assert_int_equal(strlen(small), sizeof(small) - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeping_nothing_empties_all_five_sets),
		cmocka_unit_test(what_is_kept_is_kept_and_nothing_else),
		cmocka_unit_test(a_capability_that_one_has_not_cannot_be_kept),
		cmocka_unit_test(a_change_of_uid_between_the_halves_leaves_nothing_behind),
		cmocka_unit_test(the_lock_clears_ambient_and_holds),
		cmocka_unit_test(an_exec_as_uid_0_brings_nothing_back),
		cmocka_unit_test(a_call_that_says_yes_is_not_believed),
		cmocka_unit_test(whichever_call_fails_it_is_told),
		cmocka_unit_test(names_are_cut_where_there_is_no_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
