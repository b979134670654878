/* Arguments, environment and files for a program in a warm interpreter, so that it finds them as
 * after a cold start. Where a warm interpreter cannot be that, it says so: then it is executed
 * anew in the same process, which is a cold start.
 *
 *   runs in    a zygote's child, holding the interpreter's lock, before the program
 *   trusts     no byte of the inputs
 */
#pragma once

#include "wire/inputs.h"

#include <stdbool.h>

struct _object; /* PyObject */
struct fault;

/* Would this interpreter run another program than a new one, or run it differently? */
bool zygote_inputs_need_cold(const struct inputs *in) __attribute__((nonnull));

/* Let `arrange`, the agent's function, put them into sys and os; the program's file, if it is
 * another one than usual, becomes that of "__main__". */
int zygote_inputs_arrange(struct _object *arrange, const struct inputs *in, struct fault *f)
	__attribute__((nonnull));
