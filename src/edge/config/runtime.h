/* runtimes/NAME/runtime.yaml: a language, and how it starts inside a cell (docs/runtimes.md).
 *
 *   runs in    the config process; pure
 *   trusts     no byte of the text
 */
#pragma once

#include "wire/language.h"

struct fault;
struct document;

/* Fills *ret on success. */
int runtime_parse(const struct document *text, struct language *ret, struct fault *f)
	__attribute__((nonnull));
