/* The end of a test's own folder.
 *
 *   runs in    unit tests
 */
#pragma once

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>

static inline int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* It and all that is in it. 0, or what nftw() says of what it could not remove. */
static inline int remove_folder(const char *path)
{
	return nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}
