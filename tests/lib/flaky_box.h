/* A box whose Nth system call fails: tests patch this block inside the program's image
 * before they seal it, and a constructor arms flaky.h from it.
 */
#pragma once

#include <stdint.h>

#define FLAKY_BOX_MAGIC "flaky box 1\n\xf5\xa1\x0c" /* 16 bytes with its NUL; nowhere else */

struct flaky_box {
	char magic[16];
	uint32_t role; /* 0: none, 1: init, 2: enter */
	uint32_t nth;
	int32_t code;
};
