/* A strict reader: each record has to be of a kind that may come now, each object to have the
 * members that report.py gives it and no other, of their types and within its bounds. The first
 * thing that is not ends the reading; what came before it stands. */
#include "api/report.h"

#include "api/scan.h"
#include "api/text.h"
#include "base/check.h"
#include "base/own.h"
#include "wire/report.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define DEPTH_MAX       48 /* of brackets: report.py stops at 32 of a value's own */
#define FRAMES_MAX      64u
#define RELATED_MAX     16u
#define OMITTED_MAX     16u
#define MIME_MAX        128u /* bytes of a type's name */
/* Of a record that is parsed, and of all JSON of a value: brackets become some 40 times as much
 * memory. */
#define JSON_BYTES_MAX  (UINT64_C(256) << 10)
/* Of one representation, and of all of a value; as report.py has them. */
#define ITEM_BYTES_MAX  (UINT64_C(1) << 20)
#define VALUE_BYTES_MAX (UINT64_C(3) << 20)

int api_report_make(void)
{
	cleanup_fd int fd = memfd_create("report", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || ftruncate(fd, (off_t)REPORT_BYTES) < 0 ||
		fcntl(fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW) < 0)
		return -errno;
	return take_fd(&fd);
}

/* ---- The members of the objects ---- */

enum type {
	TEXT,
	TEXT_OR_NULL,
	COUNT,
	COUNT_OR_NULL,
	FRAMES,  /* of a traceback */
	RELATED, /* exceptions that belong to the one */
	TEXTS,
	MIMES /* [type, encoding] each */
};

struct member {
	const char *name;
	enum type type;
};

/* In the order of the reply. */
static const struct member frame_members[] = { { "file", TEXT }, { "line", COUNT_OR_NULL },
	{ "function", TEXT_OR_NULL }, { "text", TEXT_OR_NULL } };
static const struct member related_members[] = { { "relation", TEXT }, { "type", TEXT },
	{ "message", TEXT }, { "line", COUNT_OR_NULL }, { "traceback", FRAMES },
	{ "frames_omitted", COUNT } };
static const struct member error_members[] = { { "type", TEXT }, { "message", TEXT },
	{ "line", COUNT_OR_NULL }, { "traceback", FRAMES }, { "frames_omitted", COUNT },
	{ "related", RELATED }, { "related_omitted", COUNT } };
static const struct member result_members[] = { { "repr_length", COUNT }, { "omitted", TEXTS },
	{ "mime", MIMES } };
static const struct member figure_members[] = { { "number", COUNT }, { "label", TEXT },
	{ "mime_type", TEXT }, { "omitted", TEXT_OR_NULL } };

/* Those of them, from the first on, that are written as they were told. */
#define RESULT_MEMBERS_PLAIN 1
#define FIGURE_MEMBERS_PLAIN 3

static bool is_object(const json_t *v, const struct member *members, size_t count);

static bool is_list_of(const json_t *v, const struct member *members, size_t count, size_t most)
{
	if (!json_is_array(v) || json_array_size(v) > most)
		return false;
	for (size_t i = 0; i < json_array_size(v); i++) {
		if (!is_object(json_array_get(v, i), members, count))
			return false;
	}
	return true;
}

static bool is_texts(const json_t *v)
{
	if (!json_is_array(v) || json_array_size(v) > OMITTED_MAX)
		return false;
	for (size_t i = 0; i < json_array_size(v); i++) {
		if (!json_is_string(json_array_get(v, i)))
			return false;
	}
	return true;
}

/* A name that can be the key of an object: printable ASCII. */
static bool is_mime_type(const json_t *v)
{
	size_t len = json_string_length(v);
	const char *text = json_string_value(v);

	if (!text || len == 0 || len > MIME_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < ' ' || text[i] > '~')
			return false;
	}
	return true;
}

static bool is_encoding(const json_t *v)
{
	static const char *const words[] = { "text", "json", "base64" };
	const char *text = json_string_value(v);

	for (size_t i = 0; text && i < ARRAY_LEN(words); i++) {
		if (strcmp(text, words[i]) == 0)
			return true;
	}
	return false;
}

static bool is_mimes(const json_t *v)
{
	if (!json_is_array(v) || json_array_size(v) > API_REPORT_ITEMS_MAX)
		return false;
	for (size_t i = 0; i < json_array_size(v); i++) {
		const json_t *pair = json_array_get(v, i);

		if (!json_is_array(pair) || json_array_size(pair) != 2 ||
			!is_mime_type(json_array_get(pair, 0)) ||
			!is_encoding(json_array_get(pair, 1)))
			return false;
		for (size_t j = 0; j < i; j++) { /* they become keys: each once */
			if (json_equal(json_array_get(pair, 0),
				    json_array_get(json_array_get(v, j), 0)))
				return false;
		}
	}
	return true;
}

