#include "unit.h"

#include "api/reply_fields.h"
#include "api/report.h"
#include "wire/report.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ERROR_OF(more)                                                                          \
	"{\"type\":\"E\",\"message\":\"m\",\"line\":3,\"traceback\":[{\"file\":\"f\",\"line\":" \
	"null,"                                                                                 \
	"\"function\":null,\"text\":\"t\"}],\"frames_omitted\":0,\"related\":[],\"related_"     \
	"omitted\":0" more "}"
#define ERROR ERROR_OF("")
#define RESULT                                                                   \
	"{\"repr_length\":5,\"omitted\":[],\"mime\":[[\"text/plain\",\"text\"]," \
	"[\"application/json\",\"json\"],[\"image/png\",\"base64\"]]}"
#define FIGURE "{\"number\":1,\"label\":\"l\",\"mime_type\":\"image/png\",\"omitted\":null}"

/* A memory, and how much of it is written. */
struct memory {
	int fd;
	uint64_t at;
};

static void set_up(struct memory *m)
{
	*m = (struct memory){ .fd = api_report_make() };
	assert_true(m->fd >= 0);
}

static void put_bytes(struct memory *m, const void *bytes, size_t len)
{
	assert_int_equal(pwrite(m->fd, bytes, len, (off_t)m->at), len);
	m->at += len;
}

static void put(struct memory *m, uint32_t kind, const char *bytes)
{
	const struct report_record r = { REPORT_MAGIC, kind, strlen(bytes) };

	put_bytes(m, &r, sizeof(r));
	put_bytes(m, bytes, r.bytes);
}

/* As put(), of `len` times the byte. */
static void put_many(struct memory *m, uint32_t kind, char byte, size_t len)
{
	char *bytes = malloc(len + 1);

	assert_non_null(bytes);
	memset(bytes, byte, len);
	bytes[len] = '\0';
	put(m, kind, bytes);
	free(bytes);
}

static size_t reply_len; /* of the last reply */

/* The reply's members, as an object; what was not read in *ret_bad. */
static json_t *read_back(struct memory *m, const char **ret_bad)
{
	struct api_report report;
	struct writer w = { 0 };
	char *text;
	json_t *v;

	api_report_read(m->fd, &report);
	*ret_bad = report.bad;
	writer_object(&w, NULL);
	api_report_put(&report, &w);
	writer_close(&w);
	api_report_free(&report);
	text = writer_take(&w, &reply_len);
	v = json_loads(text, 0, NULL);
	if (!v)
		fail_msg("no JSON: %s", text);
	free(text);
	(void)close(m->fd);
	return v;
}

static void expect(json_t *v, const char *expected)
{
	json_t *e = json_loads(expected, 0, NULL);
	char *text = json_dumps(v, JSON_COMPACT);

	assert_non_null(e);
	if (!json_equal(v, e))
		fail_msg("%s is not %s", text, expected);
	free(text);
	json_decref(e);
	json_decref(v);
}

#define NOTHING "{\"result\":null,\"error\":null,\"figures\":[]}"

static void nothing_that_was_told_is_nothing(void **state)
{
	struct memory m;
	const char *bad;

	(void)state;
	set_up(&m);
	expect(read_back(&m, &bad), NOTHING);
	assert_null(bad);
}

static void what_was_told_is_in_the_reply(void **state)
{
	struct memory m;
	const char *bad;

	(void)state;
	set_up(&m);
	put(&m, REPORT_KIND_RESULT, RESULT);
	put(&m, REPORT_KIND_DATA, "(1.0)");
	put(&m, REPORT_KIND_DATA, "[1.0, 12345678901234567]");
	put(&m, REPORT_KIND_DATA, "\x89PNG");
	put(&m, REPORT_KIND_ERROR, ERROR);
	put(&m, REPORT_KIND_FIGURE, FIGURE);
	put(&m, REPORT_KIND_DATA, "\xff");
	expect(read_back(&m, &bad),
		"{\"result\":{\"repr\":\"(1.0)\",\"repr_length\":5,\"omitted\":[],\"mime_bundle\":{"
		"\"text/plain\":\"(1.0)\",\"application/json\":[1.0,12345678901234567],"
		"\"image/png\":\"iVBORw==\"}},"
		"\"error\":" ERROR ","
		"\"figures\":[{\"number\":1,\"label\":\"l\",\"mime_type\":\"image/png\","
		"\"omitted\":null,\"bytes\":1,\"base64\":\"/w==\"}]}");
	assert_null(bad);
}

