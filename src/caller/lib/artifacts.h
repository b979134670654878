/* The files of a run on their way to the caller.
 *
 *   runs in    the caller
 *   owns       the read end of the pipe, the list of what has come
 *   threads    none
 *   blocks     as the caller's function does
 *   trusts     no byte of the stream
 */
#pragma once

#include "api/artifacts.h"
#include "caller/lib/session.h"

struct fault;
struct incoming;

/* Ask for the files of `run`, whose RESULT said that they are there. */
struct incoming *incoming_create(struct gbx_session *s, const struct gbx_request *q, uint64_t run,
	struct fault *f) __attribute__((nonnull, warn_unused_result));
void incoming_destroy(struct incoming *in);

/* The descriptor to poll; -1 at the end. */
int incoming_fd(const struct incoming *in) __attribute__((nonnull));

/* It is readable. What is wrong with the stream, or with the caller's function, is no failure of
 * the run: the list is incomplete then. */
void incoming_read(struct incoming *in) __attribute__((nonnull));

const struct artifacts_list *incoming_list(const struct incoming *in) __attribute__((nonnull));
uint64_t incoming_us(const struct incoming *in) __attribute__((nonnull));
