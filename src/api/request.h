/* The JSON body of POST /execute, parsed and checked against this server's bounds.
 *
 *   runs in    the front (confined), the caller
 *   owns       what it returns belongs to the caller, see api_request_free()
 *   blocks     no; about 15 ms of CPU for a body of 1 MB
 *   trusts     no byte of the body
 *
 * jansson decides what is JSON; it must have been seeded (json_object_seed(0)) before the
 * process gave up /dev/urandom.
 */
#pragma once

#include "api/artifacts.h"
#include "api/warnings.h"
#include "wire/language.h"
#include "wire/network.h"
#include "wire/settings.h"

#include <stdbool.h>
#include <stddef.h>

#define API_DEPTH_MAX   64 /* levels of brackets; one more is refused */
#define API_UNKNOWN_MAX 16 /* unknown fields named in warnings[]; the others are counted */

/* What a request is held against. */
struct api_server {
	const struct settings *settings;
	const struct offers *offers; /* NULL: no languages but the default one */
};

struct api_request {
	char *code; /* may contain NUL; a NUL follows the last byte. NULL: a file is the program */
	size_t code_len;
	char *inputs; /* arguments, environment, files: wire/inputs.h. NULL: none */
	size_t inputs_len;
	char *input; /* stdin; NULL: it is at its end */
	size_t input_len;
	uint32_t language; /* its number, and what was offered as that number */
	uint32_t edition;
	char name[RUNTIME_NAME_MAX];
	bool is_image;
	struct run_limits limits; /* every member set: given or default */
	bool allow_network;
	struct network_policy *network; /* with allow_network: what it asks for; else NULL */
	uint64_t output_bytes;          /* most that is kept of each stream: given or default */
	bool interleaved;
	enum artifacts artifacts; /* what of its files is wanted */
	bool report, return_last; /* what the interpreter shall tell */
	uint32_t figures;         /* REPORT_PNG, REPORT_SVG */
	struct warnings warnings; /* the unknown fields */
};

/* What SUBMIT asks to be told: REPORT_… of wire/report.h. */
uint32_t api_request_report(const struct api_request *r) __attribute__((nonnull));
/* The answer to a request whose language, or image, turned out not to be there: a 422 as those of
 * api_request_parse(), in which `why` is the reason. NULL: out of memory. */
char *api_missing_json(const char *name, bool image, const char *why, size_t *ret_len)
	__attribute__((nonnull(1, 3)));

/* A body that is not run: the answer to give instead. */
struct api_refusal {
	int status; /* 413 or 422 */
	char *json; /* {"detail": …} */
	size_t len;
};

/* Parse and check. 0: *ret is filled. -EINVAL: *ret_why holds the answer, which lists
 * every wrong field in the table's order. -ENOMEM. Only what is said here to be filled
 * needs to be freed. */
int api_request_parse(const void *body, size_t len, const struct api_server *server,
	struct api_request *ret, struct api_refusal *ret_why) __attribute__((nonnull(3, 4, 5)));

void api_request_free(struct api_request *r) __attribute__((nonnull));
void api_refusal_free(struct api_refusal *r) __attribute__((nonnull));

/* {"detail": "TEXT"}, the body of every error but a 422; the caller frees it. NULL: out of
 * memory. */
char *api_detail(size_t *ret_len, const char *fmt, ...)
	__attribute__((format(printf, 2, 3), nonnull(2)));
