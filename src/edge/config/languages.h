/* All manifests together: those that the program carries, and those of the operator, who may
 * replace one of the first by another of the same name, or add some.
 *
 *   runs in    the config process; pure
 *   owns       nothing
 *   trusts     no byte of a manifest
 */
#pragma once

#include "wire/language.h"

#include <stdbool.h>
#include <stddef.h>

struct fault;

/* Manifests on their way into this process are records "FOLDER=TEXT", each ended by NUL. Those of
 * the operator come among the overrides, with LANGUAGES_MARK in front. */
#define LANGUAGES_MARK '@'

/* Read the records in `bytes`. `own`: the operator's, of which what has no mark is passed over. */
int languages_read(struct languages *l, const char *bytes, size_t len, bool own, struct fault *f)
	__attribute__((nonnull));

/* When all are there: no name or alias stands for two, and the default one is number 0. */
int languages_settle(struct languages *l, struct fault *f) __attribute__((nonnull));
