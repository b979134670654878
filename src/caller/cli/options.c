#include "caller/cli/options.h"

#include "base/check.h"
#include "base/likeness.h"
#include "base/quantity.h"
#include "wire/limits.h"
#include "wire/settings.h"

#include <errno.h>
#include <error.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ENVIRONMENT_MARK "GLOVEBOX_"
#define NAME_MAX_        48

/* Types of SETTINGS as option arguments; NULL: a flag that may stand alone. */
#define ARG_SIZE      "SIZE"
#define ARG_COUNT     "N"
#define ARG_DURATION  "TIME"
#define ARG_CPUS      "CPUS"
#define ARG_BOOL      "true|false"
#define ARG_SWITCH    "off|on|auto"
#define ARG_RULES     "RULE"
#define ARG_TEXT      "PATH"
#define ARG_MODULES   "MODULE,..."
#define ARG_IMAGE     "NAME"
#define ARG_LAYER_SET "LAYER"
#define ARG_LISTEN    "ADDRESS"
#define ARG_LEVEL     "LEVEL"

#define FLAGS_SIZE      0
#define FLAGS_COUNT     0
#define FLAGS_DURATION  0
#define FLAGS_CPUS      0
#define FLAGS_BOOL      OPTION_ARG_OPTIONAL
#define FLAGS_SWITCH    OPTION_ARG_OPTIONAL
#define FLAGS_RULES     0
#define FLAGS_TEXT      0
#define FLAGS_MODULES   0
#define FLAGS_IMAGE     0
#define FLAGS_LAYER_SET 0
#define FLAGS_LISTEN    0
#define FLAGS_LEVEL     0

enum {
#define X(key, field, type, def, least, most, help) +1
	SETTINGS_COUNT = 0 SETTINGS(X)
#undef X
};

static const char *const keys[SETTINGS_COUNT] = {
#define X(key, field, type, def, least, most, help) key,
	SETTINGS(X)
#undef X
};

void records_add(struct records *r, const char *prefix, const char *key, const char *value)
{
	char **list = reallocarray(r->list, r->count + 2, sizeof(*list));

	if (!list || asprintf(&list[r->count], "%s%s=%s", prefix, key, value) < 0)
		error(EXIT_FAILURE, 0, "out of memory");
	r->list = list;
	r->list[++r->count] = NULL;
}

void records_done(struct records *r)
{
	for (size_t i = 0; i < r->count; i++)
		free(r->list[i]);
	free(r->list);
	r->list = NULL;
	r->count = 0;
}

const char *const *records_list(const struct records *r)
{
	return (const char *const *)r->list;
}

static void environment_name(const char *key, char name[static NAME_MAX_])
{
	size_t n = (size_t)snprintf(name, NAME_MAX_, ENVIRONMENT_MARK "%s", key);

	CHECK(n < NAME_MAX_);
	for (char *p = name; *p; p++)
		*p = *p == '-' ? '_' : *p >= 'a' && *p <= 'z' ? (char)(*p - 'a' + 'A') : *p;
}

static bool is_known_variable(const char *variable)
{
	/* Read by the library and by options_config_file(). */
	static const char *const others[] = {
		"GLOVEBOX_PROGRAM=", "GLOVEBOX_CONFIG=", RUNTIMES_VARIABLE "="
	};
	size_t len = strcspn(variable, "=");
	char name[NAME_MAX_];

	for (size_t i = 0; i < ARRAY_LEN(others); i++)
		if (strncmp(variable, others[i], strlen(others[i])) == 0)
			return true;
	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		environment_name(keys[i], name);
		if (strlen(name) == len && strncmp(variable, name, len) == 0)
			return true;
	}
	return false;
}

