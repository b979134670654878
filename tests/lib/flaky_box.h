/* Programs whose Nth system call fails: tests patch this block inside the program's image
 * before they seal or start it, and a constructor arms flaky.h from it. The whole server
 * (glovebox-flaky) has it three times: in itself, in its box and in its zygote's module.
 */
#pragma once

#include <stdint.h>

#define FLAKY_BOX_MAGIC "flaky box 1\n\xf5\xa1\x0c" /* 16 bytes with its NUL; nowhere else */

struct flaky_box {
	char magic[16];
	uint32_t role; /* of box_flaky: 0: none, 1: init, 2: enter */
	uint32_t nth;
	int32_t code;
	char page[68]; /* the path of a flaky_page.h, which then says it all; "": none */
};
