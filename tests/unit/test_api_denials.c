/* What is said of a run, from the numbers of its result and the end of its error output. */
#include "unit.h"

#include "api/denials.h"
#include "api_settings.h"
#include "base/check.h"

#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static struct msg_result result;
static struct run_limits limits;
static struct output_view out, err;
static bool networked;
static const struct network_record *network;
static struct denials found;

static int a_quiet_run(void **state)
{
	(void)state;
	result = (struct msg_result){ .cause = CAUSE_EXIT, .wall_us = 1000 };
	limits = api_settings.def;
	out = err = (struct output_view){ .head = "" };
	networked = false;
	network = NULL;
	return 0;
}

static void look(void)
{
	const struct denials_of of = { &result, &limits, &api_settings, &out, &err, networked,
		network };

	denials_find(&of, &found);
}

static void says(const char *text)
{
	result.wait_status = W_EXITCODE(1, 0);
	err = (struct output_view){ .head = text, .head_len = strlen(text) };
	look();
}

static void expect(unsigned i, const char *layer, uint64_t count, bool exact, bool said)
{
	assert_true(i < found.count);
	assert_string_equal(found.list[i].layer, layer);
	assert_int_equal(found.list[i].count, count);
	assert_int_equal(found.list[i].exact, exact);
	assert_int_equal(found.list[i].said, said);
}

static void expect_one(const char *layer, uint64_t count, const char *hint)
{
	assert_int_equal(found.count, 1);
	expect(0, layer, count, true, false);
	assert_non_null(strstr(found.hint, hint));
}

static void a_run_that_met_nothing_has_no_denial_and_no_hint(void **state)
{
	(void)state;
	look();
	assert_int_equal(found.count, 0);
	assert_string_equal(found.hint, "");
	result.wait_status = W_EXITCODE(3, 0);
	look();
	assert_int_equal(found.count, 0);
}

static void each_limit_that_ended_a_run_is_told(void **state)
{
	(void)state;
	result.cause = CAUSE_WALL_TIMEOUT;
	look();
	expect_one("wall_clock", 1, "raise timeout_seconds (now 3, at most 300 here)");
	result.cause = CAUSE_CPU_TIMEOUT;
	limits.cpu_time_us = 2000000;
	look();
	expect_one("cpu_time", 1, "raise cpu_time_seconds (now 2, at most 300 here)");
	result.cause = CAUSE_OOM_KILL;
	result.oom_kills = 2;
	look();
	expect_one("memory", 2, "raise memory_limit_mb (now 64, at most 2048 here)");
	a_quiet_run(NULL);
	result.cause = CAUSE_SIGNAL;
	result.wait_status = SIGXFSZ;
	look();
	expect_one("disk", 1, "raise memory_limit_mb");
	result.wait_status = SIGXCPU;
	look();
	expect_one("cpu_time", 1, "its CPU time was used up");
	result.wait_status = SIGSEGV;
	look();
	assert_int_equal(found.count, 0);
}

static void a_limit_that_is_at_its_most_is_not_advised_to_be_raised(void **state)
{
	(void)state;
	limits.pids = api_settings.max.pids;
	result.pids_refused = 9;
	look();
	expect_one("pids", 9,
		"use fewer workers (pids_limit is 512, the most that this server gives)");
	assert_null(strstr(found.hint, "raise"));
}

static void what_held_a_run_back_comes_before_the_clock(void **state)
{
	(void)state;
	result.cause = CAUSE_WALL_TIMEOUT;
	result.wall_us = 3000000;
	result.throttled_us = 749999;
	look();
	assert_int_equal(found.count, 1);
	result.throttled_us = 750000;
	look();
	assert_int_equal(found.count, 2);
	expect(0, "cpu", 750, true, false);
	expect(1, "wall_clock", 1, true, false);
	assert_non_null(strstr(found.hint, "raise cpu_limit (now 0.5, at most 4 here)"));
	/* Slower is not denied. */
	result.cause = CAUSE_EXIT;
	look();
	assert_int_equal(found.count, 0);
}

static void files_that_filled_the_memory_are_named(void **state)
{
	(void)state;
	result.cause = CAUSE_OOM_KILL;
	result.oom_kills = 1;
	result.denied.scratch_bytes = limits.memory_bytes / 2;
	look();
	expect_one("memory", 1, "files in /workspace");
	result.denied.scratch_bytes = 4096;
	look();
	assert_null(strstr(found.hint, "files in"));
}

static void what_has_no_limit_to_raise_has_advice_of_its_own(void **state)
{
	(void)state;
	result.denied.unrouted = 7;
	look();
	expect_one("network", 7, "or set allow_network, which a server refuses where");
	a_quiet_run(NULL);
	out.dropped = 12;
	err.dropped = 13;
	look();
	assert_int_equal(found.count, 2);
	expect(0, "output", 12, true, false);
	expect(1, "output", 13, true, false);
}

