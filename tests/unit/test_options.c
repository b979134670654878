#include "unit.h"

#include "base/check.h"
#include "caller/cli/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct argp_option some[] = {
	{ "timeout", 1, "SECONDS", 0, "", 0 },
	{ "json", 2, NULL, 0, "", 0 },
	{ "insecure", 3, "true|false", OPTION_ARG_OPTIONAL, "", 0 },
	{ "config", 4, "FILE", 0, "", 0 },
	{ "config-check", 5, NULL, 0, "", 0 },
	{ 0 },
};
static const struct argp argp = { .options = some };

#define MAX_ARGS 8

/* What options_fault() says of a command line written as one text. */
static const char *fault_of(const char *line, char room[static OPTIONS_FAULT_MAX])
{
	static char copy[128];
	char *argv[MAX_ARGS + 1] = { NULL }, *next = copy;
	int argc = 0;

	(void)snprintf(copy, sizeof(copy), "%s", line);
	while (argc < MAX_ARGS && (argv[argc] = strsep(&next, " ")))
		argc++;
	return options_fault(&argp, argc, argv, room);
}

/* Where the program's own arguments begin. */
static void what_follows_the_first_operand_is_not_looked_at(void **state)
{
	static const struct {
		const char *line;
		int at;
	} rows[] = {
		{ "glovebox", 1 },
		{ "glovebox a.py", 1 },
		{ "glovebox - --timeout", 1 },
		{ "glovebox --json a.py --json", 2 },
		{ "glovebox --timeout 3 a.py b", 3 },
		{ "glovebox --timeout=3 a.py b", 2 },
		{ "glovebox --timeout a.py", 3 },
		{ "glovebox -- a.py --json", 2 },
		{ "glovebox --", 2 },
		{ "glovebox --json", 2 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char copy[128], *argv[MAX_ARGS + 1] = { NULL }, *next = copy;
		int argc = 0;

		(void)snprintf(copy, sizeof(copy), "%s", rows[i].line);
		while (argc < MAX_ARGS && (argv[argc] = strsep(&next, " ")))
			argc++;
		assert_int_equal(options_operand(&argp, argc, argv), rows[i].at);
	}
}

static void options_in_full_are_taken(void **state)
{
	static const char *const lines[] = { "glovebox", "glovebox a.py", "glovebox -",
		"glovebox --timeout 3 --json a.py", "glovebox --timeout=3", "glovebox --insecure",
		"glovebox --insecure=false", "glovebox --help", "glovebox --version", "glovebox -?",
		"glovebox --config x", "glovebox --config-check", "glovebox --timeout -1",
		"glovebox --timeout --json", "glovebox -- --jso" };
	char room[OPTIONS_FAULT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		if (fault_of(lines[i], room))
			fail_msg("%s: %s", lines[i], room);
}

static void anything_else_is_refused_by_name(void **state)
{
	static const char *const rows[][2] = {
		{ "glovebox --jso", "no option --jso; did you mean --json?" },
		{ "glovebox --time 3", "no option --time" },
		{ "glovebox --jsonn", "no option --jsonn" },
		{ "glovebox --json=1", "--json takes no value" },
		{ "glovebox --timeout", "--timeout needs a value: SECONDS" },
		{ "glovebox a.py --timeout", "--timeout needs a value" },
		{ "glovebox -j", "no option -j" },
		{ "glovebox -timeout", "no option -timeout" },
		{ "glovebox --=3", "no option --" },
		{ "glovebox --program-name=x", "no option --program-name" },
		{ "glovebox --HANG", "no option --HANG" },
	};
	char room[OPTIONS_FAULT_MAX];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const char *why = fault_of(rows[i][0], room);

		if (!why || !strstr(why, rows[i][1]))
			fail_msg("%s: %s", rows[i][0], why ? why : "is taken");
	}
}

/* getopt would take an abbreviation, which a later option can make ambiguous. None is
 * taken, so one option may be the beginning of another. */
static void no_abbreviation_of_any_setting_is_taken(void **state)
{
	const struct argp_option *all = options_settings();
	const struct argp settings = { .options = all };
	char room[OPTIONS_FAULT_MAX];
	size_t tried = 0;

	(void)state;
	for (const struct argp_option *o = all; o->name; o++) {
		for (size_t len = 1; len < strlen(o->name); len++) {
			char text[64], name[] = "glovebox";
			char *argv[] = { name, text, NULL };
			const struct argp_option *other = all;

			(void)snprintf(text, sizeof(text), "--%.*s", (int)len, o->name);
			while (other->name && strcmp(other->name, text + 2) != 0)
				other++;
			if (other->name)
				continue; /* in full the name of another: cpu, cgroup… */
			tried++;
			if (!options_fault(&settings, 2, argv, room))
				fail_msg("%s is taken for --%s", text, o->name);
		}
	}
	assert_true(tried > 100);
}

static void no_two_options_have_one_name(void **state)
{
	(void)state;
	for (const struct argp_option *a = options_settings(); a->name; a++)
		for (const struct argp_option *b = a + 1; b->name; b++)
			if (strcmp(a->name, b->name) == 0 || a->key == b->key)
				fail_msg("--%s and --%s", a->name, b->name);
}

static void records_keep_order_so_that_flags_win(void **state)
{
	struct records r = { 0 };
	struct argp_option pids = options_setting("pids"), open = options_setting("insecure");

	(void)state;
	assert_int_equal(setenv("GLOVEBOX_PIDS", "7", 1), 0);
	options_add_environment(&r);
	assert_int_equal(options_add_flag(&r, pids.key, "9"), 1);
	assert_int_equal(options_add_flag(&r, open.key, NULL), 1);
	assert_int_equal(options_add_flag(&r, 'x', "9"), 0);
	assert_int_equal(r.count, 3);
	assert_string_equal(records_list(&r)[0], "GLOVEBOX_PIDS=7");
	assert_string_equal(records_list(&r)[1], "--pids=9");
	assert_string_equal(records_list(&r)[2], "--insecure=true");
	assert_null(records_list(&r)[3]);
	records_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_in_full_are_taken),
		cmocka_unit_test(what_follows_the_first_operand_is_not_looked_at),
		cmocka_unit_test(anything_else_is_refused_by_name),
		cmocka_unit_test(no_abbreviation_of_any_setting_is_taken),
		cmocka_unit_test(no_two_options_have_one_name),
		cmocka_unit_test(records_keep_order_so_that_flags_win),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
