/* Runs a fuzz target over the files of its corpus, without a fuzzer: what was once found
 * stays found. `replay FOLDER...`; TAP on stdout.
 */
#include "base/check.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define FILE_MAX (1024u * 1024)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static void replay_file(int dir_fd, const char *name)
{
	static uint8_t bytes[FILE_MAX];
	int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t len;

	CHECK(fd >= 0);
	len = read(fd, bytes, sizeof(bytes));
	CHECK(len >= 0 && len < (ssize_t)sizeof(bytes));
	(void)close(fd);
	(void)LLVMFuzzerTestOneInput(bytes, (size_t)len);
}

int main(int argc, char **argv)
{
	int files = 0;

	for (int i = 1; i < argc; i++) {
		DIR *dir = opendir(argv[i]);
		struct dirent *e;

		CHECK(dir);
		while ((e = readdir(dir))) {
			if (e->d_name[0] == '.')
				continue;
			replay_file(dirfd(dir), e->d_name);
			/* A crash ends the output before its plan, which is a failure. */
			(void)printf("ok %d - %s\n", ++files, e->d_name);
			(void)fflush(stdout);
		}
		(void)closedir(dir);
	}
	(void)printf("1..%d\n", files);
	return files > 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