void options_add_environment(struct records *r)
{
	char name[NAME_MAX_];

	for (size_t i = 0; i < SETTINGS_COUNT; i++) {
		const char *value;

		environment_name(keys[i], name);
		value = getenv(name);
		if (value)
			records_add(r, "", name, value);
	}
	for (char **v = environ; *v; v++)
		if (strncmp(*v, ENVIRONMENT_MARK, strlen(ENVIRONMENT_MARK)) == 0 &&
			!is_known_variable(*v))
			error(0, 0, "warning: environment variable %.*s is no setting, ignored",
				(int)strcspn(*v, "="), *v);
}

const char *options_config_file(void)
{
	const char *path = getenv("GLOVEBOX_CONFIG");

	return path && *path ? path : NULL;
}

static const struct argp_option settings[SETTINGS_COUNT + 1] = {
#define X(key_, field, type, def, least, most, help_) \
	{ .name = key_, .arg = ARG_##type, .flags = FLAGS_##type, .doc = help_ },
	SETTINGS(X)
#undef X
};

static const char *const defaults[SETTINGS_COUNT] = {
#define X(key, field, type, def, least, most, help) def,
	SETTINGS(X)
#undef X
};

const struct argp_option *options_settings(void)
{
	static struct argp_option filled[SETTINGS_COUNT + 1];
	static char docs[SETTINGS_COUNT][256];

	for (size_t i = 0; i < SETTINGS_COUNT && !filled[i].name; i++) {
		filled[i] = settings[i];
		filled[i].key = OPTION_SETTING + (int)i;
		(void)snprintf(docs[i], sizeof(docs[i]), *defaults[i] ? "%s (default: %s)" : "%s",
			settings[i].doc, defaults[i]);
		filled[i].doc = docs[i];
	}
	return filled;
}

struct argp_option options_setting(const char *key)
{
	const struct argp_option *o = options_settings();

	for (; o->name; o++)
		if (strcmp(o->name, key) == 0)
			break;
	CHECK(o->name);
	return *o;
}

int options_add_flag(struct records *r, int key, const char *value)
{
	if (key < OPTION_SETTING || key >= OPTION_SETTING + SETTINGS_COUNT)
		return 0;
	/* Only a boolean or a switch may come without: --insecure is --insecure=true. */
	records_add(r, "--", keys[key - OPTION_SETTING], value ? value : "true");
	return 1;
}

static const struct argp_option *find(const struct argp_option *o, const char *name, size_t len)
{
	/* argp's own, which every parser has. */
	static const struct argp_option builtin[] = {
		{ .name = "help" },
		{ .name = "usage" },
		{ .name = "version" },
		{ 0 },
	};

	for (; o && (o->name || o->doc); o++)
		if (o->name && strlen(o->name) == len && strncmp(o->name, name, len) == 0)
			return o;
	for (o = builtin; o->name; o++)
		if (strlen(o->name) == len && strncmp(o->name, name, len) == 0)
			return o;
	return NULL;
}

/* The option that may have been meant. */
static const char *like_option(const struct argp_option *o, const char *name, size_t len)
{
	const char *like = NULL;
	unsigned best = LIKENESS_NONE, far;

	for (; o && (o->name || o->doc); o++) {
		far = o->name ? likeness(name, len, o->name) : LIKENESS_NONE;
		if (far < best) {
			best = far;
			like = o->name;
		}
	}
	return like;
}

static void say_unknown(
	const struct argp *argp, const char *name, size_t len, char room[static OPTIONS_FAULT_MAX])
{
	const char *like = like_option(argp->options, name, len);

	(void)snprintf(room, OPTIONS_FAULT_MAX, "there is no option --%.*s%s%s%s",
		len < 64 ? (int)len : 64, name, like ? "; did you mean --" : "", like ? like : "",
		like ? "?" : "");
}

static const char *short_fault(const char *arg, char room[static OPTIONS_FAULT_MAX])
{
	if (strcmp(arg, "-?") == 0 || strcmp(arg, "-V") == 0)
		return NULL;
	(void)snprintf(room, OPTIONS_FAULT_MAX, "there is no option %.64s", arg);
	return room;
}

const char *options_fault(
	const struct argp *argp, int argc, char *const *argv, char room[static OPTIONS_FAULT_MAX])
{
	for (int i = 1; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct argp_option *o;
		const char *name = argv[i] + 2;
		size_t len;

		if (argv[i][0] != '-' || argv[i][1] == '\0')
			continue;
		if (argv[i][1] != '-') {
			if (short_fault(argv[i], room))
				return room;
			continue;
		}
		len = strcspn(name, "=");
		o = find(argp->options, name, len);
		if (!o) {
			say_unknown(argp, name, len, room);
			return room;
		}
		if (!o->arg && name[len] == '=') {
			(void)snprintf(room, OPTIONS_FAULT_MAX, "--%s takes no value", o->name);
			return room;
		}
		if (!o->arg || (o->flags & OPTION_ARG_OPTIONAL) || name[len] == '=')
			continue;
		if (++i == argc) { /* the next one is its value, whatever it looks like */
			(void)snprintf(
				room, OPTIONS_FAULT_MAX, "--%s needs a value: %s", o->name, o->arg);
			return room;
		}
	}
	return NULL;
}

int options_operand(const struct argp *argp, int argc, char *const *argv)
{
	int i = 1;

	for (; i < argc && strcmp(argv[i], "--") != 0; i++) {
		const struct argp_option *o;
		size_t len;

		if (argv[i][0] != '-' || argv[i][1] == '\0')
			return i;
		if (argv[i][1] != '-')
			continue;
		len = strcspn(argv[i] + 2, "=");
		o = find(argp->options, argv[i] + 2, len);
		if (o && o->arg && !(o->flags & OPTION_ARG_OPTIONAL) && argv[i][2 + len] != '=')
			i++; /* its value */
	}
	return i + 1 < argc ? i + 1 : argc;
}

void options_refuse(const char *verb, const char *fmt, ...)
{
	va_list ap;

	(void)fflush(stdout);
	(void)fputs("glovebox: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, "\nTry `%s --help'.\n", verb);
	exit(argp_err_exit_status);
}

void options_parse(const struct argp *argp, int argc, char **argv, void *input)
{
	char room[OPTIONS_FAULT_MAX];

	if (options_fault(argp, argc, argv, room))
		options_refuse(argv[0], "%s", room);
	(void)argp_parse(argp, argc, argv, 0, NULL, input);
}

const struct quantity_option option_timeout = { "timeout", "3, 1.5s, 200ms or 2m", "1ms to 24h",
	quantity_duration, LIMIT_TIMEOUT_MIN_US, LIMIT_TIMEOUT_MAX_US };
const struct quantity_option option_memory = { "memory", "64 (MiB), 64M or 1.5G", "4M to 4T",
	quantity_mib, LIMIT_MEMORY_MIN_BYTES, LIMIT_MEMORY_MAX_BYTES };
const struct quantity_option option_cpu = { "cpu", "2 or 0.5", "0.01 to 1024", quantity_cpus,
	LIMIT_CPU_MIN_MILLI, LIMIT_CPU_MAX_MILLI };
const struct quantity_option option_pids = { "pids", "32", "1 to 32768", quantity_count,
	LIMIT_PIDS_MIN, LIMIT_PIDS_MAX };

uint64_t options_quantity(
	const struct quantity_option *o, const char *arg, const struct argp_state *state)
{
	uint64_t n = 0;
	int r = o->parse(arg, &n);

	/* 0 stands for "the default" further down; nobody means that by typing it. */
	if (r == -EINVAL || (r == 0 && n == 0))
		options_refuse(state->name, "--%s: \"%s\" is not above 0 and of the form %s",
			o->name, arg, o->form);
	if (r < 0 || n < o->least || n > o->most)
		options_refuse(state->name, "--%s: \"%s\" is out of range, which is %s", o->name,
			arg, o->range);
	return n;
}
