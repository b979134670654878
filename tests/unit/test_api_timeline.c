#include "unit.h"

#include "api/timeline.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define CAP 64
#define MS  UINT64_C(1000000)

/* Two streams and their order. */
struct scene {
	struct output_capture streams[TIMELINE_STREAMS];
	struct timeline t;
};

static void set_up(struct scene *s)
{
	*s = (struct scene){ 0 };
	output_init(&s->streams[TIMELINE_OUT], CAP);
	output_init(&s->streams[TIMELINE_ERR], CAP);
}

static void write_at(struct scene *s, enum timeline_stream stream, uint64_t ms, const char *bytes)
{
	struct output_capture *o = &s->streams[stream];

	timeline_note(&s->t, stream, o->total, strlen(bytes), ms * MS);
	assert_int_equal(output_feed(o, bytes, strlen(bytes)), 0);
}

/* The list, from 10 ms on. */
static json_t *told(struct scene *s)
{
	const struct output_view views[] = { output_view(&s->streams[TIMELINE_OUT]),
		output_view(&s->streams[TIMELINE_ERR]) };
	struct writer w = { 0 };
	json_t *v, *list;
	char *text;

	writer_object(&w, NULL);
	timeline_put(&s->t, 10 * MS, views, &w);
	writer_close(&w);
	text = writer_take(&w, NULL);
	v = json_loads(text, 0, NULL);
	if (!v)
		fail_msg("no JSON: %s", text);
	list = json_incref(json_object_get(v, "interleaved"));
	free(text);
	json_decref(v);
	timeline_free(&s->t);
	output_free(&s->streams[TIMELINE_OUT]);
	output_free(&s->streams[TIMELINE_ERR]);
	return list;
}

static void expect(struct scene *s, const char *expected)
{
	json_t *v = told(s), *e = json_loads(expected, 0, NULL);
	char *text = json_dumps(v, JSON_COMPACT);

	assert_non_null(e);
	if (!json_equal(v, e))
		fail_msg("%s is not %s", text, expected);
	free(text);
	json_decref(e);
	json_decref(v);
}

#define CHUNK(stream, ms, text, bytes, more)                                                       \
	"{\"stream\":\"" stream "\",\"ms\":" ms ",\"text\":\"" text "\",\"bytes\":" bytes "," more \
	"}"
#define LIST(chunks) "{\"chunks\":[" chunks "],\"chunks_omitted\":0,\"bytes_omitted\":0}"
#define ALL          "\"dropped\":0"

static void nothing_written_is_an_empty_list(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s);
	expect(&s, LIST(""));
}

static void streams_are_one_list_in_the_order_of_reading(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s);
	write_at(&s, TIMELINE_OUT, 9, "a"); /* by a clock that is behind */
	write_at(&s, TIMELINE_ERR, 12, "b");
	write_at(&s, TIMELINE_OUT, 12, "c");
	write_at(&s, TIMELINE_OUT, 15, "d");
	expect(&s, LIST(CHUNK("stdout", "0", "a", "1", ALL) "," CHUNK(
			   "stderr", "2", "b", "1", ALL) "," CHUNK("stdout", "2", "c", "1",
			   ALL) "," CHUNK("stdout", "5", "d", "1", ALL)));
}

static void what_one_stream_writes_at_once_is_one_chunk(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s);
	write_at(&s, TIMELINE_OUT, 11, "a");
	write_at(&s, TIMELINE_OUT, 11, "b");
	write_at(&s, TIMELINE_ERR, 11, "x");
	write_at(&s, TIMELINE_OUT, 11, "c");
	expect(&s, LIST(CHUNK("stdout", "1", "ab", "2", ALL) "," CHUNK(
			   "stderr", "1", "x", "1", ALL) "," CHUNK("stdout", "1", "c", "1", ALL)));
}

static void a_character_comes_with_its_last_byte(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s);
	write_at(&s, TIMELINE_OUT, 11, "a\xe2");
	write_at(&s, TIMELINE_OUT, 13, "\x98");
	write_at(&s, TIMELINE_OUT, 15, "\x83z");
	expect(&s, LIST(CHUNK("stdout", "1", "a", "1", ALL) "," CHUNK(
			   "stdout", "5", "\xe2\x98\x83z", "4", ALL)));
}

static void bytes_that_are_no_text_are_exact_beside_it(void **state)
{
	struct scene s;

	(void)state;
	set_up(&s);
	write_at(&s, TIMELINE_OUT, 11, "ok");
	write_at(&s, TIMELINE_OUT, 13, "a\xff");
	expect(&s, LIST(CHUNK("stdout", "1", "ok", "2", ALL) "," CHUNK(
			   "stdout", "3", "a\\ufffd", "2", ALL ",\"base64\":\"Yf8=\"")));
}

/* Of 64 bytes kept the first and the last 32: chunks in front of the gap, across it and behind. */
static void what_was_dropped_is_counted_where_it_was(void **state)
{
	static const char ten[] = "0123456789";
	struct scene s;

	(void)state;
	set_up(&s);
	for (uint64_t i = 0; i < 10; i++)
		write_at(&s, TIMELINE_OUT, 10 + 2 * i, ten);
	write_at(&s, TIMELINE_ERR, 40, "e");
#define TEN(ms) CHUNK("stdout", ms, "0123456789", "10", ALL) ","
#define GAP(ms) CHUNK("stdout", ms, "", "0", "\"dropped\":10") ","
	expect(&s, LIST(TEN("0") TEN("2") TEN("4") CHUNK("stdout", "6", "01", "2",
			   "\"dropped\":8") "," GAP("8") GAP("10") CHUNK("stdout", "12", "89", "2",
			   "\"dropped\":8") "," TEN("14") TEN("16") TEN("18")
				   CHUNK("stderr", "30", "e", "1", ALL)));
}

/* However many there are: both ends are there, the rest is counted, the memory is the same. */
static void of_too_many_chunks_the_ends_are_told_and_the_rest_counted(void **state)
{
	const uint64_t many = 10 * TIMELINE_CHUNKS_MAX + 7;
	struct scene s;
	json_t *v, *chunks;

	(void)state;
	set_up(&s);
	for (uint64_t i = 0; i < many; i++)
		write_at(&s, i % 2 ? TIMELINE_ERR : TIMELINE_OUT, 10 + i, "x");
	v = told(&s);
	chunks = json_object_get(v, "chunks");
	assert_int_equal(json_array_size(chunks), TIMELINE_CHUNKS_MAX);
	assert_int_equal(json_integer_value(json_object_get(v, "chunks_omitted")),
		many - TIMELINE_CHUNKS_MAX);
	assert_int_equal(json_integer_value(json_object_get(v, "bytes_omitted")),
		many - TIMELINE_CHUNKS_MAX);
	for (size_t i = 0; i < TIMELINE_CHUNKS_MAX; i++) {
		const uint64_t n = i < TIMELINE_CHUNKS_MAX / 2 ? i : many - TIMELINE_CHUNKS_MAX + i;

		assert_int_equal(
			json_number_value(json_object_get(json_array_get(chunks, i), "ms")), n);
	}
	json_decref(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_written_is_an_empty_list),
		cmocka_unit_test(streams_are_one_list_in_the_order_of_reading),
		cmocka_unit_test(what_one_stream_writes_at_once_is_one_chunk),
		cmocka_unit_test(a_character_comes_with_its_last_byte),
		cmocka_unit_test(bytes_that_are_no_text_are_exact_beside_it),
		cmocka_unit_test(what_was_dropped_is_counted_where_it_was),
		cmocka_unit_test(of_too_many_chunks_the_ends_are_told_and_the_rest_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
