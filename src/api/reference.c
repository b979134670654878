#include "api/documents.h"

#include "api/fields.h"
#include "api/reply_fields.h"
#include "base/check.h"
#include "base/own.h"
#include "wire/language.h"

#include <stdio.h>
#include <stdlib.h>

/* A bound of 0 in the settings means that it depends on the host. */
static void put_number(FILE *f, bool known, double value)
{
	if (known)
		(void)fprintf(f, " %.15g |", value);
	else
		(void)fprintf(f, " - |");
}

/* What a field that is no number is when it is left out. */
static const char *default_text(const struct api_field *f)
{
	switch (f->type) {
	case API_BOOLEAN:
		return api_field_default(f) ? "true" : "false";
	case API_ENCODING:
		return "utf8";
	case API_WORD:
		return api_field_words(f)[0];
	case API_NAME:
		return f->meaning == API_LANGUAGE ? LANGUAGE_DEFAULT : "-";
	case API_STRING:
	case API_NUMBER:
	case API_INTEGER:
	case API_BYTES:
	case API_STRINGS:
	case API_VARIABLES:
	case API_FILES:
	case API_POLICY:
	default:
		return "-";
	}
}

static void put_request(FILE *f, const struct settings *s)
{
	(void)fprintf(
		f, "| field | type | default | least | most | |\n|---|---|---|---|---|---|\n");
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *field = &api_fields[i];

		(void)fprintf(f, "| `%s` | %s%s |", field->name, api_type_word(field->type),
			field->required ? ", required without `entry_point`" : "");
		if (api_field_numeric(field) || field->type == API_BYTES) {
			struct api_range r = api_field_range(field, s);

			put_number(f, r.has_def, r.def);
			put_number(f, true, r.least);
			put_number(f, r.most > 0, r.most);
		} else {
			(void)fprintf(f, " %s | - | - |", default_text(field));
		}
		(void)fprintf(f, " %s |\n", field->description);
	}
}

static const char *type_text(enum reply_type type)
{
	static const char *const texts[] = {
		[REPLY_STRING] = "string",
		[REPLY_STRING_OR_NULL] = "string or null",
		[REPLY_NUMBER] = "number",
		[REPLY_INTEGER] = "integer",
		[REPLY_INTEGER_OR_NULL] = "integer or null",
		[REPLY_BOOLEAN] = "boolean",
		[REPLY_BOOLEAN_OR_NULL] = "boolean or null",
		[REPLY_STRINGS] = "array of strings",
		[REPLY_STATUS] = "string",
		[REPLY_CAUSE] = "string",
		[REPLY_OBJECT] = "object",
		[REPLY_OBJECTS] = "array of objects",
		[REPLY_OBJECTS_OR_NULL] = "array of objects, or null",
		[REPLY_OBJECT_OR_NULL] = "object or null",
		[REPLY_BUNDLE] = "object",
	};

	CHECK((size_t)type < ARRAY_LEN(texts));
	return texts[type];
}

static void put_group(FILE *f, enum reply_group group)
{
	(void)fprintf(f, "\n%s:\n\n| field | type | |\n|---|---|---|\n", reply_group_name(group));
	for (size_t i = 0; i < reply_fields_len; i++) {
		const struct reply_field *field = &reply_fields[i];

		if (field->group == group)
			(void)fprintf(f, "| `%s` | %s%s | %s |\n", field->name,
				type_text(field->type), field->optional ? ", optional" : "",
				field->description);
	}
}

char *api_reference_md(const struct settings *s, size_t *ret_len)
{
	cleanup_free char *text = NULL;
	size_t len = 0;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	(void)fprintf(f, "ExecutionRequest:\n\n");
	put_request(f, s);
	for (unsigned g = 0; g < REPLY_GROUPS; g++)
		put_group(f, (enum reply_group)g);
	if (fclose(f) != 0) /* reports what any of the writes above ran into */
		return NULL;
	if (ret_len)
		*ret_len = len;
	return take_ptr(text);
}
