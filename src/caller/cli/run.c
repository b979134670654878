/* `glovebox run`: one program, its output as it comes, its exit status as our own.
 *
 * Exit statuses are the program's (0-255, 128+n for a signal), 124 for a timeout, 137 for
 * too much memory, 125 when Glovebox failed and the program did not run or was lost, and
 * 128+n when signal n asked us to end it. */
#include "caller/cli/options.h"
#include "caller/cli/roles.h"
#include "caller/cli/run_hint.h"
#include "caller/cli/run_inputs.h"
#include "caller/cli/run_out.h"

#include "base/check.h"
#include "base/io.h"
#include "base/own.h"
#include "base/quantity.h"
#include "wire/limits.h"

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <glovebox.h>
#include <jansson.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EXIT_GLOVEBOX 125
#define SIGNAL_BASE   128

enum {
	OPTION_CONFIG = OPTION_VERB,
	OPTION_TIMEOUT,
	OPTION_MEMORY,
	OPTION_CPU,
	OPTION_PIDS,
	OPTION_STDIN,
	OPTION_JSON,
	OPTION_FILE,
	OPTION_ENV,
	OPTION_LANGUAGE,
	OPTION_IMAGE,
	OPTION_RUNTIMES,
	OPTION_OUT,
	OPTION_RETURN_LAST,
	OPTION_FIGURES,
	OPTION_INTERLEAVED,
	OPTION_ENTRY_POINT,
	OPTION_OUTPUT_BYTES,
	OPTION_ALLOW_NETWORK,
	OPTION_NETWORK_ALLOW,
	OPTION_NETWORK_DENY
};

struct run {
	const char *config, *runtimes, *file, *input; /* borrowed from argv or the environment */
	bool json, figures;
	struct gbx_request request;
	struct run_inputs inputs;
	json_t *network; /* what it may reach; NULL: nothing */
	char *network_text;
	const char *out_dir; /* borrowed from argv; NULL: files are not wanted */
	struct run_out out;
	struct records records;
	char *code;
	int input_fd;
	atomic_bool reader_gone; /* nobody reads our stdout or stderr any more */
};

/* For the signal handler: what to cancel, and why we end. */
static struct gbx_session *_Atomic current;
static volatile sig_atomic_t ended_by;

static void on_signal(int number)
{
	struct gbx_session *s = atomic_load(&current);

	ended_by = number;
	if (s)
		gbx_cancel(s);
}

/* Signals that were ignored when we were started stay ignored (nohup). */
static void catch_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP };
	const struct sigaction ours = { .sa_handler = on_signal };
	struct sigaction old;

	for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
		if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			(void)sigaction(numbers[i], &ours, NULL);
}

static bool on_quantity(
	struct gbx_request *q, int key, const char *arg, const struct argp_state *state)
{
	static const struct quantity_option output_bytes = { "output-bytes", "65536, 64K or 1M",
		"1 to 16777215T", quantity_size, 1, SIZE_MAX };

	if (key == OPTION_TIMEOUT)
		q->timeout_us = options_quantity(&option_timeout, arg, state);
	else if (key == OPTION_MEMORY)
		q->memory_bytes = options_quantity(&option_memory, arg, state);
	else if (key == OPTION_CPU)
		q->cpu_milli = (uint32_t)options_quantity(&option_cpu, arg, state);
	else if (key == OPTION_PIDS)
		q->pids = (uint32_t)options_quantity(&option_pids, arg, state);
	else if (key == OPTION_OUTPUT_BYTES)
		q->output_bytes = options_quantity(&output_bytes, arg, state);
	else
		return false;
	return true;
}

static void check_files(const struct run *run, const struct argp_state *state)
{
	if (!run->file)
		options_refuse(state->name, "which program? Name a FILE, or - for standard input");
	if (run->input && strcmp(run->input, "-") == 0 && strcmp(run->file, "-") == 0)
		options_refuse(
			state->name, "standard input cannot be both the program and its input");
}

static void check_json(const struct run *run, const struct argp_state *state)
{
	const uint32_t answered = GBX_RETURN_LAST | GBX_INTERLEAVED;

	if (!run->json &&
		(run->figures || run->request.output_bytes || (run->request.flags & answered)))
		options_refuse(state->name,
			"--return-last, --figures, --interleaved and --output-bytes need --json: "
			"what they ask for is in that answer");
}

static void check_all(const struct run *run, const struct argp_state *state)
{
	if (run->request.language && run->request.image)
		options_refuse(state->name, "an image has its own interpreter: give --language or "
					    "--image, not both");
	check_files(run, state);
	check_json(run, state);
}

