/* What a run began with: its code and its files, by their bytes. What still is like that is
 * neither new nor changed.
 *
 *   runs in    the collector, confined
 *   owns       its view of the sealed memory that SUBMIT carried, for as long as it lives
 *   trusts     no byte of that memory
 */
#pragma once

#include "box/enter/inputs.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct fault;

struct known {
	struct loaded_inputs inputs; /* its map has the code in front */
	const char *main_file;       /* where the code was written to; NULL: nowhere */
	uint64_t code_bytes;
	struct inputs_item items[INPUTS_FILES_MAX];
};

/* Look at `code_bytes` of code in `fd`, written to `main_file` (borrowed), and at the
 * `inputs_bytes` behind it, if any. 0 or a negative errno. */
int known_open(struct known *k, int fd, const char *main_file, uint64_t code_bytes,
	uint64_t inputs_bytes, struct fault *f) __attribute__((nonnull));

/* The bytes with which the run began at `path`; NULL: with none. */
const char *known_find(const struct known *k, const char *path, size_t len, uint64_t *ret_bytes)
	__attribute__((nonnull));
