/* `network` of a request: what is wrong with it becomes items of the 422, each at its place, and
 * what is right a policy (wire/network.h).
 *
 *   runs in    the front, the caller
 *   owns       the policy, until request_network_take() or request_network_done()
 *   trusts     no byte of the request
 */
#pragma once

#include "api/detail.h"
#include "api/fields.h"
#include "api/writer.h"
#include "wire/network.h"
#include "wire/settings.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define REQUEST_NETWORK_SHOWN 16u /* wrong items that a 422 shows; the others are counted */

/* What one of the members that are numbers may be. */
struct request_network_bound {
	const char *member, *setting; /* of the request, of the operator */
	uint64_t least, most;
};
#define REQUEST_NETWORK_BOUNDS 3u
void request_network_bounds(const struct settings *s,
	struct request_network_bound ret[static REQUEST_NETWORK_BOUNDS]) __attribute__((nonnull));

struct fault;

struct request_network {
	const struct settings *settings;
	bool bad_text; /* somewhere in the request a {} stands for a text that is no Unicode */
	struct writer *why;
	unsigned faults, shown;
	struct network_policy *policy; /* NULL: the request has said nothing */
};

/* Check the field, which the request has: `v`, or what could not be parsed in its place (`odd`).
 * 0, with what is wrong counted in `faults`; or -ENOMEM. */
int request_network_check(struct request_network *n, const struct api_field *f, const json_t *v,
	const struct detail_input *odd) __attribute__((nonnull(1, 2)));

/* The policy, which the caller free()s: the operator's bounds, and no rule against anything, where
 * the request has said nothing. NULL: out of memory. */
struct network_policy *request_network_take(struct request_network *n)
	__attribute__((nonnull, warn_unused_result));

/* The same of a text, the JSON of a `network` by itself; *ret is the caller's to free(). The fault's
 * text is what a 422 would say first. */
int request_network_parse(const char *text, const struct settings *s, struct network_policy **ret,
	struct fault *f) __attribute__((nonnull));

void request_network_done(struct request_network *n) __attribute__((nonnull));
