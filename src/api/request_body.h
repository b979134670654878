/* A request's body as a JSON object. What is no JSON by RFC 8259 although many write it (NaN, half
 * of a surrogate pair) is found together with the field that it stands in, so that this field is
 * wrong and the others are checked all the same.
 *
 *   runs in    the front, the caller
 *   owns       the object, until request_body_done()
 *   trusts     no byte of it
 */
#pragma once

#include "api/fields.h"
#include "api/scan.h"
#include "api/writer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

struct request_body {
	const char *text; /* borrowed */
	size_t len;
	struct writer *why; /* the items of the 422, borrowed */
	unsigned faults;
	bool bad_text; /* somewhere below a field a {} stands for a text that is no Unicode */
	struct scan_odd odd[API_FIELDS]; /* of the fields themselves; len 0: none */
	struct scan_odd top;             /* the whole body is one */
	struct scan_odd elsewhere;       /* the first one that is no JSON and in no field */
	char *patched;     /* the body with each oddity replaced by {}; NULL: there is none */
	bool patch_failed; /* out of memory */
	json_t *root;
};

/* With text, len and why set, the rest 0: the object in b->root, or b->faults. 0 or -ENOMEM. */
int request_body_parse(struct request_body *b) __attribute__((nonnull));

/* It is no JSON at the byte `at`. */
void request_body_refuse(struct request_body *b, size_t at, const char *error)
	__attribute__((nonnull));

void request_body_done(struct request_body *b) __attribute__((nonnull));