static bool is_of_type(const json_t *v, enum type type)
{
	switch (type) {
	case TEXT_OR_NULL:
		return json_is_null(v) || json_is_string(v);
	case COUNT_OR_NULL:
		return json_is_null(v) || (json_is_integer(v) && json_integer_value(v) >= 0);
	case COUNT:
		return json_is_integer(v) && json_integer_value(v) >= 0;
	case FRAMES:
		return is_list_of(v, frame_members, ARRAY_LEN(frame_members), FRAMES_MAX);
	case RELATED:
		return is_list_of(v, related_members, ARRAY_LEN(related_members), RELATED_MAX);
	case TEXTS:
		return is_texts(v);
	case MIMES:
		return is_mimes(v);
	case TEXT:
	default:
		return json_is_string(v);
	}
}

static bool is_object(const json_t *v, const struct member *members, size_t count)
{
	if (!json_is_object(v) || json_object_size(v) != count)
		return false;
	for (size_t i = 0; i < count; i++) {
		const json_t *m = json_object_get(v, members[i].name);

		if (!m || !is_of_type(m, members[i].type))
			return false;
	}
	return true;
}

/* ---- Reading ---- */

/* The way through the memory. */
struct walk {
	int fd;
	uint64_t at;
	size_t used;                     /* of the copy */
	uint64_t items_left, words_left; /* of the reply's room */
	struct api_report *ret;
};

static void note_odd(const struct scan_odd *odd, void *ctx)
{
	(void)odd;
	*(bool *)ctx = true;
}

/* jansson is the judge; the scan keeps it from recursing too deep. */
static json_t *parse(const char *text, size_t len)
{
	struct scan_fault fault;
	bool odd = false;

	if (len > JSON_BYTES_MAX || utf8_valid(text, len) != len)
		return NULL;
	json_scan(text, len, DEPTH_MAX, note_odd, &odd, &fault);
	if (fault.error || odd)
		return NULL;
	return json_loadb(
		text, len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);
}

/* The next record, its bytes in the copy. False: there is none, or ret->bad says why. */
static bool next(struct walk *k, struct report_record *ret, const char **ret_bytes)
{
	struct api_report *r = k->ret;

	if (k->at + sizeof(*ret) > REPORT_BYTES)
		return false;
	if (pread(k->fd, ret, sizeof(*ret), (off_t)k->at) != (ssize_t)sizeof(*ret)) {
		r->bad = "it cannot be read";
		return false;
	}
	if (ret->magic != REPORT_MAGIC)
		return false;
	k->at += sizeof(*ret);
	if (ret->bytes > REPORT_BYTES - k->at) {
		r->bad = "a record is longer than the memory";
		return false;
	}
	if (!r->copy)
		r->copy = malloc(REPORT_BYTES); /* what is not written is no page of ours */
	if (!r->copy) {
		r->bad = "out of memory";
		return false;
	}
	if (ret->bytes > 0 &&
		pread(k->fd, r->copy + k->used, ret->bytes, (off_t)k->at) != (ssize_t)ret->bytes) {
		r->bad = "it cannot be read";
		return false;
	}
	*ret_bytes = r->copy + k->used;
	k->at += ret->bytes;
	k->used += ret->bytes;
	return true;
}

/* The DATA that has to follow. */
static bool take_data(struct walk *k, struct api_report_item *ret)
{
	struct report_record record;
	const char *bytes;

	if (!next(k, &record, &bytes) || record.kind != REPORT_KIND_DATA)
		return false;
	*ret = (struct api_report_item){ bytes, (size_t)record.bytes };
	return true;
}

static bool is_base64(const char *encoding)
{
	return strcmp(encoding, "base64") == 0;
}

/* What put_item() makes of it. */
static uint64_t len_in_reply(const char *encoding, const struct api_report_item *item)
{
	if (is_base64(encoding))
		return (item->len + 2) / 3 * 4;
	if (strcmp(encoding, "json") == 0)
		return item->len;
	return writer_text_len(item->bytes, item->len);
}

/* Of the room in the reply, if it is there. */
static void take_room(struct walk *k, struct api_report_item *item, uint64_t len)
{
	item->left_out = len > k->items_left;
	if (!item->left_out)
		k->items_left -= len;
}

static const char *take_error(struct walk *k, json_t *v)
{
	if (k->ret->error || !is_object(v, error_members, ARRAY_LEN(error_members)))
		return "a second error, or one that is not as it should be";
	k->ret->error = json_incref(v);
	return NULL;
}

