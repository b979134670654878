#include "edge/config/document.h"

#include "base/check.h"
#include "base/fault.h"
#include "base/likeness.h"
#include "edge/config/value.h"

#include <errno.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct document_place nowhere;

/* libcyaml explains itself in log lines: the reason first, then a backtrace, innermost
 * first. Both are kept: the first reason, and the first line number. */
struct complaint {
	char reason[160];
	struct document_place at;
};

static void on_log(cyaml_log_t level, void *context, const char *fmt, va_list args)
	__attribute__((format(printf, 3, 0)));

static void on_log(cyaml_log_t level, void *context, const char *fmt, va_list args)
{
	static const char load[] = "Load: ", mark[] = "(line: ", next[] = ", column: ";
	struct complaint *c = context;
	char text[256];
	const char *start = text, *at;

	if (level < CYAML_LOG_WARNING || vsnprintf(text, sizeof(text), fmt, args) < 0)
		return;
	text[strcspn(text, "\n")] = '\0';
	at = strstr(text, mark);
	if (at && c->at.line == 0) {
		char *end;

		c->at.line = (uint32_t)strtoul(at + strlen(mark), &end, 10);
		if (strncmp(end, next, strlen(next)) == 0)
			c->at.column = (uint32_t)strtoul(end + strlen(next), NULL, 10);
	}
	if (strncmp(start, load, strlen(load)) == 0)
		start += strlen(load);
	if (c->reason[0] == '\0' && !at && strncmp(start, "Backtrace", 9) != 0)
		(void)snprintf(c->reason, sizeof(c->reason), "%s", start);
}

static cyaml_config_t make_config(struct complaint *c)
{
	return (cyaml_config_t){
		.log_fn = on_log,
		.log_ctx = c,
		.log_level = CYAML_LOG_WARNING,
		.mem_fn = cyaml_mem,
		.flags = CYAML_CFG_NO_ALIAS,
	};
}

/* The column of `key`, with its colon, if it begins the line from `p` to `stop`; or 0. */
static uint32_t column_of(const char *p, const char *stop, const char *key)
{
	size_t len = strlen(key);
	const char *word = p, *k;

	while (word < stop && *word == ' ')
		word++;
	k = word < stop && (*word == '"' || *word == '\'') ? word + 1 : word;
	if (stop <= k || (size_t)(stop - k) <= len || strncmp(k, key, len) != 0)
		return 0;
	k += len + (k != word); /* past the closing quote too */
	while (k < stop && *k == ' ')
		k++;
	return k < stop && *k == ':' ? (uint32_t)(word - p) + 1 : 0;
}

struct document_place document_find(
	const struct document *text, const char *key, bool top, struct document_place from)
{
	const char *p = text->bytes, *end = text->bytes + text->len;
	uint32_t line = 1;

	for (; p < end; line++) {
		const char *stop = memchr(p, '\n', (size_t)(end - p));
		uint32_t column;
		bool behind;

		if (!stop)
			stop = end;
		column = column_of(p, stop, key);
		behind = line > from.line || (line == from.line && column > from.column);
		if (behind && (top ? column == 1 : column > 0))
			return (struct document_place){ line, column };
		p = stop + 1;
	}
	return (struct document_place){ 0, 0 };
}

/* libcyaml has said where it stood when it met the key: in front of it. */
static void find_key(const struct document *text, const char *key, struct complaint *c)
{
	struct document_place at = document_find(text, key, false, c->at);

	if (at.line > 0)
		c->at = at;
}

/* The key of the document, or of a section of it, that may have been meant; NULL: none. */
static const char *like_key(const cyaml_schema_value_t *schema, const char *key, unsigned *best)
{
	const char *like = NULL, *inner;

	if (schema->type != CYAML_MAPPING)
		return NULL;
	for (const cyaml_schema_field_t *field = schema->mapping.fields; field->key; field++) {
		/* Known elsewhere, and not here: that is no other key. */
		unsigned far = strcmp(key, field->key) == 0
				       ? LIKENESS_NONE
				       : likeness(key, strlen(key), field->key);

		if (far < *best) {
			*best = far;
			like = field->key;
		}
		inner = like_key(&field->value, key, best);
		if (inner)
			like = inner;
	}
	return like;
}

