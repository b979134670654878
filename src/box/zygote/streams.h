/* The interpreter's own streams.
 *
 *   runs in    a zygote's child, holding the interpreter's lock
 *   blocks     while nobody reads what is written
 */
#pragma once

/* Once, in the zygote. 0, or -1 with an exception set. */
int streams_init(void);

/* Flush sys.stdout and sys.stderr, as an interpreter does that ends. -1 when one fails. */
int streams_flush(void);
