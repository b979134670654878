#include "unit.h"

#include "api/runtimes.h"
#include "api_settings.h"
#include "base/fault.h"
#include "edge/config/document.h"
#include "edge/config/languages.h"
#include "edge/config/runtime.h"
#include "wire/language.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REST "main-file: m\ninventory: x\nargv: [/x]\nroots: [/x]\n"

static struct languages all;
static languages_set operators;

/* The records of manifests with these texts before REST, each of the folder in front of "|". */
static int read_all(const char *const *list, size_t n, bool own, struct fault *f)
{
	static char records[32768];
	size_t len = 0;

	*f = (struct fault){ 0 };
	for (size_t i = 0; i < n; i++) {
		size_t folder = strcspn(list[i], "|");

		len += (size_t)snprintf(records + len, sizeof(records) - len, "%s%.*s=%s\n" REST,
			       own ? "@" : "", (int)folder, list[i], list[i] + folder + 1) +
		       1;
		assert_true(len < sizeof(records));
	}
	return languages_read(&all, own ? &operators : NULL, records, len, f);
}

static int begin(void **state)
{
	(void)state;
	all.count = 0;
	operators = 0;
	return 0;
}

static void the_default_language_is_the_first_one(void **state)
{
	const char *const list[] = { "ada|name: ada", "c|name: c", "python|name: python",
		"zig|name: zig" };
	const char *const order[] = { "python", "ada", "c", "zig" };
	struct fault f;

	(void)state;
	assert_int_equal(read_all(list, 4, false, &f), 0);
	assert_int_equal(languages_settle(&all, operators, &f), 0);
	assert_int_equal(all.count, 4);
	for (unsigned i = 0; i < 4; i++)
		assert_string_equal(all.of[i].runtime.name, order[i]);
}

static void an_operators_manifest_takes_the_place_of_ours(void **state)
{
	const char *const ours[] = { "c|name: c\npackage: gcc", "python|name: python" };
	const char *const own[] = { "c|name: c\npackage: tcc", "d|name: d" };
	struct fault f;

	(void)state;
	assert_int_equal(read_all(ours, 2, false, &f), 0);
	assert_int_equal(read_all(own, 2, true, &f), 0);
	assert_int_equal(languages_settle(&all, operators, &f), 0);
	assert_int_equal(all.count, 3);
	assert_string_equal(all.of[1].offer.package, "tcc");
	assert_string_equal(all.of[2].runtime.name, "d");
}

static void settings_among_the_records_are_no_manifests(void **state)
{
	static const char records[] = "--max-runs=3\0GLOVEBOX_CPU=1\0@c=name: c\n" REST;
	struct fault f = { 0 };

	(void)state;
	assert_int_equal(languages_read(&all, &operators, records, sizeof(records), &f), 0);
	assert_int_equal(all.count, 1);
}

static void a_name_that_stands_for_two_is_refused(void **state)
{
	static const struct {
		const char *list[2];
		const char *said;
	} rows[] = {
		{ { "a|name: a\naliases: [b]", "b|name: b" },
			"a/runtime.yaml: \"b\" is also a name of b" },
		{ { "a|name: a", "b|name: b\naliases: [x, a]" }, "\"a\" is also a name of b" },
		{ { "a|name: a\naliases: [x]", "b|name: b\naliases: [x]" },
			"\"x\" is also a name of b" },
	};
	struct fault f;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		all.count = 0;
		assert_int_equal(read_all(rows[i].list, 2, false, &f), 0);
		assert_true(languages_settle(&all, operators, &f) < 0);
		if (!strstr(f.text, rows[i].said))
			fail_msg("%s", f.text);
	}
}

static void a_clash_is_told_of_the_manifest_that_the_operator_wrote(void **state)
{
	const char *const ours[] = { "c|name: c\naliases: [x]", "python|name: python" };
	const char *const own[] = { "d|name: d\naliases: [x]" };
	struct fault f;

	(void)state;
	assert_int_equal(read_all(ours, 2, false, &f), 0);
	assert_int_equal(read_all(own, 1, true, &f), 0);
	assert_true(languages_settle(&all, operators, &f) < 0);
	assert_non_null(strstr(f.text, "d/runtime.yaml: \"x\" is also a name of c"));
}

