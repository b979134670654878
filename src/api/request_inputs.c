#include "api/request_inputs.h"

#include "api/text.h"
#include "base/check.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char no_string[] = "Input should be a valid string";
static const char no_unicode[] =
	"Input should be a valid string, unable to parse raw data as a unicode string";

/* What the members of a file are called. */
static const char *const members[] = { "path", "content", "encoding", "mode" };

/* An item of the 422, unless too many of this list are there already. */
__attribute__((format(printf, 5, 6))) static void refuse(struct request_inputs *in,
	const struct detail_place *place, const char *type, const json_t *value, const char *fmt,
	...)
{
	const struct detail_input input = { .json = value };
	char msg[256];
	va_list ap;

	in->faults++;
	if ((place->index >= 0 || place->key) && ++in->shown > REQUEST_INPUTS_SHOWN) {
		in->hidden++;
		return;
	}
	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	detail_at(in->why, place, type, msg, &input);
}

static void refuse_type(struct request_inputs *in, const struct detail_place *place,
	const char *type, const char *msg, const json_t *value)
{
	refuse(in, place, type, value, "%s", msg);
}

/* A string there, or an item of the 422. */
static bool is_string(
	struct request_inputs *in, const struct detail_place *place, const json_t *value)
{
	if (json_is_string(value))
		return true;
	if (in->bad_text && json_is_object(value) && json_object_size(value) == 0)
		refuse_type(in, place, "string_unicode", no_unicode, NULL);
	else
		refuse_type(in, place, "string_type", no_string, value);
	return false;
}

static bool has_nul(const json_t *text)
{
	return strlen(json_string_value(text)) != json_string_length(text);
}

/* "utf8" or "base64". */
static bool take_encoding(struct request_inputs *in, const struct detail_place *place,
	const json_t *value, bool *ret_base64)
{
	const char *word = json_string_value(value);

	*ret_base64 = word && strcmp(word, "base64") == 0;
	if (!value || *ret_base64 || (word && strcmp(word, "utf8") == 0))
		return true;
	refuse_type(in, place, "literal_error", "Input should be 'utf8' or 'base64'", value);
	return false;
}

/* How many bytes the text stands for. */
static bool measure(struct request_inputs *in, const struct detail_place *place, const json_t *text,
	bool base64, uint64_t *ret)
{
	size_t len = json_string_length(text), at;

	*ret = len;
	if (!base64)
		return true;
	if (base64_valid(json_string_value(text), len, &at)) {
		*ret = at;
		return true;
	}
	refuse(in, place, "value_error", text,
		"Value error, this is no base64 from byte %zu on: it must be the standard alphabet "
		"with padding and without line breaks",
		at);
	return false;
}

static struct detail_place at_field(const struct api_field *f)
{
	return (struct detail_place){ f, -1, NULL, 0 };
}

static struct detail_place at_item(const struct api_field *f, size_t index, const char *key)
{
	return (struct detail_place){ f, (long)index, key, 0 };
}

static void check_input(struct request_inputs *in, const struct api_field *f, const json_t *v)
{
	const json_t *encoding = json_object_get(in->root, api_fields[API_STDIN_ENCODING].name);
	const struct detail_place place = at_field(f);

	if (!is_string(in, &place, v))
		return;
	in->input_base64 =
		json_is_string(encoding) && strcmp(json_string_value(encoding), "base64") == 0;
	if (!measure(in, &place, v, in->input_base64, &in->input_bytes))
		return;
	if (in->input_bytes > in->settings->input_bytes)
		refuse(in, &place, "value_error", v,
			"Value error, stdin holds %llu bytes; this server takes at most %llu "
			"(input-bytes)",
			(unsigned long long)in->input_bytes,
			(unsigned long long)in->settings->input_bytes);
	in->input = v;
}

static void check_input_encoding(
	struct request_inputs *in, const struct api_field *f, const json_t *v)
{
	const struct detail_place place = at_field(f);
	bool base64;

	(void)take_encoding(in, &place, v, &base64);
}

static bool has_room(struct request_inputs *in, const struct api_field *f, const json_t *v,
	const char *type, size_t count, unsigned most)
{
	const struct detail_place place = at_field(f);

	if (count <= most)
		return true;
	refuse(in, &place, "too_long", v,
		"%s should have at most %u items after validation, not %zu", type, most, count);
	return false;
}

static void check_words(struct request_inputs *in, const struct api_field *f, size_t bytes)
{
	const struct detail_place place = at_field(f);

	if (bytes > INPUTS_WORDS_BYTES_MAX)
		refuse(in, &place, "value_error", NULL,
			"Value error, they take %zu bytes, with the NUL behind each; all together "
			"may take %u",
			bytes, INPUTS_WORDS_BYTES_MAX);
}

