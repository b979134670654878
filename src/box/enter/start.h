/* What START asks of a process that has dropped everything, up to the point where the
 * program itself takes over. The filter for programs is in force already, and allows it.
 *
 *   runs in    enter, and a zygote's child
 *   owns       the descriptors of START stay the message's
 */
#pragma once

#include "box/enter/inputs.h"
#include "wire/channel.h"

struct fault;

struct start {
	struct msg m; /* START; its descriptors are the caller's */
	int file_fd;  /* the program's file, empty until then */
	struct loaded_inputs inputs;
};

/* Make the program's file, say that everything is dropped, and wait, parked, for START. */
int start_await(const struct runtime *rt, struct start *ret, struct fault *f)
	__attribute__((nonnull));

/* Write the program and its files, put the run's limits in force, and make the run's streams 0,
 * 1 and 2. The channel stays, to report what fails after this. */
int start_prepare(const struct runtime *rt, struct start *s, struct fault *f)
	__attribute__((nonnull));

/* A cold start: exec the interpreter. Returns only when that failed. */
int start_become(struct runtime *rt, const struct start *s, struct fault *f)
	__attribute__((nonnull));
