/* What a run leaves behind when it ends: the objects that came to be since the zygote.
 *
 * An interpreter that ends takes apart what there is, so that finalizers run. When a run has
 * left nothing that has one, taking it apart would cost time, and copies of the pages it
 * writes to, for nothing.
 *
 *   runs in    a zygote's child, holding the interpreter's lock
 */
#pragma once

#include <stdbool.h>

/* Once, in the zygote. 0, or -1 with an exception set. */
int remains_init(void);

/* Is all that is left, if it is little, such that its death runs no code: no instance of a
 * class, no class, no generator, no file, no weak reference? And does nobody watch the
 * collector? Only looks. */
bool remains_are_plain(void);

/* Call the finalizers of what still lives after the run's modules are gone: it hangs on
 * something of the zygote's, which is not taken apart. */
void remains_finalize(void);

/* Does a thread of Python's live beside this one? */
bool remains_have_threads(void);
