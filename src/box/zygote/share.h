/* A zygote's memory, put where its children share it cheaply (kernel/remap.h).
 *
 * What goes there is known never to be discarded in the hope of zeros: the heap that
 * malloc() grows by brk(), the arenas of the interpreter's own allocator, and the data of
 * programs and libraries that they or the dynamic linker have written. malloc()'s large blocks do not: realloc() would grow their
 * mapping beyond the end of the file. Nor does what else a module has mapped for itself.
 *
 *   runs in    a zygote
 */
#pragma once

struct fault;

/* Before the imports: note the arenas from here on. */
void share_begin(void);

/* After the last import and the last thing that is allocated for good. Nothing happens to
 * the contents. */
int share_memory(struct fault *f) __attribute__((nonnull, warn_unused_result));
