#include "tests/lib/flaky_box.h"

#include "tests/lib/flaky.h"
#include "tests/lib/flaky_page.h"

#include <string.h>

/* volatile: the compiler must not know that it is zero. */
static volatile struct flaky_box block __attribute__((used)) = { .magic = FLAKY_BOX_MAGIC };

__attribute__((constructor)) static void arm(int argc, char **argv)
{
	char path[sizeof(block.page)];

	for (unsigned i = 0; i < sizeof(path); i++)
		path[i] = block.page[i];
#ifdef FLAKY_MODULE
	if (path[0])
		flaky_page_open(path, "module");
	return;
#endif
	if (path[0])
		flaky_page_open(path, argc == 2 ? argv[1] : "");
	else if (argc == 2 && block.role == (strcmp(argv[1], "init") == 0 ? 1u : 2u))
		flaky_arm(block.nth, block.code);
}
