/* The manifest of an image that is built of Debian's packages (images/NAME.yaml).
 *
 *   runs in    the confined process
 *   trusts     no byte of the text
 */
#pragma once

#include "wire/image.h"

struct fault;
struct document;

/* Fills *ret on success; a fault names line and column. */
int manifest_parse(const struct document *text, struct msg_plan *ret, struct fault *f)
	__attribute__((nonnull));