/* Each of these ends the reading, by a text; nothing of it is in the reply. */
static void what_is_not_as_it_should_be_is_not_in_the_reply(void **state)
{
	static const struct {
		uint32_t kind;
		const char *bytes;
	} cases[] = {
		{ 0, "{}" },
		{ 99, "{}" },
		{ REPORT_KIND_DATA, "1" },
		{ REPORT_KIND_ERROR, "" },
		{ REPORT_KIND_ERROR, "{" },
		{ REPORT_KIND_ERROR, "[]" },
		{ REPORT_KIND_ERROR, "{}" },
		{ REPORT_KIND_ERROR, "\"\xff\"" },
		{ REPORT_KIND_ERROR, ERROR " " ERROR },
		{ REPORT_KIND_ERROR, ERROR_OF(",\"status\":\"success\"") },
		{ REPORT_KIND_ERROR, ERROR_OF(",\"type\":\"F\"") },
		{ REPORT_KIND_ERROR, "{\"type\":1,\"message\":\"m\",\"line\":3,\"traceback\":[],"
				     "\"frames_omitted\":0,\"related\":[],\"related_omitted\":0}" },
		{ REPORT_KIND_ERROR,
			"{\"type\":\"E\",\"message\":\"m\",\"line\":-3,\"traceback\":[],"
			"\"frames_omitted\":0,\"related\":[],\"related_omitted\":0}" },
		{ REPORT_KIND_ERROR,
			"{\"type\":\"E\",\"message\":\"m\",\"line\":3,\"traceback\":[{}],"
			"\"frames_omitted\":0,\"related\":[],\"related_omitted\":0}" },
		{ REPORT_KIND_RESULT, RESULT }, /* without its data */
		{ REPORT_KIND_RESULT,
			"{\"repr_length\":5,\"omitted\":[],\"mime\":[[\"a\",\"b\"]]}" },
		{ REPORT_KIND_RESULT,
			"{\"repr_length\":5,\"omitted\":[],\"mime\":[[\"a\\u0000\",\"text\"]]}" },
		{ REPORT_KIND_RESULT,
			"{\"repr_length\":5,\"omitted\":[],\"mime\":[[\"a\",\"text\"],"
			"[\"a\",\"text\"]]}" },
		{ REPORT_KIND_RESULT, "{\"repr_length\":5,\"omitted\":[1],\"mime\":[]}" },
		{ REPORT_KIND_FIGURE, FIGURE },
		{ REPORT_KIND_FIGURE,
			"{\"number\":1e99,\"label\":\"l\",\"mime_type\":\"image/png\","
			"\"omitted\":null}" },
	};
	const char *bad;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct memory m;

		set_up(&m);
		put(&m, cases[i].kind, cases[i].bytes);
		expect(read_back(&m, &bad), NOTHING);
		if (!bad)
			fail_msg("case %zu is not refused: %s", i, cases[i].bytes);
	}
}

/* `object` holds exactly what the table lists for `group`, in its order. */
static void expect_group(json_t *object, enum reply_group group)
{
	void *it;

	assert_true(json_is_object(object));
	it = json_object_iter(object);
	for (size_t i = 0; i < reply_fields_len; i++) {
		const struct reply_field *f = &reply_fields[i];

		if (f->group != group || (f->optional && !json_object_get(object, f->name)))
			continue;
		assert_non_null(it);
		assert_string_equal(json_object_iter_key(it), f->name);
		it = json_object_iter_next(object, it);
	}
	assert_null(it);
}

