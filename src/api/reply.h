/* The JSON answer to a run: the verdict in the API's words.
 *
 *   runs in    the front, the caller (`glovebox run --json`)
 *   owns       nothing; the text it returns is the caller's to free()
 *   trusts     the supervisor's numbers; no byte of the program's output
 */
#pragma once

#include "api/artifacts.h"
#include "api/compile.h"
#include "api/output.h"
#include "api/report.h"
#include "api/timeline.h"
#include "api/warnings.h"
#include "wire/msg.h"
#include "wire/network.h"

#include <stddef.h>
#include <stdint.h>

struct api_reply {
	const char *id;                /* of the run, printable */
	const struct msg_hello *hello; /* the layers in force and the caps */
	const struct msg_result *result;
	const struct run_limits *limits;      /* as submitted */
	uint64_t output_bytes;                /* that were to be kept of each stream */
	const char *language;                 /* its name; NULL: it was in an image */
	const char *image;                    /* that it was in; NULL: none */
	struct output_capture *out, *err;     /* straightened, not consumed */
	uint64_t queue_us;                    /* from the complete request to SUBMIT */
	const struct warnings *warnings;      /* may be NULL */
	const struct artifacts_list *files;   /* NULL: none were asked for, or there are none */
	uint64_t collect_us;                  /* from the verdict to the last of them */
	bool files_lost;                      /* there may be files, of which nothing is known */
	const struct api_report *report;      /* what the interpreter told; may be NULL */
	const struct timeline *timeline;      /* of both streams; NULL: it was not asked for */
	uint64_t submitted_ns;                /* by clock_ns(), if it was */
	const struct api_compile *compile;    /* NULL: there was no compiler */
	bool networked;                       /* it was given a network */
	const struct network_policy *policy;  /* what it asked for; where networked */
	const struct network_record *network; /* what it did with it; NULL: that is not known */
};

/* NULL: out of memory. */
char *api_reply_json(const struct api_reply *r, size_t *ret_len) __attribute__((nonnull(1)));

/* "SIGSEGV", "SIGRTMIN+3", "SIG77"; "" for 0. The text lies in `room` (at least 16 bytes). */
const char *api_signal_name(int number, char *text, size_t room) __attribute__((nonnull));
