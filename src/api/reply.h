/* The JSON answer to a run: the verdict in the API's words.
 *
 *   runs in    the front, the caller (`glovebox run --json`)
 *   owns       nothing; the text it returns is the caller's to free()
 *   trusts     the supervisor's numbers; no byte of the program's output
 */
#pragma once

#include "api/output.h"
#include "api/warnings.h"
#include "wire/msg.h"

#include <stddef.h>
#include <stdint.h>

struct api_reply {
	const char *id;                /* of the run, printable */
	const struct msg_hello *hello; /* the layers in force and the caps */
	const struct msg_result *result;
	const struct run_limits *limits;  /* as submitted */
	struct output_capture *out, *err; /* straightened, not consumed */
	uint64_t queue_us;                /* from the complete request to SUBMIT */
	const struct warnings *warnings;  /* may be NULL */
};

/* NULL: out of memory. */
char *api_reply_json(const struct api_reply *r, size_t *ret_len) __attribute__((nonnull(1)));

/* "SIGSEGV", "SIGRTMIN+3", "SIG77"; "" for 0. The text lies in `room` (at least 16 bytes). */
const char *api_signal_name(int number, char *text, size_t room) __attribute__((nonnull));