static void take_input(struct run *run, int key, const char *arg)
{
	if ((key == OPTION_FILE ? run_inputs_file(&run->inputs, arg)
				: run_inputs_env(&run->inputs, arg)) < 0)
		exit(EXIT_GLOVEBOX); /* it has said why */
}

/* The request names it, so that the answer does; the setting has the cells of this session made
 * of it, which says more of an image that cannot be used than a list of those that can. */
static void take_image(struct run *run, const char *name)
{
	run->request.image = name;
	records_add(&run->records, "--", "image", name);
}

/* As the API has it; `rule` NULL: only that there is one. */
static void take_network(struct run *run, const char *list, const char *rule)
{
	json_t *rules;
	int r = 0;

	if (!run->network)
		run->network = json_object();
	if (rule && !json_object_get(run->network, list))
		r = json_object_set_new(run->network, list, json_array());
	rules = json_object_get(run->network, list);
	if (rule && r == 0)
		r = json_array_append_new(rules, json_string(rule));
	if (!run->network || r < 0)
		error(EXIT_GLOVEBOX, 0, "%s: it is no UTF-8, or there is no memory",
			rule ? rule : "network");
}

static bool on_network(struct run *run, int key, const char *arg)
{
	if (key != OPTION_ALLOW_NETWORK && key != OPTION_NETWORK_ALLOW &&
		key != OPTION_NETWORK_DENY)
		return false;
	take_network(run, key == OPTION_NETWORK_DENY ? "deny" : "allow", arg);
	return true;
}

/* A run without one is not kept waiting for what only one with a network needs. */
static void choose_network(struct run *run)
{
	if (!run->network) {
		records_add(&run->records, "--", "network", "off");
		return;
	}
	run->network_text = json_dumps(run->network, JSON_COMPACT);
	if (!run->network_text)
		error(EXIT_GLOVEBOX, 0, "out of memory");
	run->request.network = run->network_text;
}

static void take_figures(struct run *run, const char *arg, const struct argp_state *state)
{
	static const struct {
		const char *word;
		uint32_t flags;
	} words[] = { { "png", 0 }, { "svg", GBX_SVG | GBX_NO_PNG }, { "both", GBX_SVG },
		{ "none", GBX_NO_PNG } };

	run->figures = true;
	run->request.flags &= ~(uint32_t)(GBX_SVG | GBX_NO_PNG);
	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strcmp(arg, words[i].word) == 0) {
			run->request.flags |= words[i].flags;
			return;
		}
	}
	options_refuse(state->name, "--figures: \"%s\" is none of png, svg, both, none", arg);
}

