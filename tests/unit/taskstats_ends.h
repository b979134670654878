/* The ways in which a process can end, and children that end so.
 *
 *   runs in    unit tests
 */
#pragma once

#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

enum told {
	ALWAYS, /* there is a record */
	MAYBE,  /* which thread is the last is chance */
	NEVER
};

struct end {
	const char *name;
	void (*run)(void);
	enum told told;
	bool threads;
};

extern const struct end ends[];
extern const unsigned ends_count;

void end_0(void);
void end_7(void);
void end_after_a_child(void);

/* Start a child that ends by `program`. */
pid_t end_run(void (*program)(void)) __attribute__((nonnull));

/* The end of `pid`, waited for: then its record has been sent. Returns its wait status. */
int end_reap(pid_t pid, struct rusage *ret_usage) __attribute__((nonnull));