/* What libcyaml said, in words that help whoever wrote the file. */
static int explain(const struct document *text, const cyaml_schema_value_t *schema, cyaml_err_t err,
	struct complaint *c, struct fault *f)
{
	static const char unknown[] = "Unexpected key: ", again[] = "Mapping field already seen: ";
	static const struct {
		const char *theirs, *ours;
	} rewordings[] = {
		{ "Ignoring documents", "a second YAML document" },
		{ "Expecting SEQUENCE", "expected a list, as [one, two]" },
		{ "Expecting MAPPING", "expected lines of the form key: value" },
		{ "Expecting STRING", "expected a single value" },
	};
	char quoted[VALUE_QUOTE_MAX], why[256];
	const char *key, *like;
	unsigned far = LIKENESS_NONE;

	if (strncmp(c->reason, unknown, strlen(unknown)) == 0) {
		key = c->reason + strlen(unknown);
		find_key(text, key, c);
		like = like_key(schema, key, &far);
		(void)snprintf(why, sizeof(why), "\"%s\" is no key that is known here%s%s%s",
			value_quote(key, quoted), like ? "; did you mean \"" : "", like ? like : "",
			like ? "\"?" : "");
	} else if (strncmp(c->reason, again, strlen(again)) == 0) {
		key = c->reason + strlen(again);
		find_key(text, key, c);
		(void)snprintf(why, sizeof(why), "\"%s\" is there twice", value_quote(key, quoted));
	} else {
		(void)snprintf(
			why, sizeof(why), "%s", c->reason[0] ? c->reason : cyaml_strerror(err));
		for (size_t i = 0; i < ARRAY_LEN(rewordings); i++)
			if (strncmp(why, rewordings[i].theirs, strlen(rewordings[i].theirs)) == 0)
				(void)snprintf(why, sizeof(why), "%s", rewordings[i].ours);
		for (char *p = why; *p; p++)
			if (*p < ' ' || *p == 0x7f)
				*p = '?';
	}
	if (c->at.line > 0)
		return fault_say(f, -EINVAL, "%s line %u, column %u: %s", text->name, c->at.line,
			c->at.column, why);
	return fault_say(f, -EINVAL, "%s: %s", text->name, why);
}

int document_load(const struct document *text, const cyaml_schema_value_t *schema, void **ret,
	struct fault *f)
{
	struct complaint c = { 0 };
	const cyaml_config_t config = make_config(&c);
	cyaml_data_t *loaded = NULL;
	cyaml_err_t err;

	/* libyaml refuses control bytes, but not one made by "\0", which would end a C
	 * string early: such a text is not worth a second look. */
	if (memchr(text->bytes, '\0', text->len) || strstr(text->bytes, "\\0") ||
		strstr(text->bytes, "\\x00") || strstr(text->bytes, "\\u0000"))
		return fault_say(f, -EINVAL, "%s: contains a NUL", text->name);

	err = cyaml_load_data(
		(const uint8_t *)text->bytes, text->len, &config, schema, &loaded, NULL);
	if (err == CYAML_OK && c.reason[0] == '\0') {
		*ret = loaded;
		return 0;
	}
	if (loaded)
		document_free(schema, loaded);
	return explain(text, schema, err, &c, f);
}

void document_free(const cyaml_schema_value_t *schema, void *loaded)
{
	struct complaint c = { 0 };
	const cyaml_config_t config = make_config(&c);

	if (loaded)
		(void)cyaml_free(&config, schema, loaded, 0);
}

/* The config file as libcyaml fills it. A setting uses `text` or, where it is a list,
 * `items`; the schema is made from SETTINGS, so that a new line there is a new key here. */
struct file {
	struct file_value {
		char *text;
		char **items;
		unsigned count;
	} values[CONFIG_SETTINGS];
};

static const char *const keys[CONFIG_SETTINGS] = {
#define X(key, field, type, def, least, most, help) key,
	SETTINGS(X)
#undef X
};

static const enum value_type types[CONFIG_SETTINGS] = {
#define X(key, field, type, def, least, most, help) VALUE_##type,
	SETTINGS(X)
#undef X
};

static const cyaml_schema_value_t item = {
	CYAML_VALUE_STRING(CYAML_FLAG_POINTER, char, 0, SETTING_TEXT_MAX),
};

#define LIST_MAX 1024 /* which of its items there may be is said where they are read */

