/* How many descriptors this process has open: what a test compares before and after.
 *
 *   runs in    unit tests
 */
#pragma once

#include "unit.h"

#include <dirent.h>

static inline unsigned count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned n = 0;

	assert_non_null(dir);
	while (readdir(dir))
		n++;
	(void)closedir(dir);
	return n;
}