/* A value's text is its repr() as well, and so stands in the reply twice. */
static bool is_text_plain(const json_t *pair)
{
	return strcmp(json_string_value(json_array_get(pair, 0)), "text/plain") == 0;
}

static const char *take_result(struct walk *k, json_t *v)
{
	struct api_report *r = k->ret;
	uint64_t bytes_left = VALUE_BYTES_MAX, json_left = JSON_BYTES_MAX;
	const json_t *mimes;

	if (r->result || !is_object(v, result_members, ARRAY_LEN(result_members)))
		return "a second result, or one that is not as it should be";
	mimes = json_object_get(v, "mime");
	for (size_t i = 0; i < json_array_size(mimes); i++) {
		struct api_report_item *item = &r->items[i];
		const json_t *pair = json_array_get(mimes, i);
		const char *encoding = json_string_value(json_array_get(pair, 1));
		uint64_t twice = 0;
		json_t *value;

		if (!take_data(k, item))
			return "a result without its data";
		if (item->len > ITEM_BYTES_MAX || item->len > bytes_left)
			return "a result that is longer than one can be";
		bytes_left -= item->len;
		if (is_text_plain(pair))
			twice = len_in_reply("text", item);
		take_room(k, item, len_in_reply(encoding, item) + twice);
		if (strcmp(encoding, "json") != 0)
			continue;
		if (item->len > json_left)
			return "a value with more JSON than is taken";
		json_left -= item->len;
		value = parse(item->bytes, item->len);
		if (!value)
			return "a value that is no JSON";
		json_decref(value);
	}
	r->items_count = (unsigned)json_array_size(mimes);
	r->result = json_incref(v);
	return NULL;
}

/* What is text stands as such. */
static bool is_svg(const json_t *figure)
{
	return strcmp(json_string_value(json_object_get(figure, "mime_type")), "image/svg+xml") ==
	       0;
}

static const char *take_figure(struct walk *k, json_t *v)
{
	struct api_report *r = k->ret;
	struct api_report_item *drawn;

	if (r->figures_count == API_REPORT_FIGURES_MAX)
		return "more figures than are taken";
	if (!is_object(v, figure_members, ARRAY_LEN(figure_members)) ||
		!is_mime_type(json_object_get(v, "mime_type")))
		return "a figure that is not as it should be";
	drawn = &r->drawn[r->figures_count];
	if (!take_data(k, drawn))
		return "a figure without its data";
	take_room(k, drawn, len_in_reply(is_svg(v) ? "text" : "base64", drawn));
	r->figures[r->figures_count++] = json_incref(v);
	return NULL;
}

/* A record's own bytes: what is written of it is not longer. */
static const char *take_words(struct walk *k, uint64_t bytes)
{
	if (bytes > k->words_left)
		return "more is told than is taken";
	k->words_left -= bytes;
	return NULL;
}

static const char *take(struct walk *k, uint32_t kind, json_t *v)
{
	switch (kind) {
	case REPORT_KIND_ERROR:
		return take_error(k, v);
	case REPORT_KIND_RESULT:
		return take_result(k, v);
	case REPORT_KIND_FIGURE:
		return take_figure(k, v);
	default:
		return "a record of a kind that there is not";
	}
}

void api_report_read(int fd, struct api_report *ret)
{
	struct walk k = { .fd = fd,
		.items_left = API_REPORT_ITEMS_BYTES,
		.words_left = API_REPORT_WORDS_BYTES,
		.ret = ret };
	struct report_record record;
	const char *bytes;

	*ret = (struct api_report){ 0 };
	while (!ret->bad && next(&k, &record, &bytes)) {
		const char *bad = take_words(&k, record.bytes);
		json_t *v = bad ? NULL : parse(bytes, (size_t)record.bytes);

		if (!bad)
			bad = v ? take(&k, record.kind, v) : "a record that is no JSON";
		if (!ret->bad)
			ret->bad = bad;
		json_decref(v);
	}
}

void api_report_free(struct api_report *r)
{
	free(r->copy);
	json_decref(r->error);
	json_decref(r->result);
	for (unsigned i = 0; i < r->figures_count; i++)
		json_decref(r->figures[i]);
	*r = (struct api_report){ 0 };
}

/* ---- Writing ---- */

static void put_members(
	struct writer *w, const json_t *v, const struct member *members, size_t count);

