/* What `glovebox run` puts into a run beside its program: --file, --env and what stands behind
 * the program's name.
 *
 *   runs in    the caller's process
 *   owns       what it has read and listed, until run_inputs_done()
 */
#pragma once

#include <glovebox.h>
#include <stdint.h>

struct run_inputs {
	struct gbx_file *files;
	const char *
		*given;   /* the argument of --file of each; argv's; NULL: it is --entry-point's */
	const char **env; /* ended by NULL; its texts are argv's */
	size_t file_count, env_count;
	uint64_t bytes; /* of all files */
};

/* --file PATH[=NAME]: read the file PATH, to lie at NAME in the workspace; without NAME under its
 * own last component. 0, or -1 after a message on stderr. */
int run_inputs_file(struct run_inputs *in, const char *arg) __attribute__((nonnull));

/* --entry-point NAME: these bytes are the program, and lie there. `bytes` is taken when it is 0, and -1
 * comes after a message on stderr. */
int run_inputs_entry(struct run_inputs *in, const char *name, void *bytes, size_t len)
	__attribute__((nonnull));

/* --env NAME=VALUE; what is wrong with it is found by gbx_run(). 0 or -ENOMEM. */
int run_inputs_env(struct run_inputs *in, const char *arg) __attribute__((nonnull));

/* Say on stderr why gbx_run() has refused the request: what it says of `files[n]`, `env` and
 * `entry_point` is said of the flag that has given it. */
void run_inputs_say(const struct run_inputs *in, const char *why) __attribute__((nonnull));

/* Lend them to the request. */
void run_inputs_lend(const struct run_inputs *in, struct gbx_request *q) __attribute__((nonnull));
void run_inputs_done(struct run_inputs *in) __attribute__((nonnull));
