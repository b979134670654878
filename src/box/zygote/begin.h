/* The beginning of a run: what the interpreter counts from its start, or from an import,
 * counts from here.
 *
 *   runs in    a zygote's child, holding the interpreter's lock
 */
#pragma once

/* Once, in the zygote, after the last import. */
void begin_init(void);

/* The program begins now. */
void begin(void);
