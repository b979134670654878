/* Python's exceptions as faults.
 *
 *   runs in    a zygote and its children, holding the interpreter's lock
 */
#pragma once

struct fault;

/* Take the exception that is set, as "what: Type: text". Returns f->code. */
int python_fault(struct fault *f, const char *what) __attribute__((nonnull));
