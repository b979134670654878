/* `glovebox doctor`: the layers of the cage on this host, as a table or as JSON. */
#include "caller/cli/options.h"
#include "caller/cli/roles.h"

#include "base/own.h"

#include <error.h>
#include <glovebox.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
	OPTION_CONFIG = OPTION_VERB,
	OPTION_JSON
};

#define NAME_WIDTH 19 /* the longest layer's word and two spaces */

struct doctor {
	const char *config;
	bool json;
	struct records records;
	json_t *layers, *advice; /* only with --json */
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	struct doctor *d = state->input;

	if (options_add_flag(&d->records, key, arg))
		return 0;
	if (key == OPTION_CONFIG)
		d->config = arg;
	else if (key == OPTION_JSON)
		d->json = true;
	else if (key == ARGP_KEY_ARG)
		options_refuse(state->name, "\"%s\": doctor takes options only", arg);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static void parse(int argc, char **argv, struct doctor *d)
{
	static struct argp_option options[] = {
		{ "json", OPTION_JSON, NULL, 0, "print JSON", 0 },
		{ "config", OPTION_CONFIG, "FILE", 0, "YAML file of settings", 0 },
		{ 0 }, /* cgroup */
		{ 0 }, /* allow-degraded */
		{ 0 },
	};
	static const struct argp argp = {
		.options = options,
		.parser = on_option,
		.doc = "Tell which layers of the cage are in force on this host, what is lost "
		       "without those that are not, and how to get them."
		       "\vThe exit status is 0 when `glovebox serve' would start, else 1.",
	};

	options[2] = options_setting("cgroup");
	options[3] = options_setting("allow-degraded");
	options_parse(&argp, argc, argv, d);
}

/* A text below the table's first column, if there is one. */
static void print_line(const char *label, const char *text)
{
	if (text && *text)
		(void)printf("%-*s%s%s\n", NAME_WIDTH, "", label, text);
}

static void on_row(void *context, const struct gbx_layer *layer)
{
	(void)context;
	if (!layer->name) {
		(void)printf("%-*s%s\n", NAME_WIDTH, "advice", layer->why);
		return;
	}
	(void)printf("%-*s%s\n", NAME_WIDTH, layer->name,
		!layer->tried     ? "not tried"
		: layer->in_force ? "in force"
				  : "MISSING");
	if (layer->in_force || !layer->tried) {
		print_line("", layer->why);
		return;
	}
	print_line("why:    ", layer->why);
	print_line("lost:   ", layer->lost);
	print_line("remedy: ", layer->remedy);
}

static json_t *text_or_null(const char *text)
{
	return text && *text ? json_string(text) : json_null();
}

static void on_object(void *context, const struct gbx_layer *layer)
{
	struct doctor *d = context;
	int r;

	if (!layer->name)
		r = json_array_append_new(d->advice, json_string(layer->why));
	else
		r = json_array_append_new(d->layers,
			json_pack("{s:s, s:o, s:o, s:s, s:s}", "name", layer->name, "in_force",
				layer->tried ? json_boolean(layer->in_force) : json_null(), "why",
				text_or_null(layer->why), "lost", layer->lost, "remedy",
				layer->remedy));
	if (r < 0)
		error(EXIT_FAILURE, 0, "out of memory");
}

static int print_json(struct doctor *d, bool would_start)
{
	json_t *all = json_pack("{s:b, s:O, s:O}", "would_start", would_start, "layers", d->layers,
		"advice", d->advice);
	int r = all ? json_dumpf(all, stdout, JSON_INDENT(2)) : -1;

	json_decref(all);
	return r < 0 || putchar('\n') == EOF ? -1 : 0;
}

static void doctor_done(struct doctor *d)
{
	json_decref(d->layers);
	json_decref(d->advice);
	records_done(&d->records);
}

int doctor_main(int argc, char **argv)
{
	CLEANUP(doctor_done) struct doctor d = { .config = options_config_file() };
	struct gbx_options options = { .size = sizeof(options), .program = "/proc/self/exe" };
	struct gbx_error why = { 0 };
	int would_start;

	options_add_environment(&d.records);
	parse(argc, argv, &d);
	options.config = d.config;
	options.settings = records_list(&d.records);
	d.layers = json_array();
	d.advice = json_array();

	would_start = gbx_doctor(&options, d.json ? on_object : on_row, &d, &why);
	if (would_start < 0) {
		(void)fflush(stdout);
		error(0, 0, "%s", why.text);
		return EXIT_FAILURE;
	}
	if (d.json && print_json(&d, would_start) < 0)
		would_start = 0;
	else if (!d.json)
		(void)printf("\nglovebox serve %s start.\n", would_start ? "would" : "would not");
	return fflush(stdout) == 0 && would_start ? EXIT_SUCCESS : EXIT_FAILURE;
}
