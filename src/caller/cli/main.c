/* The one program: verbs for people, roles for itself.
 *
 * A person types `glovebox VERB`. Every privileged or confined part of Glovebox is this
 * same file started again with "@ROLE" as its only argument, by execve(), so that no part
 * inherits another's memory; main() hands such a process over before anything else. */
#include "caller/cli/roles.h"

#include "base/check.h"

#include <argp.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXIT_USAGE   2
#define ROLE_CHANNEL 3

static const struct {
	const char *name;
	int (*main)(void);
} roles[] = {
	{ "@supervisor", role_supervisor },
	{ "@keeper", role_keeper },
	{ "@front", role_front },
	{ "@config", role_config },
	{ "@probe", role_probe },
};

static const struct {
	const char *name; /* as usage and messages begin */
	int (*main)(int argc, char **argv);
	const char *help;
	int usage_status;
} verbs[] = {
	{ "glovebox serve", serve_main, "answer POST /execute over HTTP", EXIT_USAGE },
	/* 125 as env(1) and timeout(1): the command's own failure, not the program's. */
	{ "glovebox run", run_main, "run one program here and now, without a server", 125 },
	{ "glovebox doctor", doctor_main, "tell which layers of the cage this host can give",
		EXIT_USAGE },
	{ "glovebox image", image_main, "keep read-only roots of their own for programs",
		EXIT_USAGE },
	{ "glovebox selftest", selftest_main, "try to break out of cells of this installation",
		125 },
};

static const char *verb_word(size_t i)
{
	return strchr(verbs[i].name, ' ') + 1;
}

static void print_verbs(FILE *to)
{
	for (size_t i = 0; i < ARRAY_LEN(verbs); i++)
		(void)fprintf(to, "  %-8s %s\n", verb_word(i), verbs[i].help);
}

static void print_help(FILE *to)
{
	(void)fputs("Usage: glovebox VERB [OPTION...]\n"
		    "Run untrusted programs in a cage of kernel mechanisms.\n\n",
		to);
	print_verbs(to);
	(void)fputs("\n`glovebox VERB --help' tells more about each; glovebox(1) tells all.\n"
		    "  -V, --version   print the version\n"
		    "  -h, --help      print this\n",
		to);
}

static bool is_one_of(const char *arg, const char *const *list)
{
	while (*list && strcmp(arg, *list) != 0)
		list++;
	return *list != NULL;
}

static int dispatch(int argc, char **argv)
{
	char name[32], help[] = "--help";

	for (size_t i = 0; i < ARRAY_LEN(verbs); i++) {
		if (strcmp(argv[1], verb_word(i)) != 0)
			continue;
		argp_err_exit_status = verbs[i].usage_status;
		(void)snprintf(name, sizeof(name), "%s", verbs[i].name);
		argv[1] = name;
		/* argp has -? only; as a verb's first word, as it is typed, -h means nothing else. */
		if (argc > 2 && strcmp(argv[2], "-h") == 0)
			argv[2] = help;
		return verbs[i].main(argc - 1, argv + 1);
	}
	(void)fprintf(stderr, "glovebox: \"%s\" is no verb; there are:\n", argv[1]);
	print_verbs(stderr);
	return EXIT_USAGE;
}

static void print_version(FILE *to, struct argp_state *state)
{
	(void)state;
	(void)fprintf(to, "glovebox %s\n", GLOVEBOX_VERSION);
}

/* error() otherwise names the path that was typed. */
static void print_name(void)
{
	(void)fflush(stdout);
	(void)fputs("glovebox: ", stderr);
}

int main(int argc, char **argv)
{
	static const char *const help[] = { "--help", "-h", "-?", "help", NULL };
	static const char *const version[] = { "--version", "-V", "version", NULL };

	/* A role finds its channel at 3. Without one a person typed it, and is told so below. */
	if (argc == 2 && argv[1][0] == '@' && fcntl(ROLE_CHANNEL, F_GETFD) >= 0)
		for (size_t i = 0; i < ARRAY_LEN(roles); i++)
			if (strcmp(argv[1], roles[i].name) == 0)
				return roles[i].main();

	argp_program_version_hook = print_version;
	error_print_progname = print_name;
	if (argc < 2) {
		print_help(stderr);
		return EXIT_USAGE;
	}
	if (is_one_of(argv[1], help)) {
		print_help(stdout);
	} else if (is_one_of(argv[1], version)) {
		print_version(stdout, NULL);
	} else {
		return dispatch(argc, argv);
	}
	return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