static void every_object_holds_exactly_what_the_table_says(void **state)
{
	const json_t *error, *related;
	struct memory m;
	const char *bad;
	json_t *v;

	(void)state;
	set_up(&m);
	put(&m, REPORT_KIND_RESULT, "{\"repr_length\":1,\"omitted\":[],\"mime\":[]}");
	put(&m, REPORT_KIND_ERROR,
		"{\"related_omitted\":0,\"type\":\"E\",\"message\":\"m\",\"line\":3,\"traceback\":["
		"{"
		"\"file\":\"f\",\"line\":null,\"function\":null,\"text\":\"t\"}],"
		"\"frames_omitted\":0,\"related\":[{\"relation\":\"cause\",\"type\":\"E\","
		"\"message\":\"m\",\"line\":3,\"traceback\":[],\"frames_omitted\":0}]}");
	put(&m, REPORT_KIND_FIGURE, FIGURE);
	put(&m, REPORT_KIND_DATA, "");
	v = read_back(&m, &bad);
	assert_null(bad);
	error = json_object_get(v, "error");
	related = json_object_get(error, "related");
	expect_group(json_object_get(v, "result"), REPLY_RESULT);
	expect_group(json_object_get(v, "error"), REPLY_ERROR);
	expect_group(json_array_get(json_object_get(error, "traceback"), 0), REPLY_FRAME);
	expect_group(json_array_get(related, 0), REPLY_RELATED);
	expect_group(json_array_get(json_object_get(v, "figures"), 0), REPLY_FIGURE);
	json_decref(v);
}

static void what_came_before_a_fault_stands(void **state)
{
	struct memory m;
	const char *bad;

	(void)state;
	set_up(&m);
	put(&m, REPORT_KIND_ERROR, ERROR);
	put(&m, REPORT_KIND_ERROR, ERROR);
	put(&m, REPORT_KIND_FIGURE, FIGURE);
	expect(read_back(&m, &bad), "{\"result\":null,\"error\":" ERROR ",\"figures\":[]}");
	assert_string_equal(bad, "a second error, or one that is not as it should be");
}

static void a_value_that_is_no_json_is_not_passed_on(void **state)
{
	static const char *const values[] = { "", "1,2", "]", "nan", "{\"a\":1", "\"\\ud800\"",
		"1}", "123456789012345678901234567890", "{\"a\":1,\"a\":2}" };
	const char *bad;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		struct memory m;

		set_up(&m);
		put(&m, REPORT_KIND_RESULT,
			"{\"repr_length\":5,\"omitted\":[],\"mime\":[[\"application/"
			"json\",\"json\"]]}");
		put(&m, REPORT_KIND_DATA, values[i]);
		expect(read_back(&m, &bad), NOTHING);
		assert_string_equal(bad, "a value that is no JSON");
	}
}

static void text_that_is_not_utf_8_is_replaced(void **state)
{
	struct memory m;
	const char *bad;

	(void)state;
	set_up(&m);
	put(&m, REPORT_KIND_FIGURE,
		"{\"number\":2,\"label\":\"\",\"mime_type\":\"image/svg+xml\",\"omitted\":null}");
	put(&m, REPORT_KIND_DATA, "<svg\xff\"/>");
	expect(read_back(&m, &bad),
		"{\"result\":null,\"error\":null,\"figures\":[{\"number\":2,\"label\":\"\","
		"\"mime_type\":\"image/svg+xml\",\"omitted\":null,\"bytes\":8,"
		"\"text\":\"<svg\\ufffd\\\"/>\"}]}");
	assert_null(bad);
}

/* Brackets, deep and many, that would cost far more than they are. */
static void what_would_cost_much_to_parse_is_not_parsed(void **state)
{
	const char *bad;
	char *text;

	(void)state;
	for (int many = 0; many < 2; many++) {
		const size_t len = many ? (512 << 10) : 1000;
		struct memory m;

		text = calloc(1, len + 1);
		assert_non_null(text);
		/* [[[…]]] and [0,0,…0] */
		for (size_t i = 0; i < len; i++)
			text[i] = many ? (i % 2 ? ',' : '0') : i < len / 2 ? '[' : ']';
		if (many) {
			text[0] = '[';
			text[1] = ' ';
			text[len - 1] = ']';
		}
		set_up(&m);
		put(&m, REPORT_KIND_ERROR, text);
		free(text);
		expect(read_back(&m, &bad), NOTHING);
		assert_string_equal(bad, "a record that is no JSON");
	}
}

