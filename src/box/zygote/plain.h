/* Can the end of a run be noticed from inside?
 *
 * An interpreter that ends takes apart what there is, so that finalizers run. When the run
 * has left nothing behind that has one, taking it apart would cost time, and copies of the
 * pages it writes to, for nothing.
 *
 *   runs in    a zygote's child, holding the interpreter's lock
 */
#pragma once

#include <stdbool.h>

/* Once, in the zygote. 0, or -1 with an exception set. */
int plain_init(void);

/* Everything that has come to be since the zygote, if it is little, is such that its death
 * runs no code: no instance of a class, no class, no generator, no file, no weak reference;
 * and nobody watches the collector. Only looks. */
bool plain_end(void);
