/* The documents that describe the API and this server: GET /openapi.json, /limits and
 * /health, and the table of fields for the reference page.
 *
 *   runs in    the front, the caller, the documentation generator
 *   owns       nothing; each text is the caller's to free(), NULL means out of memory.
 *              `ret_len` may be NULL
 */
#pragma once

#include "wire/msg.h"

#include <stdbool.h>
#include <stddef.h>

#define API_VERSION "1.0.0" /* of the API, not of the program */

/* OpenAPI 3.1, complete for what exists. Ranges and defaults are this server's. */
char *api_openapi_json(const struct settings *s, size_t *ret_len) __attribute__((nonnull(1)));

/* Defaults, least and most of every field, and the fixed bounds. */
char *api_limits_json(const struct settings *s, size_t *ret_len) __attribute__((nonnull(1)));

struct api_health {
	const char *version; /* of the program */
	const struct msg_hello *hello;
	const struct msg_health *health;     /* the last one; NULL when none has come yet */
	const struct msg_selftest *selftest; /* the last one; NULL as one that is not known */
	unsigned running, queued;
	bool draining; /* the server is shutting down */
};

/* Does this server take runs now? Decides the document's words and its HTTP status, 200
 * or 503. */
bool api_health_ready(const struct api_health *h) __attribute__((nonnull));
char *api_health_json(const struct api_health *h, size_t *ret_len) __attribute__((nonnull(1)));

/* JSON Schema (2020-12) of the request's body, as MCP's inputSchema needs it. */
char *api_request_schema(const struct settings *s, size_t *ret_len) __attribute__((nonnull(1)));

/* The request's fields as a Markdown table, for docs/api.md. */
char *api_reference_md(const struct settings *s, size_t *ret_len) __attribute__((nonnull(1)));