static void more_figures_than_are_taken_are_refused(void **state)
{
	struct memory m;
	const char *bad;
	json_t *v;

	(void)state;
	set_up(&m);
	for (unsigned i = 0; i <= API_REPORT_FIGURES_MAX; i++) {
		put(&m, REPORT_KIND_FIGURE, FIGURE);
		put(&m, REPORT_KIND_DATA, "x");
	}
	v = read_back(&m, &bad);
	assert_int_equal(json_array_size(json_object_get(v, "figures")), API_REPORT_FIGURES_MAX);
	assert_string_equal(bad, "more figures than are taken");
	json_decref(v);
}

#define MIB (1u << 20)
#define RESULT_OF(type, how) \
	"{\"repr_length\":1,\"omitted\":[],\"mime\":[[\"" type "\",\"" how "\"]]}"
#define SVG "{\"number\":1,\"label\":\"\",\"mime_type\":\"image/svg+xml\",\"omitted\":null}"

/* Each byte of it takes six in the reply, and that twice, as it is the repr() too. */
static void a_text_that_would_take_too_much_of_the_reply_is_left_out(void **state)
{
	struct memory m;
	const char *bad;

	(void)state;
	set_up(&m);
	put(&m, REPORT_KIND_RESULT, RESULT_OF("text/plain", "text"));
	put_many(&m, REPORT_KIND_DATA, 1, MIB);
	expect(read_back(&m, &bad),
		"{\"result\":{\"repr\":null,\"repr_length\":1,\"omitted\":[\"text/plain: 1048576 "
		"bytes "
		"would take more of the answer than there is room for\"],\"mime_bundle\":{}},"
		"\"error\":null,\"figures\":[]}");
	assert_null(bad);
}

static void what_there_is_room_for_comes_and_the_rest_is_said_to_be_left_out(void **state)
{
	const unsigned come = API_REPORT_ITEMS_BYTES / (6 * MIB / 4);
	const json_t *figures;
	struct memory m;
	const char *bad;
	json_t *v;

	(void)state;
	set_up(&m);
	for (unsigned i = 0; i < 12; i++) {
		put(&m, REPORT_KIND_FIGURE, SVG);
		put_many(&m, REPORT_KIND_DATA, 1, MIB / 4);
	}
	v = read_back(&m, &bad);
	assert_null(bad);
	figures = json_object_get(v, "figures");
	assert_int_equal(json_array_size(figures), 12);
	for (unsigned i = 0; i < 12; i++) {
		const json_t *f = json_array_get(figures, i);

		assert_int_equal(json_is_null(json_object_get(f, "omitted")), i < come);
		assert_int_equal(json_is_null(json_object_get(f, "text")), i >= come);
		assert_int_equal(
			json_integer_value(json_object_get(f, "bytes")), i < come ? MIB / 4 : 0);
	}
	assert_in_range(reply_len, come * 6 * MIB / 4, API_REPORT_ITEMS_BYTES + 65536);
	json_decref(v);
}

/* As much as an honest program can have: all of it images. */
static void a_memory_full_of_images_is_in_the_reply(void **state)
{
	struct memory m;
	const char *bad;
	json_t *v;

	(void)state;
	set_up(&m);
	put(&m, REPORT_KIND_FIGURE, FIGURE);
	put_many(&m, REPORT_KIND_DATA, 'x', REPORT_BYTES - m.at - sizeof(struct report_record));
	v = read_back(&m, &bad);
	assert_null(bad);
	assert_in_range(reply_len, REPORT_BYTES * 4 / 3 - 256, REPORT_BYTES * 4 / 3 + 256);
	json_decref(v);
}

static void a_value_is_not_longer_than_the_interpreter_makes_one(void **state)
{
	static const struct {
		const char *result, *bad;
		unsigned count;
		size_t bytes;
		char byte;
	} cases[] = {
		{ RESULT_OF("a", "base64"), "a result that is longer than one can be", 1, MIB + 1,
			'x' },
		{ "{\"repr_length\":1,\"omitted\":[],\"mime\":[[\"a\",\"base64\"],[\"b\","
		  "\"base64\"],"
		  "[\"c\",\"base64\"],[\"d\",\"base64\"]]}",
			"a result that is longer than one can be", 4, 800000, 'x' },
		{ "{\"repr_length\":1,\"omitted\":[],\"mime\":[[\"a\",\"json\"],[\"b\",\"json\"]]}",
			"a value with more JSON than is taken", 2, 140000, '1' },
	};
	const char *bad;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct memory m;

		set_up(&m);
		put(&m, REPORT_KIND_RESULT, cases[i].result);
		for (unsigned k = 0; k < cases[i].count; k++) {
			/* JSON that costs nothing to parse. */
			if (cases[i].byte == '1') {
				char *text = malloc(cases[i].bytes + 1);

				assert_non_null(text);
				memset(text, ' ', cases[i].bytes);
				text[0] = '1';
				text[cases[i].bytes] = '\0';
				put(&m, REPORT_KIND_DATA, text);
				free(text);
			} else {
				put_many(&m, REPORT_KIND_DATA, cases[i].byte, cases[i].bytes);
			}
		}
		expect(read_back(&m, &bad), NOTHING);
		assert_string_equal(bad, cases[i].bad);
	}
}