static void make_schema(cyaml_schema_field_t fields[CONFIG_SETTINGS + 1])
{
	memset(fields, 0, sizeof(*fields) * (CONFIG_SETTINGS + 1)); /* the last one ends it */
	for (size_t i = 0; i < CONFIG_SETTINGS; i++) {
		const uint32_t at =
			(uint32_t)(offsetof(struct file, values) + i * sizeof(struct file_value));
		cyaml_schema_field_t *field = &fields[i];

		field->key = keys[i];
		field->value.flags = CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL;
		if (types[i] == VALUE_LAYER_SET || types[i] == VALUE_RULES) {
			field->value.type = CYAML_SEQUENCE;
			field->value.data_size = sizeof(char *);
			field->value.sequence.entry = &item;
			/* No rule is not the same as none: what nothing stands for is not asked for. */
			field->value.sequence.min = types[i] == VALUE_RULES;
			field->value.sequence.max = LIST_MAX;
			field->data_offset = at + (uint32_t)offsetof(struct file_value, items);
			field->count_offset = at + (uint32_t)offsetof(struct file_value, count);
			field->count_size = sizeof(unsigned);
		} else {
			field->value.type = CYAML_STRING;
			field->value.data_size = sizeof(char);
			field->value.string.max = SETTING_TEXT_MAX;
			field->data_offset = at + (uint32_t)offsetof(struct file_value, text);
		}
	}
}

/* Where `scalar` stands behind `from`, if it is written as it is read. Comments are none. */
static struct document_place find_item(
	const struct document *text, const char *scalar, struct document_place from)
{
	const char *p = text->bytes, *end = p + text->len;
	struct document_place at = { 1, 1 };
	size_t len = strlen(scalar);
	char before = '\n';

	for (; p < end; before = *p++) {
		bool behind =
			at.line > from.line || (at.line == from.line && at.column > from.column);

		if (*p == '#' && (before == ' ' || before == '\t' || before == '\n')) {
			p = memchr(p, '\n', (size_t)(end - p));
			if (!p)
				break;
		}
		if (behind && strchr(" \t\n[,\"'", before) && (size_t)(end - p) >= len &&
			memcmp(p, scalar, len) == 0)
			return at;
		if (*p == '\n')
			at = (struct document_place){ at.line + 1, 1 };
		else
			at.column++;
	}
	return nowhere;
}

/* Each with its own place, so that what is wrong in it can be pointed at. */
static int apply_rules(const struct document *text, const char *key, const struct file_value *v,
	struct config *c, struct fault *f)
{
	struct document_place last = document_find(text, key, true, nowhere);
	int r = 0;

	for (unsigned n = 0; n < v->count && r == 0; n++) {
		struct document_place at = find_item(text, v->items[n], last);
		const struct config_source from = {
			.origin = ORIGIN_FILE,
			.file = text->name,
			.line = at.line > 0 ? at.line : last.line,
			.column = at.column,
		};

		if (at.line > 0)
			last = at;
		r = config_set(c, key, v->items[n], &from, f);
	}
	return r;
}

static int apply(
	const struct document *text, const struct file *file, struct config *c, struct fault *f)
{
	int r = 0;

	for (size_t i = 0; i < CONFIG_SETTINGS && r == 0; i++) {
		const struct file_value *v = &file->values[i];
		const struct config_source from = {
			.origin = ORIGIN_FILE,
			.file = text->name,
			.line = document_find(text, keys[i], true, nowhere).line,
		};

		if (v->text)
			r = config_set(c, keys[i], v->text, &from, f);
		if (types[i] == VALUE_RULES)
			r = r < 0 ? r : apply_rules(text, keys[i], v, c, f);
		for (unsigned n = 0; types[i] != VALUE_RULES && n < v->count && r == 0; n++)
			r = config_set(c, keys[i], v->items[n], &from, f);
	}
	return r;
}

int document_configure(const struct document *text, struct config *c, struct fault *f)
{
	cyaml_schema_field_t fields[CONFIG_SETTINGS + 1];
	const cyaml_schema_value_t schema = {
		CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct file, fields),
	};
	void *file = NULL;
	int r;

	make_schema(fields);
	r = document_load(text, &schema, &file, f);
	if (r < 0 || !file)
		return r;
	r = apply(text, file, c, f);
	document_free(&schema, file);
	return r;
}
