#include "tests/lib/flaky_box.h"

#include "tests/lib/flaky.h"

#include <string.h>

/* volatile: the compiler must not know that it is zero. */
static volatile struct flaky_box block __attribute__((used)) = { .magic = FLAKY_BOX_MAGIC };

__attribute__((constructor)) static void arm(int argc, char **argv)
{
	if (argc == 2 && block.role == (strcmp(argv[1], "init") == 0 ? 1u : 2u))
		flaky_arm(block.nth, block.code);
}
