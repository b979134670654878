/* Whether gates can be started, told before anybody needs one. Root. */
#include "unit.h"

#include "base/fault.h"
#include "base/own.h"
#include "kernel/process.h"
#include "priv/launch/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A program of the host's in the gate's place. */
static int check(const char *path, struct fault *f)
{
	static char bytes[1 << 20];
	cleanup_fd int from = open(path, O_RDONLY | O_CLOEXEC), image = -1;
	ssize_t n = read(from, bytes, sizeof(bytes));

	assert_true(n > 0 && (size_t)n < sizeof(bytes));
	assert_int_equal(process_image("glovebox-gate", bytes, (size_t)n, &image, f), 0);
	*f = (struct fault){ 0 };
	return gate_check(image, f);
}

/* As the gate's main() does without a channel. */
static void one_that_reaches_its_main_is_fine(void **state)
{
	struct fault f;

	(void)state;
	assert_int_equal(check("/bin/false", &f), 0);
	assert_int_equal(f.code, 0);
}

static void one_that_does_not_is_told_with_what_helps(void **state)
{
	struct fault f;

	(void)state;
	assert_int_equal(check("/bin/true", &f), -ENOPKG); /* nor as the linker's 127 would */
	assert_non_null(strstr(f.text, "ended with 0"));
	assert_non_null(strstr(f.text, "libslirp0"));
	assert_int_equal(check("/etc/passwd", &f), -ENOPKG); /* is no program */
	assert_non_null(strstr(f.text, "libslirp0"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_reaches_its_main_is_fine),
		cmocka_unit_test(one_that_does_not_is_told_with_what_helps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
