/* What an interpreter tells of its program (wire/report.h): when report.py's functions, which do
 * it, are called, and with what.
 *
 *   runs in    a zygote, which has the functions ready, and its children; a cold interpreter (cold/library.c)
 *   owns       its view of the shared memory
 *   threads    the main one
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct _object;
struct fault;

struct report {
	void *area; /* NULL: nothing is told */
	uint32_t flags;
	const char *path; /* of the program, absolute */
	unsigned long process;
};

/* Once, in an interpreter. 0, or -1 with an exception set. */
int report_init(void);

/* Make report.py's functions now. Without it that is done when the first of them is needed.
 * 0, or -1 with an exception set. */
int report_load(void);

/* Before the program, which is of `process`: map the memory `fd`, if anything shall be told. */
int report_open(struct report *r, int fd, uint32_t flags, unsigned long process, struct fault *f)
	__attribute__((nonnull));

/* None of these changes an exception that is set, nor leaves one. Only the process of the program
 * tells: a child that it forks has a program's end of its own. */

/* (code of all but the last statement, code of its value) of the program; NULL: it is to be run as
 * it is. */
struct _object *report_split(const struct report *r) __attribute__((nonnull));
void report_result(const struct report *r, struct _object *value) __attribute__((nonnull));
/* The exception that is set ends the program. */
void report_error(const struct report *r) __attribute__((nonnull));
/* Is there a module that figures could be of? No call to the kernel: nearly every program says no. */
bool report_may_have_figures(const struct report *r) __attribute__((nonnull));
/* To be called when threads have ended, and before exit functions are called. */
void report_figures(const struct report *r) __attribute__((nonnull));
