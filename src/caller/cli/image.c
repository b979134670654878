/* `glovebox image`: the store of images, from which requests pick by name.
 *
 *     build MANIFEST        Debian's packages
 *     import ARCHIVE NAME   what `docker save` writes, or an OCI layout
 *     list, verify, remove
 *
 * Exit statuses: 0; 1 when it could not be done or an image is damaged; 2 for wrong usage. */
#include "caller/cli/image.h"
#include "caller/cli/options.h"
#include "caller/cli/roles.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/quantity.h"

#include <errno.h>
#include <error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIZE_DEFAULT (UINT64_C(8) << 30) /* of a root; python:3 with its compilers is 1 GiB */
#define SIZE_MAX_    (UINT64_C(1) << 40)
#define ENTRIES_MAX  UINT64_C(1000000) /* what the memory of who reads it holds */

enum {
	OPTION_DIR = OPTION_VERB,
	OPTION_JSON,
	OPTION_SIZE,
	OPTION_INTERPRETER,
	OPTION_MAIN_FILE,
	OPTION_REPLACE,
	OPTION_TRUSTED,
	OPTION_TIMEOUT,
	OPTION_MEMORY,
	OPTION_CPU,
	OPTION_PIDS
};

static const struct {
	const char *name;
	int (*run)(struct image_command *c, struct fault *f);
	unsigned least, most; /* operands */
} actions[] = {
	{ "build", image_build, 1, 1 },
	{ "import", image_import, 2, 2 },
	{ "list", image_list, 0, 0 },
	{ "verify", image_verify, 0, IMAGE_OPERANDS_MAX },
	{ "remove", image_remove, 1, IMAGE_OPERANDS_MAX },
};

static void take_text(const struct argp_state *state, const char *option, const char *arg,
	char ret[static RUNTIME_PATH_MAX])
{
	if (strlen(arg) == 0 || strlen(arg) >= RUNTIME_PATH_MAX)
		options_refuse(
			state->name, "--%s: 1 to %d bytes fit", option, RUNTIME_PATH_MAX - 1);
	(void)snprintf(ret, RUNTIME_PATH_MAX, "%s", arg);
}

static void take_size(struct image_command *c, const struct argp_state *state, const char *arg)
{
	uint64_t n = 0;

	if (quantity_size(arg, &n) < 0 || n == 0 || n > SIZE_MAX_)
		options_refuse(
			state->name, "--max-size: \"%s\" is no size up to 1T, as 8G is", arg);
	c->ask.bytes_max = n;
}