/* What is only kept. */
static bool on_name(struct run *run, int key, const char *arg)
{
	if (key == OPTION_CONFIG)
		run->config = arg;
	else if (key == OPTION_STDIN)
		run->input = arg;
	else if (key == OPTION_LANGUAGE)
		run->request.language = arg;
	else if (key == OPTION_RUNTIMES)
		run->runtimes = arg;
	else if (key == OPTION_OUT)
		run->out_dir = arg;
	else if (key == OPTION_ENTRY_POINT)
		run->request.entry_point = arg;
	else if (key == ARGP_KEY_ARG)
		run->file = arg;
	else
		return false;
	return true;
}

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	struct run *run = state->input;

	if (options_add_flag(&run->records, key, arg) ||
		on_quantity(&run->request, key, arg, state) || on_name(run, key, arg) ||
		on_network(run, key, arg))
		return 0;
	if (key == OPTION_IMAGE)
		take_image(run, arg);
	else if (key == OPTION_JSON)
		run->json = true;
	else if (key == OPTION_RETURN_LAST)
		run->request.flags |= GBX_RETURN_LAST;
	else if (key == OPTION_INTERLEAVED)
		run->request.flags |= GBX_INTERLEAVED;
	else if (key == OPTION_FIGURES)
		take_figures(run, arg, state);
	else if (key == OPTION_FILE || key == OPTION_ENV)
		take_input(run, key, arg);
	else if (key == ARGP_KEY_END)
		check_all(run, state);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static void parse(int argc, char **argv, struct run *run)
{
	static struct argp_option options[] = {
		{ "language", OPTION_LANGUAGE, "NAME", 0,
			"what the program is written in (default: python)", 0 },
		{ "image", OPTION_IMAGE, "NAME", 0,
			"run it in this image of the store, by the image's own interpreter", 0 },
		{ "runtimes", OPTION_RUNTIMES, "DIR", 0, "folder of further languages", 0 },
		{ "timeout", OPTION_TIMEOUT, "SECONDS", 0,
			"end the program after that much time (1.5, 200ms, 2m)", 0 },
		{ "memory", OPTION_MEMORY, "MB", 0, "memory that it may use (64, 1.5G)", 0 },
		{ "cpu", OPTION_CPU, "CPUS", 0, "CPUs that it may use (0.5)", 0 },
		{ "pids", OPTION_PIDS, "N", 0, "processes and threads that it may have", 0 },
		{ "stdin", OPTION_STDIN, "FILE", 0,
			"its standard input; - for our own (default: none)", 0 },
		{ "file", OPTION_FILE, "PATH[=NAME]", 0,
			"a file that lies in its working directory, as NAME; again for more", 0 },
		{ "entry-point", OPTION_ENTRY_POINT, "NAME", 0,
			"where FILE lies in its working directory, and what it is called there "
			"(default: as its language has it, main.py)",
			0 },
		{ "env", OPTION_ENV, "NAME=VALUE", 0,
			"a variable of its environment; again for more", 0 },
		{ "out", OPTION_OUT, "DIR", 0,
			"write the files that it leaves there, which is made if it is missing", 0 },
		{ "json", OPTION_JSON, NULL, 0,
			"print the answer that POST /execute would give, instead of the output",
			0 },
		{ "return-last", OPTION_RETURN_LAST, NULL, 0,
			"with --json: the value of the program's last statement too", 0 },
		{ "figures", OPTION_FIGURES, "FORMAT", 0,
			"with --json: matplotlib's figures as png (default), svg, both or none",
			0 },
		{ "interleaved", OPTION_INTERLEAVED, NULL, 0,
			"with --json: both streams also as one list of timed chunks", 0 },
		{ "output-bytes", OPTION_OUTPUT_BYTES, "SIZE", 0,
			"with --json: most that it has of each output stream (1M)", 0 },
		{ "allow-network", OPTION_ALLOW_NETWORK, NULL, 0,
			"let it reach the public internet", 0 },
		{ "network-allow", OPTION_NETWORK_ALLOW, "RULE", 0,
			"let it reach that and nothing else: example.org, *.example.org:443, "
			"203.0.113.0/24; again for more",
			0 },
		{ "network-deny", OPTION_NETWORK_DENY, "RULE", 0,
			"let it reach all but that; again for more", 0 },
		{ "config", OPTION_CONFIG, "FILE", 0, "YAML file of settings", 0 },
		{ 0 }, /* cgroup */
		{ 0 }, /* allow-degraded */
		{ 0 }, /* image-dir */
		{ 0 },
	};
	static const struct argp argp = {
		.options = options,
		.parser = on_option,
		.args_doc = "FILE|- [ARGS...]",
		.doc = "Run one program in a cage, without a server. What follows FILE is "
		       "the program's own."
		       "\vThe program's output and exit status become this command's own: 124 "
		       "when its time was up, 137 when it used too much memory, 125 when "
		       "Glovebox failed.",
	};

	int at;

	options[21] = options_setting("cgroup");
	options[22] = options_setting("allow-degraded");
	options[23] = options_setting("image-dir");
	at = options_operand(&argp, argc, argv);
	if (at + 1 < argc) {
		run->request.args = (const char *const *)(argv + at + 1);
		argc = at + 1;
	}
	options_parse(&argp, argc, argv, run);
}

static int read_code(struct run *run)
{
	cleanup_fd int opened = -1;
	cleanup_free char *code = malloc(CODE_BYTES_MAX + 1);
	bool own = strcmp(run->file, "-") == 0;
	ssize_t n;

	if (!own)
		opened = open(run->file, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (!own && opened < 0) {
		error(0, errno, "%s", run->file);
		return -1;
	}
	n = code ? io_read_all(own ? STDIN_FILENO : opened, code, CODE_BYTES_MAX + 1) : -ENOMEM;
	if (n < 0) {
		error(0, (int)-n, "%s", run->file);
		return -1;
	}
	if ((size_t)n > CODE_BYTES_MAX) {
		error(0, 0, "%s: is larger than any program may be", run->file);
		return -1;
	}
	if (run->request.entry_point) {
		if (run_inputs_entry(&run->inputs, run->request.entry_point, code, (size_t)n) < 0)
			return -1;
		code = NULL;
		return 0;
	}
	run->code = take_ptr(code);
	run->request.code = run->code;
	run->request.code_len = (size_t)n;
	return 0;
}

static int open_input(struct run *run)
{
	if (!run->input)
		return 0;
	run->request.flags |= GBX_INPUT_FD;
	if (strcmp(run->input, "-") == 0) {
		run->request.input_fd = STDIN_FILENO;
		return 0;
	}
	run->input_fd = open(run->input, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (run->input_fd < 0) {
		error(0, errno, "%s", run->input);
		return -1;
	}
	run->request.input_fd = run->input_fd;
	return 0;
}

/* Write all of it, also to a terminal or pipe that somebody made non-blocking. */
static int put(int fd, const char *bytes, size_t len)
{
	struct pollfd room = { .fd = fd, .events = POLLOUT };

	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EAGAIN)
			(void)poll(&room, 1, -1);
		else if (n < 0 && errno != EINTR)
			return -errno;
		if (n > 0) {
			bytes += n;
			len -= (size_t)n;
		}
	}
	return 0;
}

