/* An interpreter taken apart: its modules, in the order of Py_FinalizeEx() and with what
 * that shows to a program's own finalizers, but only as far as the run made them.
 *
 *   runs in    a zygote's child, holding the interpreter's lock
 */
#pragma once

/* Once, in the zygote, after the last import: note what is there. 0, or -1 with an
 * exception set. */
int apart_init(void);

void apart_take(void);

/* Back to what apart_init() saw, after a rehearsal. */
void apart_undo(void);
