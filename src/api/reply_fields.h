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
	REPLY_DENIAL,      /* an item of denials[] */
	REPLY_FILE,        /* ...of files[] */
	REPLY_SKIPPED,     /* ...of skipped[] */
	REPLY_RESULT,      /* "result" */
	REPLY_ERROR,       /* "error" */
	REPLY_RELATED,     /* an item of its related[] */
	REPLY_FRAME,       /* an item of a traceback[] */
	REPLY_FIGURE,      /* an item of figures[] */
	REPLY_INTERLEAVED, /* "interleaved" */
	REPLY_CHUNK,       /* an item of its chunks[] */
	REPLY_NETWORK,     /* "network" */
	REPLY_CONNECTION,  /* an item of its connections[] */
	REPLY_HEALTH,      /* the answer to GET /health */
	REPLY_GIVEN,       /* "network" in it */
	REPLY_SELFTEST,    /* "selftest" in it */
	REPLY_FIXED,       /* "fixed" in the answer to GET /limits */
	REPLY_COMPILE,     /* "compile" in the answer to POST /execute */
	REPLY_RUNTIMES,    /* the answer to GET /runtimes */
	REPLY_RUNTIME,     /* an item of runtimes[] in it */
	REPLY_PACKAGE,     /* an item of packages[] in that */
	REPLY_IMAGE,       /* an item of images[] in GET /runtimes */
	REPLY_GROUPS
};

enum reply_type {
	REPLY_STRING,
	REPLY_STRING_OR_NULL,
	REPLY_NUMBER,
	REPLY_INTEGER,
	REPLY_INTEGER_OR_NULL,
	REPLY_BOOLEAN,
	REPLY_BOOLEAN_OR_NULL,
	REPLY_STRINGS, /* an array of them */
	REPLY_STATUS,  /* one of the words of wire/verdict.h */
	REPLY_CAUSE,
	REPLY_OBJECT, /* another component; its name is in `example` */
	REPLY_OBJECT_OR_NULL,
	REPLY_BUNDLE,  /* an object with any members */
	REPLY_OBJECTS, /* an array of them */
	REPLY_OBJECTS_OR_NULL
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