static void a_folder_and_its_language_have_one_name(void **state)
{
	const char *const list[] = { "a|name: b" };
	struct fault f;

	(void)state;
	assert_true(read_all(list, 1, false, &f) < 0);
	assert_non_null(strstr(f.text, "a/runtime.yaml: name is \"b\""));
}

static void more_languages_than_there_is_room_for_are_refused(void **state)
{
	char texts[LANGUAGES_MAX + 1][32];
	const char *list[LANGUAGES_MAX + 1];
	struct fault f;

	(void)state;
	for (unsigned i = 0; i <= LANGUAGES_MAX; i++) {
		(void)snprintf(texts[i], sizeof(texts[i]), "l%u|name: l%u", i, i);
		list[i] = texts[i];
	}
	assert_int_equal(read_all(list, LANGUAGES_MAX, false, &f), 0);
	assert_true(read_all(list + LANGUAGES_MAX, 1, true, &f) < 0);
	assert_non_null(strstr(f.text, "more than 32 languages"));
}

/* ---- one manifest ---- */

static int parse(const char *text, struct language *ret, struct fault *f)
{
	*f = (struct fault){ 0 };
	return runtime_parse(&(struct document){ text, strlen(text), "r" }, ret, f);
}

static void a_mistake_is_told_with_line_and_column(void **state)
{
	static const struct {
		const char *text, *said;
	} rows[] = {
		{ "name: a\nnam: a\n" REST,
			"r line 2, column 1: \"nam\" is no key that is known here; did you mean "
			"\"name\"?" },
		{ "name: a\nmain_file: a\n" REST,
			"r line 2, column 1: \"main_file\" is no key that is known here; did you "
			"mean \"main-file\"?" },
		{ "limits:\n    memory: 1M\n    pid: 3\nname: a\n" REST,
			"r line 3, column 5: \"pid\" is no key that is known here; did you mean "
			"\"pids\"?" },
		/* Known where it should be, and not where it is. */
		{ "limits:\n  pids: 3\nname: a\npids: 4\n" REST, "r line 4, column 1: \"pids\"" },
		{ "name: a\nname: b\n" REST, "r line 2, column 1: \"name\" is there twice" },
		{ "name: a\nlimits:\n  memory: lots\n" REST,
			"r line 3, column 3: limits: memory: \"lots\" is not a size such as" },
		{ "name: a\nlimits:\n  pids: 0\n" REST, "r line 3, column 3: limits: pids: \"0\"" },
		{ "name: a\nfull-proc: maybe\n" REST,
			"r line 2, column 1: full-proc: \"maybe\" is not true or false" },
		{ "name: a\naliases: b\n" REST, "r line 2, column" },
		{ "name: a\n\targv: x\n" REST, "r" },
		{ "name: a\n", "r" },
		{ "", "r: is empty" },
	};
	static struct language l;
	struct fault f;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(parse(rows[i].text, &l, &f) < 0);
		if (strncmp(f.text, rows[i].said, strlen(rows[i].said)) != 0)
			fail_msg("%zu: %s", i, f.text);
	}
}

static void what_no_wire_carries_is_refused(void **state)
{
	static const char *const texts[] = { "name: A\n" REST, "name: \"a b\"\n" REST,
		"name: 7\n" REST, "name: a\naliases: [B]\n" REST,
		"name: a\nlimits: {memory: 1K}\n" REST,
		"name: a\nlimits: {pids: 99999999999}\n" REST,
		"name: a\nlimits: {cpu: 99999}\n" REST, "name: a\nlimits: {timeout: 48h}\n" REST };
	static struct language l;
	struct fault f;

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (parse(texts[i], &l, &f) == 0)
			fail_msg("%s", texts[i]);
	}
}

