#include "unit.h"

#include "base/check.h"
#include "edge/http/codec.h"
#include "http_cases.h"
#include "http_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SMALL 4096u /* streams up to this are cut at every byte */

/* The stream, first `cut` bytes of it, then the rest in steps of `step`. */
static void frame(struct frames *f, const char *bytes, size_t len, size_t cut, size_t step)
{
	frames_init(f);
	for (size_t n = cut; n < len; n += step)
		frames_feed(f, bytes, n);
	frames_feed(f, bytes, len);
	frames_end(f, len);
}

/* A row's `want` without its abbreviations, as far as the hash, which is left out. */
static void expand(const char *want, char *text, size_t room)
{
	size_t at = 0;

	while (*want) {
		size_t n = strcspn(want, "|");
		const char *line = want;
		int len = (int)n;

		if (n == 1 && (*want == 'P' || *want == 'G' || *want == 'x')) {
			line = *want == 'P'   ? "POST /execute 12"
			       : *want == 'G' ? "GET /health 0"
					      : "closed";
			len = (int)strlen(line);
		}
		at += (size_t)snprintf(text + at, room - at, "%.*s\n", len, line);
		want += n + (want[n] == '|');
	}
	if (at > 4 && text[at - 1] == '\n' && strspn(text + at - 4, "0123456789") == 3 &&
		(at == 4 || text[at - 5] == '\n'))
		return;
	if (at == 4 || (at >= 7 && strcmp(text + at - 7, "closed\n") == 0))
		return;
	(void)snprintf(text + at, room - at, "end\n");
}

static void without_hashes(const char *text, char *out, size_t room)
{
	size_t at = 0;

	while (*text) {
		size_t n = strcspn(text, "\n");
		size_t keep = n > 9 && text[n - 9] == ' ' ? n - 9 : n;

		at += (size_t)snprintf(out + at, room - at, "%.*s\n", (int)keep, text);
		text += n + 1;
	}
}

static void every_case_is_read_as_wanted(void **state)
{
	(void)state;
	for (size_t i = 0; i < http_case_count; i++) {
		char want[1024], got[4096];
		struct frames f;
		size_t len;
		char *bytes = http_case_bytes(&http_cases[i], &len);

		frame(&f, bytes, len, len, 1);
		expand(http_cases[i].want, want, sizeof(want));
		without_hashes(f.text, got, sizeof(got));
		if (strcmp(want, got) != 0)
			fail_msg("%s: wanted:\n%sgot:\n%s", http_cases[i].name, want, got);
		free(bytes);
	}
}

/* The property that keeps a client from gaining anything by the way it cuts its bytes. */
static void no_cut_changes_the_verdict(void **state)
{
	(void)state;
	for (size_t i = 0; i < http_case_count; i++) {
		struct frames whole, cut;
		size_t len;
		char *bytes = http_case_bytes(&http_cases[i], &len);

		frame(&whole, bytes, len, len, 1);
		for (size_t n = 0; len <= SMALL && n < len; n++) {
			frame(&cut, bytes, len, n, len);
			if (strcmp(whole.text, cut.text) != 0)
				fail_msg("%s, cut at %zu: %s", http_cases[i].name, n, cut.text);
		}
		frame(&cut, bytes, len, 1, 1);
		if (strcmp(whole.text, cut.text) != 0)
			fail_msg("%s, byte by byte: %s", http_cases[i].name, cut.text);
		frame(&cut, bytes, len, 1000, 1000);
		assert_string_equal(whole.text, cut.text);
		free(bytes);
	}
}

/* What is refused is refused at the first offending byte: whatever comes behind a refused
 * prefix, and however little of it, cannot talk the codec out of it. */
static void refusals_do_not_depend_on_what_follows(void **state)
{
	(void)state;
	for (size_t i = 0; i < http_case_count; i++) {
		struct frames f;
		size_t len;
		char *bytes = http_case_bytes(&http_cases[i], &len);
		int first = 0;

		for (size_t n = 1; len <= SMALL && n <= len; n++) {
			frame(&f, bytes, n, n, 1);
			if (first)
				assert_int_equal(f.status, first);
			first = f.status;
		}
		free(bytes);
	}
}

static void junk_never_waits_for_a_line_end(void **state)
{
	static const char *const junk[] = { "\026\003\001", "GET /\n", "GET /\rx", "\001",
		"a\177" };
	struct http_head h;

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(junk); i++) {
		http_head_init(&h);
		assert_int_equal(http_head_parse(&h, junk[i], strlen(junk[i])), -400);
	}
}

