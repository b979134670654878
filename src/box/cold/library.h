/* The library that goes into an interpreter which starts cold and shall tell of its program
 * (wire/report.h): how it is handed over, by what is about to become the interpreter.
 *
 *   runs in    enter, and a zygote's child that has to start cold
 *   owns       nothing
 */
#pragma once

#include "box/enter/inputs.h"

#include <stdint.h>

struct fault;

/* Where the library finds itself, and the memory. It closes both before the program begins. */
#define COLD_LIBRARY_FD 4
#define COLD_REPORT_FD  5

/* In the environment of the exec, and gone when the program looks at its own. */
#define COLD_PRELOAD "LD_PRELOAD=/proc/self/fd/4"
#define COLD_REPORT  "GLOVEBOX_REPORT"

/* Is `program` one whose loader heeds LD_PRELOAD, and knows the library's own C library? Otherwise what
 * is handed over would be the program's to find, or its end: a script, a static binary, musl.
 * 1, 0, or a negative errno: it could not be looked at. */
int cold_is_loadable(const char *program) __attribute__((nonnull));

/* Put the library and the memory in their places, and what leads to them into the environment.
 * `flags` are not 0; `room` holds the text of them. */
#define COLD_ROOM 32
int cold_hand_over(int report_fd, uint32_t flags, char room[COLD_ROOM], struct inputs_words *w,
	struct fault *f) __attribute__((nonnull));
