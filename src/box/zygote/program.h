/* One program in an interpreter that runs already, as `python3 main.py` runs it.
 *
 * The interpreter's own functions read, compile and run the file; what differs from its
 * main() is only what that keeps for itself: a fresh "__main__", and an end that leaves
 * what the zygote made where it is (finish.h).
 *
 *   runs in    a zygote's child, holding the interpreter's lock
 *   threads    the main one
 */
#pragma once

#include <stdbool.h>

struct report;

struct program_end {
	int status;       /* what exit() is given */
	bool interrupted; /* by a KeyboardInterrupt that nobody caught: die by SIGINT */
	bool exited;      /* by SystemExit */
};

/* Once, in the zygote: look up what every run needs. 0, or -1 with an exception set. */
int program_init(void);

/* Hide the agent's frames and put a fresh "__main__" into place, with the path at which
 * every program is. 0 or -1. */
int program_prepare(void);

/* The "__main__" that is in place is that of another file: `path`, seen from /workspace. 0 or -1. */
int program_move(const char *path);

/* In an interpreter that was started for the file `path`, absolute, and has not begun with it: the
 * "__main__" that it has made is that of this file. 0 or -1. */
int program_adopt(const char *path);

/* Run the file r->path in the "__main__" that is in place, and tell what `r` asks for. */
struct program_end program_run(const struct report *r);