/* Labels, not figures. */
static void what_is_told_in_words_has_an_end_too(void **state)
{
	char *label = malloc(200001), *text;
	struct memory m;
	const char *bad;
	json_t *v;

	(void)state;
	assert_non_null(label);
	memset(label, 'l', 200000);
	label[200000] = '\0';
	assert_true(asprintf(&text,
			    "{\"number\":1,\"label\":\"%s\",\"mime_type\":\"image/"
			    "png\",\"omitted\":null}",
			    label) > 0);
	set_up(&m);
	for (unsigned i = 0; i < 15; i++) {
		put(&m, REPORT_KIND_FIGURE, text);
		put(&m, REPORT_KIND_DATA, "");
	}
	free(label);
	free(text);
	v = read_back(&m, &bad);
	assert_string_equal(bad, "more is told than is taken");
	assert_int_equal(json_array_size(json_object_get(v, "figures")), 10);
	assert_true(reply_len < API_REPORT_WORDS_BYTES + 65536);
	json_decref(v);
}

static void a_record_longer_than_the_memory_is_refused(void **state)
{
	static const uint64_t lengths[] = { REPORT_BYTES, REPORT_BYTES - 15, UINT64_MAX };
	const char *bad;

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		const struct report_record r = { REPORT_MAGIC, REPORT_KIND_ERROR, lengths[i] };
		struct memory m;

		set_up(&m);
		put_bytes(&m, &r, sizeof(r));
		expect(read_back(&m, &bad), NOTHING);
		assert_string_equal(bad, "a record is longer than the memory");
	}
}

static void nobody_can_change_the_size_of_the_memory(void **state)
{
	struct stat st;
	struct memory m;

	(void)state;
	set_up(&m);
	assert_int_equal(fstat(m.fd, &st), 0);
	assert_int_equal(st.st_size, REPORT_BYTES);
	assert_int_equal(st.st_blocks, 0);
	assert_int_equal(ftruncate(m.fd, 0), -1);
	assert_int_equal(ftruncate(m.fd, (off_t)REPORT_BYTES + 1), -1);
	assert_int_equal(pwrite(m.fd, "x", 1, (off_t)REPORT_BYTES), -1);
	(void)close(m.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_that_was_told_is_nothing),
		cmocka_unit_test(what_was_told_is_in_the_reply),
		cmocka_unit_test(what_is_not_as_it_should_be_is_not_in_the_reply),
		cmocka_unit_test(every_object_holds_exactly_what_the_table_says),
		cmocka_unit_test(what_came_before_a_fault_stands),
		cmocka_unit_test(a_value_that_is_no_json_is_not_passed_on),
		cmocka_unit_test(text_that_is_not_utf_8_is_replaced),
		cmocka_unit_test(what_would_cost_much_to_parse_is_not_parsed),
		cmocka_unit_test(more_figures_than_are_taken_are_refused),
		cmocka_unit_test(a_text_that_would_take_too_much_of_the_reply_is_left_out),
		cmocka_unit_test(what_there_is_room_for_comes_and_the_rest_is_said_to_be_left_out),
		cmocka_unit_test(a_memory_full_of_images_is_in_the_reply),
		cmocka_unit_test(a_value_is_not_longer_than_the_interpreter_makes_one),
		cmocka_unit_test(what_is_told_in_words_has_an_end_too),
		cmocka_unit_test(a_record_longer_than_the_memory_is_refused),
		cmocka_unit_test(nobody_can_change_the_size_of_the_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
