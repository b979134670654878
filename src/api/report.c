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

#define DEPTH_MAX      48 /* of brackets: report.py stops at 32 of a value's own */
#define FRAMES_MAX     64u
#define RELATED_MAX    16u
#define OMITTED_MAX    16u
#define MIME_MAX       128u /* bytes of a type's name */
/* Of a text that is parsed: brackets become some 40 times as much memory. */
#define JSON_BYTES_MAX (UINT64_C(256) << 10)

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
	size_t used; /* of the copy */
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

static const char *take_error(struct walk *k, json_t *v)
{
	if (k->ret->error || !is_object(v, error_members, ARRAY_LEN(error_members)))
		return "a second error, or one that is not as it should be";
	k->ret->error = json_incref(v);
	return NULL;
}

static const char *take_result(struct walk *k, json_t *v)
{
	struct api_report *r = k->ret;
	const json_t *mimes;

	if (r->result || !is_object(v, result_members, ARRAY_LEN(result_members)))
		return "a second result, or one that is not as it should be";
	mimes = json_object_get(v, "mime");
	for (size_t i = 0; i < json_array_size(mimes); i++) {
		struct api_report_item *item = &r->items[i];
		const char *encoding =
			json_string_value(json_array_get(json_array_get(mimes, i), 1));
		json_t *value;

		if (!take_data(k, item))
			return "a result without its data";
		if (strcmp(encoding, "json") != 0)
			continue;
		value = parse(item->bytes, item->len);
		if (!value)
			return "a value that is no JSON";
		json_decref(value);
	}
	r->items_count = (unsigned)json_array_size(mimes);
	r->result = json_incref(v);
	return NULL;
}

static const char *take_figure(struct walk *k, json_t *v)
{
	struct api_report *r = k->ret;

	if (r->figures_count == API_REPORT_FIGURES_MAX)
		return "more figures than are taken";
	if (!is_object(v, figure_members, ARRAY_LEN(figure_members)) ||
		!is_mime_type(json_object_get(v, "mime_type")))
		return "a figure that is not as it should be";
	if (!take_data(k, &r->drawn[r->figures_count]))
		return "a figure without its data";
	r->figures[r->figures_count++] = json_incref(v);
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
	struct walk k = { .fd = fd, .ret = ret };
	struct report_record record;
	const char *bytes;

	*ret = (struct api_report){ 0 };
	while (!ret->bad && next(&k, &record, &bytes)) {
		json_t *v = parse(bytes, (size_t)record.bytes);
		const char *bad = v ? take(&k, record.kind, v) : "a record that is no JSON";

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
		else if (members[i].type == TEXTS)
			writer_json(w, key, m);
	}
}

static void put_item(
	struct writer *w, const char *key, const char *encoding, const struct api_report_item *item)
{
	if (strcmp(encoding, "base64") == 0) {
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
		const json_t *type = json_array_get(json_array_get(mimes, i), 0);

		if (strcmp(json_string_value(type), "text/plain") == 0) {
			put_item(w, "repr", "text", &r->items[i]);
			return;
		}
	}
	writer_null(w, "repr");
}

static void put_result(struct writer *w, const struct api_report *r)
{
	const json_t *mimes = json_object_get(r->result, "mime");

	writer_object(w, "result");
	put_repr(w, r, mimes);
	put_members(w, r->result, result_members, ARRAY_LEN(result_members) - 1);
	writer_object(w, "mime_bundle");
	for (unsigned i = 0; i < r->items_count; i++) {
		const json_t *pair = json_array_get(mimes, i);

		put_item(w, json_string_value(json_array_get(pair, 0)),
			json_string_value(json_array_get(pair, 1)), &r->items[i]);
	}
	writer_close(w);
	writer_close(w);
}

/* What is text stands as such. */
static void put_figure(struct writer *w, const json_t *v, const struct api_report_item *drawn)
{
	const char *type = json_string_value(json_object_get(v, "mime_type"));
	bool is_text = strcmp(type, "image/svg+xml") == 0;

	writer_object(w, NULL);
	put_members(w, v, figure_members, ARRAY_LEN(figure_members));
	writer_u64(w, "bytes", drawn->len);
	if (drawn->len == 0)
		writer_null(w, is_text ? "text" : "base64");
	else
		put_item(w, is_text ? "text" : "base64", is_text ? "text" : "base64", drawn);
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