static void check_args(struct request_inputs *in, const struct api_field *f, const json_t *v)
{
	struct detail_place place = at_field(f);
	const json_t *item;
	size_t i;

	if (!json_is_array(v)) {
		refuse_type(in, &place, "list_type", "Input should be a valid list", v);
		return;
	}
	if (!has_room(in, f, v, "List", json_array_size(v), INPUTS_ARGS_MAX))
		return;
	json_array_foreach(v, i, item)
	{
		place = at_item(f, i, NULL);
		if (!is_string(in, &place, item))
			continue;
		if (has_nul(item))
			refuse(in, &place, "value_error", item,
				"Value error, an argument can hold no NUL");
		else
			in->plan.args[in->plan.arg_count++] = json_string_value(item);
	}
	check_words(in, f, inputs_plan_args_bytes(&in->plan));
}

static void check_variable(
	struct request_inputs *in, const struct api_field *f, const char *name, const json_t *value)
{
	const struct detail_place place = { f, -1, name, 0 };
	const char *rule = inputs_variable_fault(name, strlen(name));

	if (rule)
		refuse(in, &place, "value_error", value, "Value error, this variable %s", rule);
	if (!is_string(in, &place, value) || rule)
		return;
	if (has_nul(value))
		refuse(in, &place, "value_error", value, "Value error, a variable can hold no NUL");
	else
		in->plan.env[in->plan.env_count++] =
			(struct inputs_plan_variable){ name, json_string_value(value) };
}

static void check_env(struct request_inputs *in, const struct api_field *f, const json_t *v)
{
	const struct detail_place place = at_field(f);
	json_t *object = (json_t *)(uintptr_t)v, *value; /* only looked at */
	const char *name;

	if (!json_is_object(v)) {
		refuse_type(in, &place, "dict_type", "Input should be a valid dictionary", v);
		return;
	}
	if (!has_room(in, f, v, "Dictionary", json_object_size(v), INPUTS_ENV_MAX))
		return;
	json_object_foreach(object, name, value)
	{
		check_variable(in, f, name, value);
	}
	check_words(in, f, inputs_plan_env_bytes(&in->plan));
}

/* ---- files ---- */

static bool take_path(struct request_inputs *in, const struct detail_place *place, const json_t *v,
	struct inputs_plan_file *ret)
{
	const char *rule;

	if (!is_string(in, place, v))
		return false;
	ret->path = json_string_value(v);
	ret->path_len = json_string_length(v);
	rule = inputs_path_fault(ret->path, ret->path_len);
	if (rule)
		refuse(in, place, "value_error", v, "Value error, a path %s", rule);
	return !rule;
}

/* Three octal digits, or four that begin with 0. As text: in JSON 644 is no mode, but 01204. */
static bool take_mode(
	struct request_inputs *in, const struct detail_place *place, const json_t *v, uint32_t *ret)
{
	const char *text;

	*ret = INPUTS_MODE;
	if (!v)
		return true;
	if (!is_string(in, place, v))
		return false;
	text = json_string_value(v);
	text += text[0] == '0' && strlen(text) == 4;
	if (strlen(text) == 3 && strspn(text, "01234567") == 3 && !has_nul(v)) {
		*ret = (uint32_t)strtoul(text, NULL, 8);
		return true;
	}
	refuse(in, place, "value_error", v,
		"Value error, a mode must be the permissions as octal digits, \"000\" to \"777\": "
		"files have no set-user-ID, set-group-ID or sticky bit");
	return false;
}

static bool take_file(struct request_inputs *in, const struct api_field *f, size_t i,
	const json_t *item, struct inputs_plan_file *ret)
{
	struct detail_place places[ARRAY_LEN(members)];
	const json_t *v[ARRAY_LEN(members)];
	bool good = true;

	for (size_t m = 0; m < ARRAY_LEN(members); m++) {
		places[m] = at_item(f, i, members[m]);
		v[m] = json_object_get(item, members[m]);
		if (m >= 2 && json_is_null(v[m])) /* as if it were not there */
			v[m] = NULL;
		if (!v[m] && m < 2) {
			refuse_type(in, &places[m], "missing", "Field required", item);
			good = false;
		}
	}
	if (v[0] && !take_path(in, &places[0], v[0], ret))
		good = false;
	if (!take_encoding(in, &places[2], v[2], &ret->base64))
		good = false;
	if (!take_mode(in, &places[3], v[3], &ret->mode))
		good = false;
	if (!v[1] || !is_string(in, &places[1], v[1]))
		return false;
	ret->bytes = json_string_value(v[1]);
	ret->len = json_string_length(v[1]);
	return measure(in, &places[1], v[1], ret->base64, &ret->size) && good;
}

struct clashes {
	struct request_inputs *in;
	const struct api_field *field;
};

