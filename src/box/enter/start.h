/* What START asks of a process that has dropped everything, up to the point where the
 * program itself takes over. The filter for programs is in force already, and allows it.
 *
 *   runs in    enter, and a zygote's child
 *   owns       the descriptors of START stay the message's
 */
#pragma once

#include "wire/channel.h"

struct fault;

/* Say that everything is dropped, and wait, parked, for START. The caller owns the
 * descriptors of *ret. */
int start_await(struct msg *ret, struct fault *f) __attribute__((nonnull));

/* Write the program, put the run's limits in force, and make the run's streams 0, 1 and
 * 2. The channel stays, to report what fails after this. */
int start_prepare(const struct runtime *rt, const struct msg *start, struct fault *f)
	__attribute__((nonnull));
