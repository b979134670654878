/* What goes into a run beside its code (wire/inputs.h), where it arrives: read out of the sealed
 * memory behind the code, and written into the workspace.
 *
 *   runs in    enter and a zygote's child, as the program's user, behind the program's filter:
 *              whoever forges a blob gains what the program has anyway
 *   owns       its view of the memory, until inputs_unload() or an exec
 *   trusts     no byte of the blob
 */
#pragma once

#include "wire/inputs.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stddef.h>

struct fault;

struct loaded_inputs {
	struct inputs in;
	void *map; /* NULL: there are none */
	size_t len;
};

/* Look at the `bytes` (over 0) behind `code_bytes` in `fd`. */
int inputs_load(int fd, uint64_t code_bytes, uint64_t bytes, struct loaded_inputs *ret,
	struct fault *f) __attribute__((nonnull));
void inputs_unload(struct loaded_inputs *l) __attribute__((nonnull));

/* Write the files, below the working directory, which holds nothing but `main_file`. That goes
 * where a file is the program. The fault says which file it was, counted as the request does. */
int inputs_write(const struct inputs *in, const char *main_file, struct fault *f)
	__attribute__((nonnull));

/* What a cold start is given. The texts are those of the runtime and of `in`, which may be NULL. A
 * compiler is given neither arguments nor variables of the run: they are the program's. */
#define INPUTS_VARIABLES_MORE 2u /* for cold_hand_over() */
struct inputs_words {
	char *argv[RUNTIME_ARGV_MAX + INPUTS_ARGS_MAX + 1];
	char *envp[RUNTIME_ENV_MAX + INPUTS_ENV_MAX + INPUTS_VARIABLES_MORE + 1];
};
void inputs_words(struct runtime *rt, const struct inputs *in, bool compiler,
	struct inputs_words *ret) __attribute__((nonnull(1, 4)));