static void a_text_without_its_end_is_a_fault(void **state)
{
	static struct language good, l;
	struct fault f;

	(void)state;
	assert_int_equal(parse("name: a\n" REST, &good, &f), 0);
	assert_null(language_fault(&good));
#define REFUSE(field)                                  \
	do {                                           \
		l = good;                              \
		memset(l.field, 'x', sizeof(l.field)); \
		assert_non_null(language_fault(&l));   \
	} while (0)
	REFUSE(offer.name);
	REFUSE(offer.aliases[LANGUAGE_ALIASES_MAX - 1]);
	REFUSE(offer.suffixes[0]);
	REFUSE(offer.main_file);
	REFUSE(offer.package);
	REFUSE(offer.inventory);
	REFUSE(runtime.name);
	l = good, l.offer.limits.cpu_time_us = 1;
	assert_non_null(language_fault(&l));
	l = good, l.offer.limits.memory_bytes = LIMIT_MEMORY_MIN_BYTES - 1;
	assert_non_null(language_fault(&l));
	l = good, l.offer.name[0] = 'b';
	assert_non_null(language_fault(&l));
}

/* ---- offers ---- */

static const struct offers offers = {
	.count = 2,
	.of = { { .name = "python", .main_file = "main.py", .aliases = { "py" } },
		{ .name = "lua",
			.main_file = "main.lua",
			.package = "lua5.4",
			.aliases = { "lua5.4", "luajit" },
			.limits = { .memory_bytes = UINT64_C(128) << 20, .pids = 4096 } } },
};

static void a_language_is_found_by_name_and_alias_only(void **state)
{
	(void)state;
	assert_int_equal(offers_find(&offers, "python", 6), 0);
	assert_int_equal(offers_find(&offers, "luajit", 6), 1);
	assert_int_equal(offers_find(&offers, "lua5.4", 6), 1);
	assert_int_equal(offers_find(&offers, "lua5.", 5), -1);
	assert_int_equal(offers_find(&offers, "lua\0", 4), -1);
	assert_int_equal(offers_find(&offers, "", 0), -1);
}

static void its_limits_are_the_manifests_but_not_above_the_servers(void **state)
{
	struct run_limits l;

	(void)state;
	offers_limits(&offers, 0, &api_settings, &l);
	assert_memory_equal(&l, &api_settings.def, sizeof(l));
	offers_limits(&offers, 1, &api_settings, &l);
	assert_int_equal(l.memory_bytes, UINT64_C(128) << 20);
	assert_int_equal(l.pids, api_settings.max.pids);
	assert_int_equal(l.timeout_us, api_settings.def.timeout_us);
	assert_int_equal(l.cpu_milli, api_settings.def.cpu_milli);
	offers_limits(&offers, 99, &api_settings, &l);
	assert_memory_equal(&l, &api_settings.def, sizeof(l));
}

/* ---- inventories ---- */

static struct inventory took(const char *text)
{
	struct inventory in = { 0 };

	assert_int_equal(inventory_take(&in, text, strlen(text), false), 0);
	return in;
}

static void an_inventory_is_a_version_and_packages(void **state)
{
	struct inventory in = took("3.11.2\nnumpy 1.24.2\n\nodd one two\nbare\nlast 1");

	(void)state;
	assert_string_equal(in.version, "3.11.2");
	assert_string_equal(in.packages,
		"[{\"name\":\"numpy\",\"version\":\"1.24.2\"},"
		"{\"name\":\"odd\",\"version\":\"one two\"},"
		"{\"name\":\"bare\",\"version\":null},{\"name\":\"last\",\"version\":\"1\"}]");
	inventory_clear(&in);
	in = took("");
	assert_string_equal(in.version, "");
	assert_string_equal(in.packages, "[]");
	inventory_clear(&in);
	in = took("\x1b[31m\xff"
		  "1\n\"\\ \x01\n");
	assert_string_equal(in.version, "?[31m?1");
	assert_string_equal(in.packages, "[{\"name\":\"\\\"\\\\\",\"version\":\"\\u0001\"}]");
	inventory_clear(&in);
}

static void an_inventory_without_end_is_cut(void **state)
{
	static char text[3 * INVENTORY_PACKAGES_MAX + 1000];
	struct inventory in;
	size_t n = 0;

	(void)state;
	for (size_t i = 0; i + 2 < sizeof(text); i += 2)
		memcpy(text + i, "x\n", 2);
	in = took(text);
	for (const char *p = in.packages; (p = strstr(p, "\"x\"")); p++)
		n++;
	assert_true(n > 1000 && n <= INVENTORY_PACKAGES_MAX);
	inventory_clear(&in);
	inventory_lack(&in, INVENTORY_FAILED, "one\nline");
	assert_string_equal(in.why, "one");
}

