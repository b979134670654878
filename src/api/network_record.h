/* The memory that a run with a network shares with its gate: what is asked for, and what came of it.
 *
 *   runs in    the front and the caller
 *   owns       nothing; descriptors and records go to the caller
 *   trusts     no byte of what a gate has written
 */
#pragma once

#include "wire/network.h"

struct writer;

/* Memory for a run that asks for this (api_request.network). Close-on-exec, sealed in its size. A
 * descriptor, or a negative errno. */
int api_network_make(const struct network_policy *asked)
	__attribute__((nonnull, warn_unused_result));

/* What the gate has written, as its reader may show it; the caller free()s it. NULL: it cannot be
 * shown, as it breaks the rules of its form. */
struct network_record *api_network_read(int fd) __attribute__((warn_unused_result));

/* The reply's "network"; `r` NULL: null. */
void api_network_put(struct writer *w, const struct network_record *r) __attribute__((nonnull(1)));