static void on_output(void *context, int stream, const void *bytes, size_t len)
{
	struct run *run = context;

	if (atomic_load(&run->reader_gone))
		return;
	if (put(stream == GBX_STDOUT ? STDOUT_FILENO : STDERR_FILENO, bytes, len) < 0) {
		/* As for any command in front of `head`: no reader, no reason to go on. */
		atomic_store(&run->reader_gone, true);
		gbx_cancel(atomic_load(&current));
	}
}

/* Not where nobody reads, and not instead of the answer as JSON, which has it. */
static void say_hint(const struct run *run, const struct gbx_result *result)
{
	cleanup_free char *line = NULL;

	if (run->json || atomic_load(&run->reader_gone))
		return;
	line = run_hint_make(run->file, &run->request, result);
	if (line)
		(void)put(STDERR_FILENO, line, strlen(line));
}

static int on_artifact(void *context, int event, const struct gbx_artifact *artifact,
	const void *bytes, size_t len)
{
	struct run *run = context;

	run_out_take(&run->out, event, artifact, bytes, len);
	return 0;
}

static int execute(struct run *run, struct gbx_session *session, struct gbx_error *why)
{
	CLEANUP(gbx_result_clear) struct gbx_result result = { .size = sizeof(result) };
	int status;

	if (gbx_run(session, &run->request, &result, why) < 0)
		return EXIT_GLOVEBOX;
	status = result.exit_code;
	say_hint(run, &result);
	if (run->out_dir && run_out_end(&run->out, &result) < 0)
		status = EXIT_GLOVEBOX;
	if (run->json && (put(STDOUT_FILENO, result.json, strlen(result.json)) < 0 ||
				 put(STDOUT_FILENO, "\n", 1) < 0))
		atomic_store(&run->reader_gone, true);
	if (atomic_load(&run->reader_gone))
		status = SIGNAL_BASE + SIGPIPE;
	return status;
}

static int run_program(struct run *run)
{
	const struct gbx_options options = {
		.size = sizeof(options),
		.program = "/proc/self/exe",
		.config = run->config,
		.settings = records_list(&run->records),
		.runtimes = run->runtimes,
	};
	struct gbx_session *session = NULL;
	struct gbx_error why = { 0 };
	int status = EXIT_GLOVEBOX;

	catch_signals();
	if (gbx_open(&options, &session, &why) == 0) {
		atomic_store(&current, session);
		if (ended_by) /* came before there was anything to cancel */
			gbx_cancel(session);
		status = execute(run, session, &why);
		atomic_store(&current, NULL);
		gbx_close(session);
	}
	if (ended_by)
		return SIGNAL_BASE + ended_by;
	if (why.code != 0)
		run_inputs_say(&run->inputs, why.text);
	return status;
}

static void run_done(struct run *run)
{
	free(run->code);
	json_decref(run->network);
	free(run->network_text);
	run_inputs_done(&run->inputs);
	run_out_close(&run->out);
	if (run->input_fd >= 0)
		(void)close(run->input_fd);
	records_done(&run->records);
}

int run_main(int argc, char **argv)
{
	CLEANUP(run_done)
	struct run run = {
		.config = options_config_file(),
		.runtimes = getenv(RUNTIMES_VARIABLE),
		.request = { .size = sizeof(run.request), .on_output = on_output },
		.input_fd = -1,
		.out = RUN_OUT_NONE,
	};

	options_add_environment(&run.records);
	parse(argc, argv, &run);
	choose_network(&run);
	run.request.context = &run;
	if (run.json) {
		run.request.flags |= GBX_WANT_JSON;
		run.request.on_output = NULL;
	} else {
		run.request.flags |= GBX_NO_CAPTURE;
	}
	if (run.out_dir) {
		run.request.on_artifact = on_artifact;
		run.out.quiet = run.json;
		if (run_out_open(&run.out, run.out_dir) < 0)
			return EXIT_GLOVEBOX;
	}
	if (read_code(&run) < 0 || open_input(&run) < 0)
		return EXIT_GLOVEBOX;
	run_inputs_lend(&run.inputs, &run.request);
	return run_program(&run);
}