static void on_clash(void *ctx, unsigned file, const char *what)
{
	const struct clashes *c = ctx;
	const struct detail_place place = at_item(c->field, file, members[0]);
	const json_t *list = json_object_get(c->in->root, c->field->name);

	refuse(c->in, &place, "value_error",
		json_object_get(json_array_get(list, file), members[0]),
		"Value error, this path %s", what);
}

/* Files that would be too much with nothing beside them: then it is not the sum that is wrong. */
static bool has_too_large(struct request_inputs *in, const struct api_field *f)
{
	const json_t *list = json_object_get(in->root, f->name);
	uint64_t most = in->settings->input_bytes;
	bool found = false;

	for (unsigned i = 0; i < in->plan.file_count; i++) {
		const struct detail_place place = at_item(f, i, members[1]);

		if (in->plan.files[i].size <= most)
			continue;
		refuse(in, &place, "value_error",
			json_object_get(json_array_get(list, i), members[1]),
			"Value error, this file holds %llu bytes; this server takes at most %llu "
			"(input-bytes)",
			(unsigned long long)in->plan.files[i].size, (unsigned long long)most);
		found = true;
	}
	return found;
}

/* What all files together take. */
static void check_sums(struct request_inputs *in, const struct api_field *f,
	const struct inputs_need *need, uint64_t memory_bytes)
{
	const struct detail_place place = at_field(f);
	uint64_t most = in->settings->input_bytes, sum = in->input_bytes;

	for (unsigned i = 0; i < in->plan.file_count; i++)
		sum += in->plan.files[i].size;
	if (sum > most && in->input_bytes <= most && !has_too_large(in, f))
		refuse(in, &place, "value_error", NULL,
			"Value error, files and stdin hold %llu bytes; this server takes at most "
			"%llu (input-bytes)",
			(unsigned long long)sum, (unsigned long long)most);
	if (need->memory_bytes > memory_bytes / 2)
		refuse(in, &place, "value_error", NULL,
			"Value error, the files take %llu bytes of memory, over half of the "
			"run's %llu: raise memory_limit_mb",
			(unsigned long long)need->memory_bytes, (unsigned long long)memory_bytes);
	/* The workspace itself and the code's file are there already. */
	if (need->inodes + 2 > in->settings->workspace_inodes)
		refuse(in, &place, "value_error", NULL,
			"Value error, %llu files and directories do not fit into the workspace, "
			"which holds %u",
			(unsigned long long)need->inodes, in->settings->workspace_inodes - 2);
}

/* What the code is called. */
static const char *main_file(const struct request_inputs *in)
{
	return in->offer ? in->offer->main_file : in->settings->runtime.main_file;
}

static int check_files(struct request_inputs *in, const struct api_field *f, const json_t *v,
	uint64_t memory_bytes)
{
	struct detail_place place = at_field(f);
	struct clashes clashes = { in, f };
	unsigned before = in->faults;
	struct inputs_need need;
	const json_t *item;
	size_t i;
	int r;

	if (!json_is_array(v)) {
		refuse_type(in, &place, "list_type", "Input should be a valid list", v);
		return 0;
	}
	if (!has_room(in, f, v, "List", json_array_size(v), INPUTS_FILES_MAX) ||
		json_array_size(v) == 0)
		return 0;
	in->plan.files = calloc(json_array_size(v), sizeof(*in->plan.files));
	if (!in->plan.files)
		return -ENOMEM;
	json_array_foreach(v, i, item)
	{
		place = at_item(f, i, NULL);
		if (!json_is_object(item))
			refuse_type(in, &place, "dict_type", "Input should be a valid dictionary",
				item);
		else if (take_file(in, f, i, item, &in->plan.files[i]))
			in->plan.file_count = (unsigned)i + 1;
	}
	in->files_wrong = in->faults > before;
	if (in->files_wrong)
		return 0; /* who is beside whom is asked when all paths are right */
	r = inputs_plan_look(&in->plan,
		json_object_get(in->root, api_fields[API_ENTRY_POINT].name) ? NULL : main_file(in),
		on_clash, &clashes, &need);
	if (r == 0)
		check_sums(in, f, &need, memory_bytes);
	return r;
}

/* Does the name end as the language wants it? Where not, *ret_list names what it may end with. */
static bool has_suffix(const struct request_inputs *in, const struct inputs_plan_file *file,
	char *ret_list, size_t room)
{
	size_t at = 0;

	ret_list[0] = '\0';
	for (unsigned i = 0; in->offer && in->offer->suffixes[i][0]; i++) {
		const char *suffix = in->offer->suffixes[i];
		size_t len = strlen(suffix);

		if (file->path_len > len &&
			memcmp(file->path + file->path_len - len, suffix, len) == 0)
			return true;
		at += (size_t)snprintf(
			ret_list + at, room - at, "%s\"%s\"", i > 0 ? " or " : "", suffix);
	}
	return at == 0;
}

