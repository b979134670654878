/* `glovebox selftest`: probes of every layer in real cells of this installation.
 *
 * Exit statuses: 0 when everything that was tried is contained, 1 when something was not, 125
 * when Glovebox failed and nothing is known. */
#include "caller/selftest/selftest.h"
#include "caller/cli/options.h"
#include "caller/cli/roles.h"

#include "base/build_id.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/own.h"
#include "wire/selftest.h"

#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_GLOVEBOX 125

enum {
	OPTION_CONFIG = OPTION_VERB,
	OPTION_JSON,
	OPTION_NO_RECORD,
	OPTION_COLD
};

struct command {
	const char *config;
	bool json, no_record, cold;
	struct records records;
};

static error_t on_option(int key, char *arg, struct argp_state *state)
{
	struct command *c = state->input;

	if (options_add_flag(&c->records, key, arg))
		return 0;
	if (key == OPTION_CONFIG)
		c->config = arg;
	else if (key == OPTION_JSON)
		c->json = true;
	else if (key == OPTION_COLD)
		c->cold = true;
	else if (key == OPTION_NO_RECORD)
		c->no_record = true;
	else if (key == ARGP_KEY_ARG)
		options_refuse(state->name, "\"%s\": selftest takes options only", arg);
	else
		return ARGP_ERR_UNKNOWN;
	return 0;
}

static void parse(int argc, char **argv, struct command *c)
{
	static struct argp_option options[] = {
		{ "json", OPTION_JSON, NULL, 0, "print JSON", 0 },
		{ "no-record", OPTION_NO_RECORD, NULL, 0,
			"leave no result for the /health of servers", 0 },
		{ "cold", OPTION_COLD, NULL, 0,
			"only start programs cold (default: each probe cold and warm)", 0 },
		{ "config", OPTION_CONFIG, "FILE", 0, "YAML file of settings", 0 },
		{ 0 }, /* cgroup */
		{ 0 }, /* allow-degraded */
		{ 0 }, /* uid-base */
		{ 0 },
	};
	static const struct argp argp = {
		.options = options,
		.parser = on_option,
		.doc = "Try to break out of cells of this installation, by every layer of the "
		       "cage, and tell what was contained. Takes some seconds."
		       "\vThe exit status is 0 when everything was contained, 1 when something "
		       "was not, 125 when Glovebox failed.",
	};

	options[4] = options_setting("cgroup");
	options[5] = options_setting("allow-degraded");
	options[6] = options_setting("uid-base");
	options_parse(&argp, argc, argv, c);
}

/* The limits that the probes are written for. They go before those of the file: what is tried
 * is the cage, and not how large the operator lets it be. */
static void add_limits(struct records *r)
{
	static const char *const limits[][2] = { { "timeout", "20s" },
		{ "max-timeout", "60s" } /* TIMEOUT_MAX in caller/selftest/runs.c */,
		{ "memory", "64M" }, { "max-memory", "512M" }, { "cpu", "1" }, { "max-cpu", "1" },
		{ "pids", "32" }, { "max-pids", "512" }, { "output-bytes", "64K" },
		{ "workspace-inodes", "4096" }, { "pool-size", "2" }, { "code-bytes", "1M" },
		{ NULL, NULL } };

	for (size_t i = 0; limits[i][0]; i++)
		records_add(r, "--", limits[i][0], limits[i][1]);
}

static void fill_record(const struct selftest *s, struct selftest_record *ret)
{
	struct selftest_sums sums = selftest_add_up(s);
	time_t now = time(NULL);
	struct tm utc;

	*ret = (struct selftest_record){
		.magic = SELFTEST_MAGIC,
		.probes = selftest_count(),
		.failed = sums.failed,
		.impossible = sums.impossible,
	};
	build_id(ret->build);
	if (gmtime_r(&now, &utc))
		(void)strftime(ret->at, sizeof(ret->at), "%Y-%m-%dT%H:%M:%SZ", &utc);
	for (unsigned i = 0; i < selftest_count() && !ret->first_failed[0]; i++)
		if (selftest_judge(s, i) == SELFTEST_FAILED)
			(void)snprintf(ret->first_failed, sizeof(ret->first_failed), "%s",
				selftest_probe(i)->name);
}

/* By rename(): a server reads the old result or the new one, and learns that there is one. */
static int leave_record(const struct selftest *s)
{
	struct selftest_record record;
	char fresh[64];
	int fd, r;

	fill_record(s, &record);
	(void)snprintf(fresh, sizeof(fresh), SELFTEST_DIR "/" SELFTEST_FILE ".%d", (int)getpid());
	fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return -errno;
	r = io_write_all(fd, &record, sizeof(record));
	(void)close(fd);
	if (r == 0 && rename(fresh, SELFTEST_DIR "/" SELFTEST_FILE) < 0)
		r = -errno;
	if (r < 0)
		(void)unlink(fresh);
	return r;
}

static void command_done(struct command *c)
{
	records_done(&c->records);
}

int selftest_main(int argc, char **argv)
{
	CLEANUP(command_done) struct command c = { .config = options_config_file() };
	static struct selftest s = {
		.options = { .size = sizeof(s.options), .program = "/proc/self/exe" },
	}; /* too large for a careful stack */
	struct gbx_error why = { 0 };
	uint64_t began;
	int r;

	options_add_environment(&c.records);
	parse(argc, argv, &c);
	add_limits(&c.records);
	s.options.config = c.config;
	s.options.settings = records_list(&c.records);
	s.cold_only = c.cold;

	began = clock_ns();
	r = selftest_run_all(&s, &why);
	selftest_host_close(&s);
	s.took_ns = clock_ns() - began;
	if (r < 0) {
		error(0, 0, "%s", why.text[0] ? why.text : gbx_strerror(r));
		return EXIT_GLOVEBOX;
	}
	r = c.no_record ? 0 : leave_record(&s);
	if (r < 0)
		error(0, -r, "the result could not be left in " SELFTEST_DIR);
	r = c.json ? selftest_print_json(&s) : selftest_print(&s);
	if (r < 0)
		return EXIT_GLOVEBOX;
	return selftest_add_up(&s).failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