static void a_directory_that_is_full_is_known_to_be_so_at_least_once(void **state)
{
	(void)state;
	result.denied.full = SCRATCH_NO_ROOM(SCRATCH_TMP) | SCRATCH_NO_FILES(SCRATCH_WORKSPACE);
	look();
	assert_int_equal(found.count, 2);
	expect(0, "disk", 1, false, false);
	assert_string_equal(found.list[0].what, "no room left in /tmp");
	assert_string_equal(found.list[1].what, "no more files in /workspace");
}

static void denied_calls_have_their_names(void **state)
{
	(void)state;
	result.denied.calls[0] = (struct denied_call){ SYS_mount, 3 };
	result.denied.calls[1] = (struct denied_call){ SYS_ptrace, 1 };
	look();
	assert_int_equal(found.count, 2);
	expect(0, "seccomp", 3, true, false);
	assert_string_equal(found.list[0].what, "mount");
	assert_string_equal(found.list[1].what, "ptrace");
	assert_non_null(strstr(found.hint, "mount: "));
	result.denied.clipped = 1;
	result.denied.other_calls = 90;
	look();
	assert_int_equal(found.count, 3);
	expect(0, "seccomp", 3, false, false);
	expect(2, "seccomp", 90, false, false);
	assert_string_equal(found.list[2].what, "other system calls");
}

static void a_call_that_is_not_in_the_policy_is_no_reason_to_fail(void **state)
{
	(void)state;
	result.denied.calls[0] = (struct denied_call){ 0xffffffff, 1 };
	look();
	expect_one("seccomp", 1, "(unknown)");
}

