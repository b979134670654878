/* All manifests together: those that the program carries, and those of the operator, who may
 * replace one of the first by another of the same name, or add some.
 *
 *   runs in    the config process; pure
 *   owns       nothing
 *   trusts     no byte of a manifest
 */
#pragma once

#include "wire/language.h"

#include <stddef.h>
#include <stdint.h>

struct fault;

/* Manifests on their way into this process are records "FOLDER=TEXT", each ended by NUL. Those of
 * the operator come among the overrides, with LANGUAGES_MARK in front. */
#define LANGUAGES_MARK '@'

/* Which of them are the operator's: a bit for each. */
typedef uint32_t languages_set;
_Static_assert(LANGUAGES_MAX <= 32, "languages_set");

/* Read the records in `bytes`. With `operators` they are the operator's, of which what has no mark
 * is passed over, and each gets its bit; NULL: the program's own. */
int languages_read(struct languages *l, languages_set *operators, const char *bytes, size_t len,
	struct fault *f) __attribute__((nonnull(1, 3, 5)));

/* When all are there: no name or alias stands for two, and the default one is number 0. Where one
 * does, and the operator has written one of the two manifests, the message names that. */
int languages_settle(struct languages *l, languages_set operators, struct fault *f)
	__attribute__((nonnull));