static void the_document_has_every_language(void **state)
{
	static struct inventory of[LANGUAGES_MAX];
	size_t len;
	char *json;

	(void)state;
	of[0] = took("3.11.2\n");
	inventory_lack(&of[1], INVENTORY_MISSING, "no such file");
	json = api_runtimes_json(&offers, &api_settings, 1, of, &len);
	assert_string_equal(json,
		"{\"default\":\"python\",\"runtimes\":[{\"name\":\"python\",\"aliases\":[\"py\"],"
		"\"start\":\"warm\",\"main_file\":\"main.py\",\"entry_point_suffixes\":[],"
		"\"limits\":{\"timeout_seconds\":3,\"memory_limit_mb\":64,\"cpu_limit\":0.5,"
		"\"pids_limit\":32,\"cpu_time_seconds\":null},\"compiled\":false,\"debian_"
		"package\":\"\","
		"\"installed\":true,\"version\":\"3.11.2\",\"why\":null,\"packages\":[]},"
		"{\"name\":\"lua\",\"aliases\":[\"lua5.4\",\"luajit\"],"
		"\"start\":\"cold\",\"main_file\":\"main.lua\",\"entry_point_suffixes\":[],"
		"\"limits\":{\"timeout_seconds\":3,\"memory_limit_mb\":128,\"cpu_limit\":0.5,"
		"\"pids_limit\":512,\"cpu_time_seconds\":null},\"compiled\":false,\"debian_"
		"package\":\"lua5.4\","
		"\"installed\":false,\"version\":null,\"why\":\"no such file\","
		"\"packages\":null}],\"images\":[]}");
	free(json);
	inventory_clear(&of[0]);
}

static void the_document_tells_of_each_image_how_it_starts_now(void **state)
{
	static struct inventory of[LANGUAGES_MAX];
	struct offers some = offers;
	size_t len;
	char *json;

	(void)state;
	some.count = 4;
	some.of[2] = (struct offer){ .name = "data", .main_file = "main.py", .is_image = 1 };
	some.of[3] = (struct offer){ .name = "alpine", .main_file = "main.sh", .is_image = 1 };
	json = api_runtimes_json(&some, &api_settings, 1u << 2, of, &len);
	assert_non_null(strstr(json,
		"\"images\":[{\"name\":\"data\",\"start\":\"warm\",\"main_file\":\"main.py\","
		"\"limits\":{\"timeout_seconds\":3,"));
	assert_non_null(strstr(json, "{\"name\":\"alpine\",\"start\":\"cold\","));
	/* The languages' own are other bits. */
	assert_null(strstr(strstr(json, "runtimes"), "\"name\":\"python\",\"aliases\":[\"py\"],"
						     "\"start\":\"warm\""));
	free(json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_default_language_is_the_first_one, begin),
		cmocka_unit_test_setup(an_operators_manifest_takes_the_place_of_ours, begin),
		cmocka_unit_test_setup(settings_among_the_records_are_no_manifests, begin),
		cmocka_unit_test_setup(a_name_that_stands_for_two_is_refused, begin),
		cmocka_unit_test_setup(
			a_clash_is_told_of_the_manifest_that_the_operator_wrote, begin),
		cmocka_unit_test_setup(
			a_clash_is_told_of_the_manifest_that_the_operator_wrote, begin),
		cmocka_unit_test_setup(a_folder_and_its_language_have_one_name, begin),
		cmocka_unit_test_setup(more_languages_than_there_is_room_for_are_refused, begin),
		cmocka_unit_test(a_mistake_is_told_with_line_and_column),
		cmocka_unit_test(what_no_wire_carries_is_refused),
		cmocka_unit_test(a_text_without_its_end_is_a_fault),
		cmocka_unit_test(a_language_is_found_by_name_and_alias_only),
		cmocka_unit_test(its_limits_are_the_manifests_but_not_above_the_servers),
		cmocka_unit_test(an_inventory_is_a_version_and_packages),
		cmocka_unit_test(an_inventory_without_end_is_cut),
		cmocka_unit_test(the_document_has_every_language),
		cmocka_unit_test(the_document_tells_of_each_image_how_it_starts_now),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
