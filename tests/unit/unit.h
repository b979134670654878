/* cmocka with the headers that it expects before it. Tests include this one first.
 *
 *   runs in    unit tests
 */
#pragma once

/* clang-format off */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>
/* clang-format on */
