/* A kernel that answers another way than the one the tests run on: bare system calls that this
 * program makes (syscall(), linked with -Wl,--wrap=syscall) as a test says.
 *
 *   runs in    unit tests
 */
#pragma once

#include <stdbool.h>

/* True, and what the call returns (a negative errno for a failure); or false: the kernel is asked. */
typedef bool other_answer_fn(long number, const long args[6], long *ret);

/* From now on `answer` is asked first; NULL: nobody. */
void other_kernel(other_answer_fn *answer);

/* What the kernel itself returns: the result, or a negative errno. */
long same_kernel(long number, const long args[6]);
