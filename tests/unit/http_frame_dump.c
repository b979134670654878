/* Reads byte streams and prints how the codec frames each: what the comparison with another
 * HTTP parser (tests/e2e/test_http_oracle.py) reads.
 *
 *   http_frame_dump           records on stdin, for each the text of http_frames.h, then a
 *                             line "=" with the number of bytes that complete requests took
 *   http_frame_dump --cases   the table of known cases as records on stdout
 *
 * A record is a length in 4 bytes, little-endian, and that many bytes.
 */
#include "http_cases.h"
#include "http_frames.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define RECORD_MAX (64u * 1024)

static int write_record(const char *bytes, size_t len)
{
	unsigned char head[4] = { (unsigned char)len, (unsigned char)(len >> 8),
		(unsigned char)(len >> 16), (unsigned char)(len >> 24) };

	return fwrite(head, 1, sizeof(head), stdout) == sizeof(head) &&
	       fwrite(bytes, 1, len, stdout) == len;
}

static int dump_cases(void)
{
	for (size_t i = 0; i < http_case_count; i++) {
		size_t len;
		char *bytes = http_case_bytes(&http_cases[i], &len);
		int good = len > RECORD_MAX || write_record(bytes, len);

		free(bytes);
		if (!good)
			return EXIT_FAILURE;
	}
	return EXIT_SUCCESS;
}

/* 1 with a record, 0 at the end of the input, -1 for one that is cut or too long. */
static int read_record(char *bytes, size_t *ret_len)
{
	unsigned char head[4];
	size_t n = fread(head, 1, sizeof(head), stdin);

	if (n == 0)
		return 0;
	*ret_len = head[0] | (size_t)head[1] << 8 | (size_t)head[2] << 16 | (size_t)head[3] << 24;
	if (n < sizeof(head) || *ret_len > RECORD_MAX)
		return -1;
	return fread(bytes, 1, *ret_len, stdin) == *ret_len ? 1 : -1;
}

int main(int argc, char **argv)
{
	static char bytes[RECORD_MAX];
	struct frames f;
	size_t len;
	int r;

	if (argc > 1 && strcmp(argv[1], "--cases") == 0)
		return dump_cases();
	while ((r = read_record(bytes, &len)) > 0) {
		frames_init(&f);
		frames_feed(&f, bytes, len);
		frames_end(&f, len);
		(void)printf("%s=%zu\n", f.text, f.taken);
	}
	return r < 0 || fflush(stdout) != 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
