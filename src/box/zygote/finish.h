/* The end of a run: what the interpreter does when main() returns, to what the run made.
 * What the zygote made stays where it is, because taking it apart would touch, and so
 * copy, every page of it.
 *
 *   runs in    a zygote's child, holding the interpreter's lock
 *   threads    the main one; joins those that are no daemons
 *   blocks     until those have ended
 */
#pragma once

#include "box/zygote/program.h"

/* Once, in the zygote, after the last import: note what is there. 0, or -1 with an
 * exception set. */
int finish_init(void);

/* Rehearse the end, and put everything back. In full: with what only a run needs that leaves
 * something to take apart. */
void finish_rehearse(bool in_full);

/* Tell what `r` asks for of what is left, and end the process. */
_Noreturn void finish(struct program_end end, const struct report *r) __attribute__((nonnull));
