/* The one table of what the server's JSON objects hold. /openapi.json and the reference
 * page are made from it; a test holds the real replies against it, both ways.
 *
 *   runs in    the front, the caller
 *   owns       nothing; the table is constant
 */
#pragma once

#include <stddef.h>

/* A group is an object of the documents. */
enum reply_group {
	REPLY_TOP, /* the answer to POST /execute */
	REPLY_USAGE,
	REPLY_STREAM, /* output.stdout and output.stderr */
	REPLY_ISOLATION,
	REPLY_HEALTH, /* the answer to GET /health */
	REPLY_FIXED,  /* "fixed" in the answer to GET /limits */
	REPLY_GROUPS
};

enum reply_type {
	REPLY_STRING,
	REPLY_STRING_OR_NULL,
	REPLY_NUMBER,
	REPLY_INTEGER,
	REPLY_INTEGER_OR_NULL,
	REPLY_BOOLEAN,
	REPLY_STRINGS, /* an array of them */
	REPLY_STATUS,  /* one of the words of wire/verdict.h */
	REPLY_CAUSE,
	REPLY_OBJECT /* another component; its name is in `example` */
};

struct reply_field {
	enum reply_group group;
	enum reply_type type;
	const char *name, *description;
	const char *example; /* a JSON value as text, or the component's name */
	int optional;        /* 1: may be absent */
};

extern const struct reply_field reply_fields[];
extern const size_t reply_fields_len;

/* "ExecutionResponse", the name of the component. */
const char *reply_group_name(enum reply_group group);