static void parts_of_a_head_are_where_they_say(void **state)
{
	static const char text[] = "POST /a?b HTTP/1.1\r\nHost: x:1\r\nX-Y: \t a b \r\nE:\r\n"
				   "Expect: 100-continue\r\nContent-Length: 7\r\n\r\nrest";
	struct http_head h;

	(void)state;
	http_head_init(&h);
	assert_int_equal(http_head_parse(&h, text, sizeof(text) - 1), sizeof(text) - 1 - 4);
	assert_int_equal(h.method.len, 4);
	assert_memory_equal(text + h.method.at, "POST", 4);
	assert_int_equal(h.target.len, 4);
	assert_memory_equal(text + h.target.at, "/a?b", 4);
	assert_int_equal(h.field_count, 5);
	assert_memory_equal(text + h.fields[1].name.at, "X-Y", h.fields[1].name.len);
	assert_int_equal(h.fields[1].value.len, 3);
	assert_memory_equal(text + h.fields[1].value.at, "a b", 3);
	assert_int_equal(h.fields[2].value.len, 0);
	assert_int_equal(h.framing, HTTP_LENGTH);
	assert_int_equal(h.content_length, 7);
	assert_true(h.expect_continue);
	assert_true(h.keep_alive);
	assert_int_equal(h.minor, 1);
}

static void old_clients_are_not_sent_100(void **state)
{
	static const char text[] = "POST / HTTP/1.0\r\nExpect: 100-continue\r\n\r\n";
	struct http_head h;

	(void)state;
	http_head_init(&h);
	assert_int_equal(http_head_parse(&h, text, sizeof(text) - 1), sizeof(text) - 1);
	assert_false(h.expect_continue);
	assert_false(h.keep_alive);
}

static void chunk_over_the_room_is_refused_before_its_data(void **state)
{
	static const char text[] = "4\r\nabcd\r\n3\r\n";
	struct http_chunked c;
	struct http_piece piece;

	(void)state;
	http_chunked_init(&c, 6);
	assert_int_equal(http_chunked_step(&c, text, sizeof(text) - 1, &piece), 0);
	assert_int_equal(piece.used, 7);
	assert_int_equal(piece.len, 4);
	assert_ptr_equal(piece.data, text + 3);
	assert_int_equal(http_chunked_step(&c, text + 7, sizeof(text) - 1 - 7, &piece), -413);
}

static void end_of_chunks_leaves_the_next_request_alone(void **state)
{
	static const char text[] = "1\r\na\r\n0\r\n\r\nGET";
	struct http_chunked c;
	struct http_piece piece;

	(void)state;
	http_chunked_init(&c, 1);
	assert_int_equal(http_chunked_step(&c, text, sizeof(text) - 1, &piece), 0);
	assert_int_equal(piece.used, 4);
	assert_int_equal(http_chunked_step(&c, text + 4, sizeof(text) - 1 - 4, &piece), 1);
	assert_int_equal(piece.used, 7);
	assert_null(piece.data);
}

static void longest_request_line_is_read(void **state)
{
	static char text[HTTP_REQUEST_LINE_MAX + 16];
	struct http_head h;

	(void)state;
	(void)memset(text, 'a', sizeof(text));
	(void)memcpy(text, "GET /", 5);
	(void)memcpy(text + HTTP_REQUEST_LINE_MAX - 11, " HTTP/1.0\r\n\r\n", 14);
	http_head_init(&h);
	assert_int_equal(
		http_head_parse(&h, text, HTTP_REQUEST_LINE_MAX + 2), HTTP_REQUEST_LINE_MAX + 2);
	assert_int_equal(h.target.len, HTTP_REQUEST_LINE_MAX - 15);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_case_is_read_as_wanted),
		cmocka_unit_test(no_cut_changes_the_verdict),
		cmocka_unit_test(refusals_do_not_depend_on_what_follows),
		cmocka_unit_test(junk_never_waits_for_a_line_end),
		cmocka_unit_test(parts_of_a_head_are_where_they_say),
		cmocka_unit_test(longest_request_line_is_read),
		cmocka_unit_test(old_clients_are_not_sent_100),
		cmocka_unit_test(chunk_over_the_room_is_refused_before_its_data),
		cmocka_unit_test(end_of_chunks_leaves_the_next_request_alone),
	};

	return cmocka_run_group_tests_name("http_codec", tests, NULL, NULL);
}
