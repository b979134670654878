/* Fuzz target: what others write into our log. A relayed stream, cut in any way, at any time;
 * a quoted value. Checks, beyond memory errors, that each line that comes out begins as a
 * relayed one, is printable and no longer than a line may be, and that a quoted value cannot
 * end before its end.
 */
#include "base/clock.h"
#include "base/log.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#define MARK "relay=front "

static int out_fd = -1; /* in the place of stderr, while the relay writes */

static void check_quoted(const uint8_t *bytes, size_t len)
{
	char *block = fuzz_block(bytes, len);
	const struct log_quoted q = log_quote(block, len);
	size_t n = strnlen(q.text, sizeof(q.text));

	free(block);
	CHECK(n >= 2 && n < sizeof(q.text) && q.text[0] == '"' && q.text[n - 1] == '"');
	for (size_t i = 1; i < n - 1; i++) {
		CHECK((unsigned char)q.text[i] >= 0x20 && (unsigned char)q.text[i] < 0x7f);
		if (q.text[i] == '\\')
			CHECK(++i < n - 1);
		else
			CHECK(q.text[i] != '"');
	}
}

static void relay(struct fuzz *z)
{
	struct log_relay r = { .from = "front" };
	uint64_t now = NS_PER_S;

	while (z->len > 0) {
		uint8_t how = fuzz_u8(z);
		size_t n;
		const uint8_t *p = fuzz_take(z, how, &n);
		char *block = fuzz_block(p, n);

		now += (uint64_t)fuzz_u8(z) * 10 * NS_PER_MS;
		/* A flood, now and then. */
		for (unsigned i = how % 16 == 15 ? 400 : 1; i > 0; i--)
			log_relay(&r, now, block, n);
		free(block);
	}
	log_relay_end(&r, now);
}

static void check_line(const char *line, size_t len)
{
	/* The relay's own word on what it dropped is a line of ours. */
	CHECK(strncmp(line, MARK, sizeof(MARK) - 1) == 0 || memmem(line, len, " ev=relay", 9) ||
		memmem(line, len, "lines=", 6));
	for (size_t i = 0; i < len; i++)
		CHECK((unsigned char)line[i] >= 0x20 && (unsigned char)line[i] < 0x7f);
}

static void check_lines(void)
{
	static char text[1 << 20];
	ssize_t n = pread(out_fd, text, sizeof(text) - 1, 0);
	char *line = text, *end;

	CHECK(n >= 0);
	text[n] = '\0';
	CHECK(strlen(text) == (size_t)n);
	for (; (end = strchr(line, '\n')); line = end + 1)
		check_line(line, (size_t)(end - line));
	CHECK(*line == '\0' || n == sizeof(text) - 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz z = { bytes, len };
	int keep;

	if (out_fd < 0)
		out_fd = memfd_create("log", MFD_CLOEXEC);
	check_quoted(bytes, len);
	CHECK(ftruncate(out_fd, 0) == 0 && lseek(out_fd, 0, SEEK_SET) == 0);
	keep = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 100);
	CHECK(dup2(out_fd, STDERR_FILENO) == STDERR_FILENO);
	relay(&z);
	CHECK(dup2(keep, STDERR_FILENO) == STDERR_FILENO);
	(void)close(keep);
	check_lines();
	return 0;
}