static void check_entry(struct request_inputs *in, const struct api_field *f, const json_t *v)
{
	const struct detail_place place = at_field(f);
	const struct inputs_plan_file *file = NULL;
	const char *path = json_string_value(v);
	char suffixes[LANGUAGE_SUFFIXES_MAX * (LANGUAGE_SUFFIX_MAX + 8)];

	if (!is_string(in, &place, v))
		return;
	if (json_object_get(in->root, api_fields[API_CODE].name)) {
		refuse(in, &place, "value_error", v,
			"Value error, code and entry_point are two programs: leave one of them "
			"out");
		return;
	}
	for (unsigned i = 0; !in->files_wrong && !file && i < in->plan.file_count; i++) {
		if (in->plan.files[i].path_len == json_string_length(v) &&
			memcmp(in->plan.files[i].path, path, json_string_length(v)) == 0) {
			file = &in->plan.files[i];
			in->plan.entry = i + 1;
		}
	}
	if (in->files_wrong)
		return;
	if (!file)
		refuse(in, &place, "value_error", v,
			"Value error, entry_point must be the path of one of the files");
	else if (path[0] == '-' || path[0] == '@')
		refuse(in, &place, "value_error", v,
			"Value error, entry_point must not begin with \"-\" or \"@\": it would be "
			"an option of the interpreter or compiler, or a file of options");
	else if (!has_suffix(in, file, suffixes, sizeof(suffixes)))
		refuse(in, &place, "value_error", v,
			"Value error, a program in %s must have a name that ends in %s",
			in->offer->name, suffixes);
	else if (!(file->mode & 0400))
		refuse(in, &place, "value_error", v,
			"Value error, the mode of this file does not let the program's user read "
			"it");
}

int request_inputs_check(struct request_inputs *in, const struct api_field *f, const json_t *value,
	const struct detail_input *odd, uint64_t memory_bytes)
{
	struct detail_place place = at_field(f);
	int r = 0;

	in->shown = in->hidden = 0;
	if (odd) {
		in->faults++;
		detail_at(in->why, &place, f->type == API_STRING ? "string_unicode" : "value_error",
			f->type == API_STRING ? no_unicode : "Value error, this is no list", odd);
		return 0;
	}
	if (f->meaning == API_STDIN)
		check_input(in, f, value);
	else if (f->meaning == API_STDIN_ENCODING)
		check_input_encoding(in, f, value);
	else if (f->meaning == API_INPUT_ARGS)
		check_args(in, f, value);
	else if (f->meaning == API_INPUT_ENV)
		check_env(in, f, value);
	else if (f->meaning == API_INPUT_FILES)
		r = check_files(in, f, value, memory_bytes);
	else
		check_entry(in, f, value);
	if (in->hidden > 0)
		refuse(in, &place, "value_error", NULL, "Value error, %u more are wrong",
			in->hidden);
	return r;
}

int request_inputs_build(const struct request_inputs *in, char **ret_blob, size_t *ret_blob_len,
	char **ret_input, size_t *ret_input_len)
{
	const char *text;
	size_t len;

	*ret_input = NULL;
	*ret_input_len = (size_t)in->input_bytes;
	if (in->input_bytes > 0) {
		text = json_string_value(in->input);
		len = json_string_length(in->input);
		*ret_input = malloc((size_t)in->input_bytes);
		if (!*ret_input)
			return -ENOMEM;
		if (in->input_base64)
			base64_decode(text, len, *ret_input);
		else
			memcpy(*ret_input, text, len);
	}
	return inputs_plan_build(&in->plan, ret_blob, ret_blob_len);
}

static bool is_member(const char *name)
{
	for (size_t m = 0; m < ARRAY_LEN(members); m++) {
		if (strcmp(members[m], name) == 0)
			return true;
	}
	return false;
}

void request_inputs_warn(const struct request_inputs *in, struct warnings *w)
{
	json_t *list = json_object_get(in->root, api_fields[API_INPUT_FILES].name), *item, *value;
	unsigned unknown = 0;
	const char *name;
	size_t i;

	json_array_foreach(list, i, item)
	{
		json_object_foreach(item, name, value)
		{
			if (!is_member(name) && ++unknown == 1)
				warnings_add(w, "unknown field \"%.*s\" of files[%zu] was ignored",
					(int)utf8_cut_end(name, strnlen(name, 64)), name, i);
		}
	}
	if (unknown > 1)
		warnings_add(w, "%u more unknown fields of files were ignored", unknown - 1);
}

void request_inputs_done(struct request_inputs *in)
{
	free(in->plan.files);
	in->plan.files = NULL;
}
