/* Keeps the tables of docs/api.md equal to the tables in the code.
 *
 * usage: api-reference [--write] docs/api.md
 *
 * The part between the two marks is made from src/api/fields.c and
 * src/api/reply_fields.c. Without --write: says whether the file is up to date.
 */
#include "api/documents.h"
#include "base/io.h"
#include "base/own.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BEGIN_MARK "<!-- made by tools/api-reference.c: begin -->\n"
#define END_MARK   "<!-- made by tools/api-reference.c: end -->\n"
#define FILE_MAX   (256 * 1024)

/* The defaults of SETTINGS. 0: the host decides. */
static const struct settings defaults = {
	.def = { .timeout_us = 3000000, .memory_bytes = 64 << 20, .cpu_milli = 500, .pids = 32 },
	.max = { .timeout_us = 300000000, .pids = 512 },
	.output_bytes = 1 << 20,
};

static char *with_tables(const char *page)
{
	const char *begin = strstr(page, BEGIN_MARK), *end = strstr(page, END_MARK);
	cleanup_free char *tables = api_reference_md(&defaults, NULL);
	char *text = NULL;

	if (!begin || !end || end < begin || !tables)
		return NULL;
	begin += strlen(BEGIN_MARK);
	if (asprintf(&text, "%.*s\n%s\n%s", (int)(begin - page), page, tables, end) < 0)
		return NULL;
	return text;
}

static int write_page(const char *path, const char *text)
{
	cleanup_fd int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd < 0 || io_write_all(fd, text, strlen(text)) < 0;
}

int main(int argc, char **argv)
{
	bool write = argc == 3 && strcmp(argv[1], "--write") == 0;
	const char *path = argv[argc - 1];
	cleanup_free char *page = malloc(FILE_MAX), *want = NULL;

	if (argc != 2 && !write) {
		(void)fprintf(stderr, "usage: api-reference [--write] docs/api.md\n");
		return 2;
	}
	if (!page || io_read_text(AT_FDCWD, path, page, FILE_MAX) < 0) {
		perror(path);
		return 1;
	}
	want = with_tables(page);
	if (!want) {
		(void)fprintf(stderr, "%s: the two marks are not there\n", path);
		return 1;
	}
	if (strcmp(page, want) == 0)
		return 0;
	if (write)
		return write_page(path, want);
	(void)fprintf(stderr, "%s is out of date: run api-reference --write %s\n", path, path);
	return 1;
}
