/* The one table of request fields. Validation, /openapi.json, /limits, the reference
 * page and MCP's inputSchema are all read from it; nothing else lists the fields.
 *
 *   runs in    the front, the caller
 *   owns       nothing; the table is constant
 */
#pragma once

#include "wire/limits.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stddef.h>

enum api_type {
	API_STRING,
	API_NUMBER,
	API_INTEGER,
	API_BYTES, /* a number of bytes, of which the one setting says the most */
	API_BOOLEAN,
	API_NAME,      /* the name of a language or an image */
	API_ENCODING,  /* "utf8" or "base64" */
	API_STRINGS,   /* an array of them */
	API_VARIABLES, /* an object of strings */
	API_FILES,     /* an array of {path, content, encoding, mode} */
	API_POLICY,    /* an object: request_network.h */
	API_WORD       /* one of api_field_words() */
};

/* What a field stands for. The numeric ones name a member of struct run_limits. */
enum api_meaning {
	API_CODE,
	API_LANGUAGE, /* before the limits, whose defaults are its own */
	API_IMAGE,    /* as well */
	API_TIMEOUT,
	API_MEMORY,
	API_CPU,
	API_NETWORK,
	API_NETWORK_POLICY, /* behind the field without which it asks for a network, too */
	API_PIDS,
	API_CPU_TIME,
	API_STDIN,
	API_STDIN_ENCODING,
	API_INPUT_ARGS,
	API_INPUT_ENV,
	API_INPUT_FILES,
	API_ENTRY_POINT, /* behind the files, one of which it names */
	API_REPORT,
	API_RETURN_LAST,
	API_FIGURES,
	API_OUTPUT_BYTES,
	API_INTERLEAVED,
	API_ARTIFACTS,
	API_FIELDS
};

struct api_field {
	enum api_meaning meaning;
	enum api_type type;
	bool required; /* unless entry_point stands in its place */
	const char *name, *title, *description;
	const char *example; /* a JSON value as text */
	double unit;         /* numeric fields: how much of the member is 1 in the request */
};

/* What a numeric field may hold on this server, in the request's own units. */
struct api_range {
	double least, most;
	double def;   /* what holds when the field is absent */
	bool has_def; /* false: absent means that nothing extra applies */
};

/* All fields in the order of the documents; API_FIELDS of them, index = meaning. */
extern const struct api_field api_fields[API_FIELDS];

bool api_field_numeric(const struct api_field *f) __attribute__((nonnull));
/* Is it one of those that request_inputs.c checks? */
bool api_field_is_input(const struct api_field *f) __attribute__((nonnull));
/* What an API_BOOLEAN is when it is left out. */
bool api_field_default(const struct api_field *f) __attribute__((nonnull));
/* What an API_WORD may be, ended by NULL; the first is what it is when it is left out. */
const char *const *api_field_words(const struct api_field *f) __attribute__((nonnull));
const char *api_type_word(enum api_type type); /* JSON Schema's word */

/* The field of that name (`len` bytes), or NULL. */
const struct api_field *api_field_by_name(const char *name, size_t len) __attribute__((nonnull));

/* CHECKs that the field is numeric, or API_BYTES. */
struct api_range api_field_range(const struct api_field *f, const struct settings *s)
	__attribute__((nonnull));

/* A value in the request's units to and from the member of `l` that it stands for. Setting
 * rounds to the nearest unit of the member; the value must lie within the field's range. */
void api_field_set(const struct api_field *f, struct run_limits *l, double value)
	__attribute__((nonnull));
double api_field_get(const struct api_field *f, const struct run_limits *l)
	__attribute__((nonnull));
