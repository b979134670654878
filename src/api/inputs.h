/* What goes into a run beside its code, on its way to the blob of wire/inputs.h: the rules that
 * hold for all of it together, and the making of the blob. Both the HTTP API and libglovebox use
 * it; what holds for each item alone is in wire/inputs.h.
 *
 *   runs in    the front, the caller
 *   owns       nothing: a plan borrows every text and byte
 *   trusts     no byte
 */
#pragma once

#include "wire/inputs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file of a plan. Its path has been found right. */
struct inputs_plan_file {
	const char *path;
	size_t path_len;
	const char *bytes; /* of base64: the text, which has been found right */
	size_t len;
	uint64_t size; /* bytes of the file itself */
	uint32_t mode;
	bool base64;
};

/* NAME and VALUE; or, with a NULL as value, both with "=" between them. */
struct inputs_plan_variable {
	const char *name, *value;
};

struct inputs_plan {
	const char *args[INPUTS_ARGS_MAX];
	struct inputs_plan_variable env[INPUTS_ENV_MAX];
	struct inputs_plan_file *files;
	unsigned arg_count, env_count, file_count;
	unsigned entry; /* as in struct inputs_head */
};

struct inputs_need {
	uint64_t memory_bytes; /* that the files take in the workspace: whole pages */
	uint64_t inodes;       /* that they and their directories take */
};

/* `file` (from 0) cannot be beside another one: what is wrong, as the end of a sentence. */
typedef void inputs_clash_fn(void *ctx, unsigned file, const char *what);

/* Look for files that cannot be beside each other, or beside `main_file`, which holds the code
 * (NULL: a file is the program), and reckon what they need. 0 or -ENOMEM. */
int inputs_plan_look(const struct inputs_plan *p, const char *main_file, inputs_clash_fn *clash,
	void *ctx, struct inputs_need *ret) __attribute__((nonnull(1, 3, 5)));

/* The blob; the caller's to free(). NULL with *ret_len 0 where the plan is empty: a run without
 * inputs has none. 0 or -ENOMEM. */
int inputs_plan_build(const struct inputs_plan *p, char **ret, size_t *ret_len)
	__attribute__((nonnull));

/* How many bytes all texts of `args`, or of `env`, take with their NULs. */
size_t inputs_plan_args_bytes(const struct inputs_plan *p) __attribute__((nonnull));
size_t inputs_plan_env_bytes(const struct inputs_plan *p) __attribute__((nonnull));