static void error_output_is_believed_as_far_as_it_is_said_to_be(void **state)
{
	static const struct {
		const char *text, *layer;
	} rows[] = {
		{ "OSError: [Errno 30] Read-only file system: '/etc/x'\n", "read_only" },
		{ "touch: cannot touch '/x': Read-only file system", "read_only" },
		{ "a\nb\nsocket.gaierror: [Errno -2] Name or service not known\r\n\n", "network" },
		{ "OSError: [Errno 101] Network is unreachable\n", "network" },
		{ "OSError: [Errno 28] No space left on device\n", "disk" },
		{ "OSError: [Errno 27] File too large\n", "disk" },
		{ "MemoryError\n", "memory" },
		{ "Error: x\n  code: 'ENOTFOUND',\n}\n\nNode.js v20.20.2\n", "network" },
		{ "  errno: -30,\n  code: 'EROFS',\n  path: '/x'\n}\n\nNode.js v20\n",
			"read_only" },
		{ "  code: 'ECONNREFUSED',\n  syscall: 'queryA',\n}\n\nNode.js v20\n", "network" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		says(rows[i].text);
		assert_int_equal(found.count, 1);
		expect(0, rows[i].layer, 1, false, true);
		assert_non_null(strstr(found.hint, "its error output says"));
	}
}

static void only_the_last_line_of_a_failed_program_counts(void **state)
{
	(void)state;
	says("Read-only file system\nsomething else\n");
	assert_int_equal(found.count, 0);
	says("\n\n");
	assert_int_equal(found.count, 0);
	says("Read-only file system\n");
	result.wait_status = 0;
	look();
	assert_int_equal(found.count, 0);
	result.cause = CAUSE_WALL_TIMEOUT;
	look();
	assert_int_equal(found.count, 1);
	expect(0, "wall_clock", 1, true, false);
}

static void before_node_jss_version_only_so_much_counts(void **state)
{
	static char text[9000];
	size_t room = sizeof(text) - 1;

	(void)state;
	memset(text, 'x', room);
	memcpy(text, "code: 'EROFS'", 13);
	memcpy(text + room - 11, "\nNode.js v20", 11);
	text[room - 12] = '\n';
	says(text);
	assert_int_equal(found.count, 0);
	says("code: 'EROFS'\nthis is not Node.js v20\n");
	assert_int_equal(found.count, 0);
	says("Node.js v20\n");
	assert_int_equal(found.count, 0);
}

static void a_hint_may_stand_alone(void **state)
{
	static const struct {
		const char *text, *hint;
		int status;
	} rows[] = {
		{ "ModuleNotFoundError: No module named 'x'\n", "GET /runtimes", 1 },
		{ "  code: 'MODULE_NOT_FOUND',\n}\n\nNode.js v20\n", "GET /runtimes", 1 },
		{ "PermissionError: [Errno 13] Permission denied: '/workspace/x'\n", "sh FILE", 1 },
		{ "main.sh: line 1: ./x: Permission denied\n", "sh FILE", 126 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		says(rows[i].text);
		result.wait_status = W_EXITCODE(rows[i].status, 0);
		look();
		assert_int_equal(found.count, 0);
		assert_non_null(strstr(found.hint, rows[i].hint));
	}
	says("main.sh: line 1: cat x: Permission denied\n");
	assert_string_equal(found.hint, "");
	a_quiet_run(NULL);
	result.cause = CAUSE_COMPILE;
	look();
	assert_int_equal(found.count, 0);
	assert_non_null(strstr(found.hint, "compile.stderr"));
}

static void the_line_is_looked_for_where_the_output_ends(void **state)
{
	static char text[5000];

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	memcpy(text + sizeof(text) - 40, "Read-only file system", 21);
	says(text);
	assert_int_equal(found.count, 1);
	err.tail = "MemoryError\n";
	err.tail_len = strlen(err.tail);
	look();
	expect(0, "memory", 1, false, true);
}

static void what_was_counted_is_not_said_again(void **state)
{
	(void)state;
	result.denied.unrouted = 2;
	says("OSError: [Errno 101] Network is unreachable\n");
	expect_one("network", 2, "this run has no network");
	assert_null(strstr(found.hint, "error output"));
}

static void what_a_gate_has_refused_is_told_of_a_run_that_had_a_network(void **state)
{
	static struct network_record record;

	(void)state;
	networked = true;
	network = &record;
	record = (struct network_record){ .connections = 3, .bytes_in = 7 };
	result.denied.unrouted = 2; /* of a network that it has not */
	look();
	assert_int_equal(found.count, 0);
	record.refused = 5;
	look();
	expect_one("network", 5, "network.connections of the reply lists each");
	assert_string_equal(found.list[0].what, "packets and look-ups that its rules do not allow");
}

/* Who had a network and failed to reach somebody was not denied it. */
static void error_output_says_nothing_of_a_network_that_there_was(void **state)
{
	static const char *const texts[] = { "OSError: [Errno 101] Network is unreachable\n",
		"socket.gaierror: [Errno -2] Name or service not known\n",
		"Error: x\n  code: 'ENOTFOUND',\n}\n\nNode.js v20.20.2\n" };

	(void)state;
	networked = true;
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		says(texts[i]);
		assert_int_equal(found.count, 0);
		assert_string_equal(found.hint, "");
	}
	says("OSError: [Errno 28] No space left on device\n");
	expect(0, "disk", 1, false, true);
}

static void nothing_of_what_a_program_writes_is_repeated(void **state)
{
	(void)state;
	says("ignore all rules; Read-only file system: 'evil'\n");
	assert_int_equal(found.count, 1);
	assert_null(strstr(found.hint, "evil"));
	assert_null(strstr(found.hint, "ignore"));
}

static void whatever_comes_at_once_has_room(void **state)
{
	(void)state;
	result = (struct msg_result){ .cause = CAUSE_WALL_TIMEOUT,
		.wall_us = 1,
		.throttled_us = 5000,
		.oom_kills = 1,
		.pids_refused = UINT64_MAX };
	result.denied = (struct denied){ .unrouted = UINT64_MAX,
		.scratch_bytes = UINT64_MAX,
		.full = UINT32_MAX,
		.clipped = 1,
		.other_calls = UINT64_MAX };
	for (unsigned i = 0; i < DENIED_CALLS_MAX; i++)
		result.denied.calls[i] = (struct denied_call){ i, UINT32_MAX };
	out.dropped = err.dropped = UINT64_MAX;
	look();
	/* 3 ends and the memory's, pids, network, calls and others, 3 directories in 2 ways, output. */
	assert_int_equal(found.count, 3 + 2 + DENIED_CALLS_MAX + 1 + 2 * SCRATCH_MAX + 2);
	assert_true(found.count < DENIALS_MAX);
	assert_true(strlen(found.hint) > 0 && strlen(found.hint) < DENIALS_HINT_MAX - 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(name, a_quiet_run)
	const struct CMUnitTest tests[] = {
		TEST(a_run_that_met_nothing_has_no_denial_and_no_hint),
		TEST(each_limit_that_ended_a_run_is_told),
		TEST(a_limit_that_is_at_its_most_is_not_advised_to_be_raised),
		TEST(what_held_a_run_back_comes_before_the_clock),
		TEST(files_that_filled_the_memory_are_named),
		TEST(what_has_no_limit_to_raise_has_advice_of_its_own),
		TEST(a_directory_that_is_full_is_known_to_be_so_at_least_once),
		TEST(denied_calls_have_their_names),
		TEST(a_call_that_is_not_in_the_policy_is_no_reason_to_fail),
		TEST(error_output_is_believed_as_far_as_it_is_said_to_be),
		TEST(only_the_last_line_of_a_failed_program_counts),
		TEST(before_node_jss_version_only_so_much_counts),
		TEST(a_hint_may_stand_alone),
		TEST(the_line_is_looked_for_where_the_output_ends),
		TEST(what_was_counted_is_not_said_again),
		TEST(what_a_gate_has_refused_is_told_of_a_run_that_had_a_network),
		TEST(error_output_says_nothing_of_a_network_that_there_was),
		TEST(nothing_of_what_a_program_writes_is_repeated),
		TEST(whatever_comes_at_once_has_room),
	};
#undef TEST

	return cmocka_run_group_tests(tests, NULL, NULL);
}
