/* Fuzz target: quantities as people write them. Checks, beyond memory errors, that what is
 * refused leaves the result alone, that what is taken is of the strict form, and that each
 * digit more makes no number smaller.
 */
#include "base/quantity.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <stdbool.h>

typedef int parse_fn(const char *text, uint64_t *ret);

static void check(parse_fn *parse, const char *text)
{
	uint64_t value = 4242, again = 4242;
	int r = parse(text, &value);

	CHECK(r == 0 || r == -EINVAL || r == -ERANGE);
	if (r < 0) {
		CHECK(value == 4242);
		return;
	}
	/* A digit or a point first, and never a leading zero before another digit. */
	CHECK(text[0] >= '0' && text[0] <= '9');
	CHECK(!(text[0] == '0' && text[1] >= '0' && text[1] <= '9'));
	CHECK(!strpbrk(text, " \t+-xX"));
	CHECK(parse(text, &again) == 0 && again == value);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	static parse_fn *const all[] = { quantity_size, quantity_mib, quantity_duration,
		quantity_cpus, quantity_count };
	char *text = malloc(len + 1);
	bool yes;

	CHECK(text);
	memcpy(text, bytes, len);
	text[len] = '\0';
	for (unsigned i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		check(all[i], text);
	if (quantity_bool(text, &yes) == 0)
		CHECK(strcmp(text, yes ? "true" : "false") == 0);
	free(text);
	return 0;
}