static bool on_limit(struct run_limits *l, int key, const char *arg, const struct argp_state *state)
{
	if (key == OPTION_TIMEOUT)
		l->timeout_us = options_quantity(&option_timeout, arg, state);
	else if (key == OPTION_MEMORY)
		l->memory_bytes = options_quantity(&option_memory, arg, state);
	else if (key == OPTION_CPU)
		l->cpu_milli = (uint32_t)options_quantity(&option_cpu, arg, state);
	else if (key == OPTION_PIDS)
		l->pids = (uint32_t)options_quantity(&option_pids, arg, state);
	else
		return false;
	return true;
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	struct image_command *c = state->input;

	if (on_limit(&c->ask.wanted.limits, key, arg, state))
		return 0;
	if (key == OPTION_DIR)
		c->dir = arg;
	else if (key == OPTION_JSON)
		c->json = true;
	else if (key == OPTION_REPLACE)
		c->replace = true;
	else if (key == OPTION_TRUSTED)
		c->trusted = true;
	else if (key == OPTION_SIZE)
		take_size(c, state, arg);
	else if (key == OPTION_INTERPRETER)
		take_text(state, "interpreter", arg, c->ask.wanted.argv[0]);
	else if (key == OPTION_MAIN_FILE)
		take_text(state, "main-file", arg, c->ask.wanted.main_file);
	else if (key == ARGP_KEY_ARG && c->count == IMAGE_OPERANDS_MAX)
		options_refuse(state->name, "more than %d names", IMAGE_OPERANDS_MAX);
	else if (key == ARGP_KEY_ARG)
		c->operands[c->count++] = arg;
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static void parse(int argc, char **argv, struct image_command *c)
{
	static const struct argp_option options[] = {
		{ "image-dir", OPTION_DIR, "PATH", 0,
			"the store (default: $GLOVEBOX_IMAGE_DIR, or " STORE_DEFAULT ")", 0 },
		{ "json", OPTION_JSON, NULL, 0, "list: print JSON", 0 },
		{ "replace", OPTION_REPLACE, NULL, 0,
			"build, import: in the place of an image of that name", 0 },
		{ "max-size", OPTION_SIZE, "SIZE", 0,
			"build, import: most that it may take when it is unpacked (default: 8G)",
			0 },
		{ "interpreter", OPTION_INTERPRETER, "PATH", 0,
			"import: what runs programs (default: the image's python3, else its sh)",
			0 },
		{ "main-file", OPTION_MAIN_FILE, "NAME", 0,
			"import: with --interpreter, the name that a program's file gets", 0 },
		{ "trusted", OPTION_TRUSTED, NULL, 0,
			"import: a server may run its python3 outside of cells, as root, to keep "
			"it warm",
			0 },
		{ "timeout", OPTION_TIMEOUT, "SECONDS", 0,
			"build, import: time that a run in it has if it names none (default: as "
			"everywhere)",
			0 },
		{ "memory", OPTION_MEMORY, "MB", 0, "... and memory (512, 1.5G)", 0 },
		{ "cpu", OPTION_CPU, "CPUS", 0, "... and CPUs (0.5)", 0 },
		{ "pids", OPTION_PIDS, "N", 0, "... and processes and threads", 0 },
		{ 0 },
	};
	static const struct argp argp = {
		.options = options,
		.parser = on_option,
		.args_doc = "build MANIFEST\nimport ARCHIVE|DIRECTORY|- NAME\nlist\nverify "
			    "[NAME...]\nremove NAME...",
		.doc = "Keep read-only roots in which programs run: `glovebox run --image NAME'."
		       "\vA manifest is a YAML file, or the name of one that is shipped: "
		       "python-data. An archive is what `docker save' writes, or an OCI layout, as "
		       "a tar; a directory is an OCI layout.",
	};

	options_parse(&argp, argc, argv, c);
}

static size_t find_action(const char *verb, const struct image_command *c)
{
	for (size_t i = 0; c->count > 0 && i < ARRAY_LEN(actions); i++)
		if (strcmp(actions[i].name, c->operands[0]) == 0)
			return i;
	if (c->count > 0)
		options_refuse(verb,
			"image: \"%s\" is none of build, import, list, verify and remove",
			c->operands[0]);
	options_refuse(verb, "image: build, import, list, verify or remove?");
}

/* A program of one's own needs the name of the file that it runs. */
static void check_interpreter(const char *verb, struct image_start *wanted)
{
	if (!wanted->argv[0][0] != !wanted->main_file[0])
		options_refuse(verb, "--interpreter and --main-file go together");
	if (wanted->argv[0][0])
		memcpy(wanted->argv[1], wanted->main_file, sizeof(wanted->argv[1]));
}

int image_main(int argc, char **argv)
{
	static struct image_command c;
	const char *dir = getenv("GLOVEBOX_IMAGE_DIR");
	struct fault f = { 0 };
	size_t i;
	int r;

	c.dir = dir && *dir ? dir : STORE_DEFAULT;
	c.ask.bytes_max = SIZE_DEFAULT;
	c.ask.entries_max = ENTRIES_MAX;
	c.store.fd = -1;
	parse(argc, argv, &c);
	i = find_action(argv[0], &c);
	memmove(c.operands, c.operands + 1, sizeof(c.operands) - sizeof(c.operands[0]));
	c.count--;
	if (c.count < actions[i].least || c.count > actions[i].most)
		options_refuse(argv[0], "image %s takes %u%s name%s", actions[i].name,
			actions[i].least, actions[i].most > actions[i].least ? " or more" : "",
			actions[i].least == 1 ? "" : "s");
	check_interpreter(argv[0], &c.ask.wanted);
	if (geteuid() != 0) {
		error(0, 0, "images are root's: run this as root, for example with sudo");
		return EXIT_FAILURE;
	}
	r = actions[i].run(&c, &f);
	store_close(&c.store);
	if (r < 0)
		error(0, 0, "image %s: %s", actions[i].name, f.text);
	return r == 0 && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
