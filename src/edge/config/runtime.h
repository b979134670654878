/* runtimes/NAME/runtime.yaml: how a language starts inside a cell.
 *
 *   runs in    the config process; pure
 *   trusts     no byte of the text
 */
#pragma once

#include "wire/settings.h"

struct fault;
struct document;

/* Fills *ret on success. */
int runtime_parse(const struct document *text, struct runtime *ret, struct fault *f)
	__attribute__((nonnull));
