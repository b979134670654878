/* The settings as command-line options and environment variables, and what all verbs'
 * command lines have in common.
 *
 *   runs in    the command line
 *   owns       struct records owns its texts
 */
#pragma once

#include <argp.h>
#include <stddef.h>
#include <stdint.h>

/* Settings on their way to the config process, as overrides_make() and gbx_open() take
 * them: environment first, flags after, so that flags win. */
struct records {
	char **list; /* ended by NULL; NULL while there is none */
	size_t count;
};

/* Out of memory ends the program: it has done nothing yet. */
void records_add(struct records *r, const char *prefix, const char *key, const char *value)
	__attribute__((nonnull));
void records_done(struct records *r) __attribute__((nonnull));
const char *const *records_list(const struct records *r) __attribute__((nonnull));

/* Add every GLOVEBOX_… variable that is a setting; warn of those that are nothing that
 * is known, which would otherwise be misspelt in silence. */
void options_add_environment(struct records *r) __attribute__((nonnull));

/* The config file that a verb without --config reads: $GLOVEBOX_CONFIG, or NULL for the
 * default. */
const char *options_config_file(void);

/* The environment's --runtimes. */
#define RUNTIMES_VARIABLE "GLOVEBOX_RUNTIMES"

/* Options whose key is OPTION_SETTING + n set the nth setting. */
enum {
	OPTION_SETTING = 0x1000,
	OPTION_VERB = 0x2000 /* from here on: a verb's own */
};

/* One argp option for every setting, with its help. The table ends with an empty option
 * and is constant once it has been asked for. */
const struct argp_option *options_settings(void);

/* The argp option of one setting. CHECKs that it exists. */
struct argp_option options_setting(const char *key) __attribute__((nonnull));

/* Add the flag that argp found. False when `key` is not a setting's. */
int options_add_flag(struct records *r, int key, const char *value) __attribute__((nonnull(1)));

/* argp_parse(), but without abbreviations, which a later option would make ambiguous:
 * whatever options_fault() finds ends the program through options_refuse(). */
void options_parse(const struct argp *argp, int argc, char **argv, void *input)
	__attribute__((nonnull(1, 3)));

/* Where in `argv` the first argument stands that is neither an option nor the value of one; what
 * follows it may be somebody else's. `argc`: there is none. */
int options_operand(const struct argp *argp, int argc, char *const *argv) __attribute__((nonnull));

/* What is wrong with the options of `argv` by name and form: one that is not `argp`'s in
 * full, lacks its value, or has one that it does not take. NULL when nothing is; else the
 * sentence, in `room`. */
#define OPTIONS_FAULT_MAX 160
const char *options_fault(const struct argp *argp, int argc, char *const *argv,
	char room[static OPTIONS_FAULT_MAX]) __attribute__((nonnull));

/* A flag whose value is a quantity. */
struct quantity_option {
	const char *name;  /* without its dashes */
	const char *form;  /* examples of what it may be */
	const char *range; /* `least` to `most` in that form */
	int (*parse)(const char *text, uint64_t *ret);
	uint64_t least, most;
};

/* --timeout, --memory, --cpu and --pids: limits of a run, in the units of struct run_limits. */
extern const struct quantity_option option_timeout, option_memory, option_cpu, option_pids;

/* The value of the flag; what is none, or out of its range, is a usage error. */
uint64_t options_quantity(const struct quantity_option *o, const char *arg,
	const struct argp_state *state) __attribute__((nonnull));

/* A usage error: says it, points to `verb --help` ("glovebox run") and exits with
 * argp_err_exit_status. */
_Noreturn void options_refuse(const char *verb, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull));