static void put_list(struct writer *w, const char *key, const json_t *v,
	const struct member *members, size_t count)
{
	writer_array(w, key);
	for (size_t i = 0; i < json_array_size(v); i++) {
		writer_object(w, NULL);
		put_members(w, json_array_get(v, i), members, count);
		writer_close(w);
	}
	writer_close(w);
}

static void put_text(struct writer *w, const char *key, const json_t *v)
{
	writer_text_begin(w, key);
	writer_text(w, json_string_value(v), json_string_length(v));
	writer_text_end(w);
}

static void put_members(
	struct writer *w, const json_t *v, const struct member *members, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const char *key = members[i].name;
		const json_t *m = json_object_get(v, key);

		if (json_is_null(m))
			writer_null(w, key);
		else if (json_is_integer(m))
			writer_i64(w, key, json_integer_value(m));
		else if (json_is_string(m))
			put_text(w, key, m);
		else if (members[i].type == FRAMES)
			put_list(w, key, m, frame_members, ARRAY_LEN(frame_members));
		else if (members[i].type == RELATED)
			put_list(w, key, m, related_members, ARRAY_LEN(related_members));
	}
}

static void put_item(
	struct writer *w, const char *key, const char *encoding, const struct api_report_item *item)
{
	if (is_base64(encoding)) {
		writer_base64(w, key, item->bytes, item->len, "", 0);
	} else if (strcmp(encoding, "json") == 0) {
		writer_json_text(w, key, item->bytes, item->len);
	} else {
		writer_text_begin(w, key);
		writer_text(w, item->bytes, item->len);
		writer_text_end(w);
	}
}

/* The text of a value is its repr(). */
static void put_repr(struct writer *w, const struct api_report *r, const json_t *mimes)
{
	for (unsigned i = 0; i < r->items_count; i++) {
		if (is_text_plain(json_array_get(mimes, i)) && !r->items[i].left_out) {
			put_item(w, "repr", "text", &r->items[i]);
			return;
		}
	}
	writer_null(w, "repr");
}

#define NO_ROOM "%zu bytes would take more of the answer than there is room for"

/* By the interpreter, and by the reader. */
static void put_omitted(struct writer *w, const struct api_report *r, const json_t *mimes)
{
	const json_t *told = json_object_get(r->result, "omitted");

	writer_array(w, "omitted");
	for (size_t i = 0; i < json_array_size(told); i++)
		put_text(w, NULL, json_array_get(told, i));
	for (unsigned i = 0; i < r->items_count; i++) {
		const json_t *type = json_array_get(json_array_get(mimes, i), 0);

		if (r->items[i].left_out)
			writer_format(
				w, NULL, "%s: " NO_ROOM, json_string_value(type), r->items[i].len);
	}
	writer_close(w);
}

static void put_result(struct writer *w, const struct api_report *r)
{
	const json_t *mimes = json_object_get(r->result, "mime");

	writer_object(w, "result");
	put_repr(w, r, mimes);
	put_members(w, r->result, result_members, RESULT_MEMBERS_PLAIN);
	put_omitted(w, r, mimes);
	writer_object(w, "mime_bundle");
	for (unsigned i = 0; i < r->items_count; i++) {
		const json_t *pair = json_array_get(mimes, i);

		if (r->items[i].left_out)
			continue;
		put_item(w, json_string_value(json_array_get(pair, 0)),
			json_string_value(json_array_get(pair, 1)), &r->items[i]);
	}
	writer_close(w);
	writer_close(w);
}

static void put_figure(struct writer *w, const json_t *v, const struct api_report_item *drawn)
{
	const char *key = is_svg(v) ? "text" : "base64";
	size_t len = drawn->left_out ? 0 : drawn->len;

	writer_object(w, NULL);
	put_members(w, v, figure_members, FIGURE_MEMBERS_PLAIN);
	if (drawn->left_out)
		writer_format(w, "omitted", "its " NO_ROOM, drawn->len);
	else
		put_members(w, v, figure_members + FIGURE_MEMBERS_PLAIN, 1);
	writer_u64(w, "bytes", len);
	if (len == 0)
		writer_null(w, key);
	else
		put_item(w, key, key, drawn);
	writer_close(w);
}

void api_report_put(const struct api_report *r, struct writer *w)
{
	if (r && r->result)
		put_result(w, r);
	else
		writer_null(w, "result");
	if (r && r->error) {
		writer_object(w, "error");
		put_members(w, r->error, error_members, ARRAY_LEN(error_members));
		writer_close(w);
	} else {
		writer_null(w, "error");
	}
	writer_array(w, "figures");
	for (unsigned i = 0; r && i < r->figures_count; i++)
		put_figure(w, r->figures[i], &r->drawn[i]);
	writer_close(w);
}
