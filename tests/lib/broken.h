/* A program in which one layer of the cage is not there, although everything says that it is:
 * tests/e2e/test_selftest.py writes the layer's number into this block, in each image that
 * the program file holds, and what is shipped has no such block.
 */
#pragma once

#include <stdint.h>

#define BROKEN_MAGIC "broken layer 1\n" /* 16 bytes with its NUL; nowhere else */

struct broken {
	char magic[16];
	uint32_t layer; /* enum layer + 1; 0: none */
};
