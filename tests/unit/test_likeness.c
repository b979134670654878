#include "unit.h"

#include "base/check.h"
#include "base/likeness.h"

#include <string.h>

static unsigned far(const char *word, const char *known)
{
	return likeness(word, strlen(word), known);
}

static void what_somebody_may_have_meant_is_near(void **state)
{
	static const struct {
		const char *word, *known;
		unsigned far;
	} rows[] = {
		{ "Python", "python", 0 },
		{ "max_runs", "max-runs", 0 },
		{ "pyhton", "python", 1 },
		{ "timeuot", "timeout", 1 },
		{ "javscript", "javascript", 1 },
		{ "jz", "js", 1 },
		{ "pyton3", "python3", 1 },
		{ "timout", "timeout", 1 },
		{ "python3.11", "python", 3 },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(far(rows[i].word, rows[i].known), rows[i].far);
}

static void what_is_another_word_is_not(void **state)
{
	static const char *const rows[][2] = { { "cobol", "python" }, { "go", "js" }, { "r", "c" },
		{ "c99", "c" }, { "", "c" }, { "x", "" }, { "lisp", "list-of-things" },
		{ "cpu", "pids" }, { "perl", "ruby" } };
	char word[LIKENESS_MAX + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		assert_int_equal(far(rows[i][0], rows[i][1]), LIKENESS_NONE);
	memset(word, 'a', sizeof(word) - 1);
	word[sizeof(word) - 1] = '\0';
	assert_int_equal(far(word, word), LIKENESS_NONE);
	assert_int_equal(far(word + 1, word + 1), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_somebody_may_have_meant_is_near),
		cmocka_unit_test(what_is_another_word_is_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
