/* One run in progress: its pipes, moved until the program has ended and every byte that
 * it wrote has arrived.
 *
 *   runs in    the caller
 *   owns       our ends of the pipes and what was captured, until pump_done()
 *   threads    none
 *   blocks     until the run's end
 */
#pragma once

#include "api/output.h"
#include "api/timeline.h"
#include "caller/lib/artifacts.h"
#include "caller/lib/session.h"

#include <stdbool.h>
#include <stddef.h>

enum pump_stream {
	PUMP_OUT = TIMELINE_OUT,
	PUMP_ERR = TIMELINE_ERR,
	PUMP_STREAMS
};

#define PUMP_BYTES 65536 /* a pipe's capacity: one read empties it */

struct pump {
	struct gbx_session *session;
	const struct gbx_request *request;
	const char *language;  /* its name; NULL: it is in an image */
	const char *image;     /* that one's */
	struct pump *compiler; /* that has ended before; NULL: none */
	bool is_compiler;
	struct run_limits limits;
	const struct network_policy *policy; /* borrowed; NULL: no network was asked for */
	uint64_t run;
	int network_fd;               /* what it shares with its gate; -1: it has no network */
	int report_fd;                /* what the interpreter told; -1: it was not asked */
	int input_fd;                 /* write end of the program's stdin; -1 when ended */
	int output_fds[PUMP_STREAMS]; /* read ends; -1 at their end */
	struct output_capture captures[PUMP_STREAMS];
	struct timeline timeline; /* only where it is asked for */
	uint64_t submitted_ns;    /* by clock_ns() */
	const char *input;        /* what is still to be written */
	size_t input_len;
	bool input_ended; /* nothing comes after that */
	bool result_here;
	struct msg_result result;
	struct incoming *files; /* NULL: none were asked for, or there are none */
	char bytes[PUMP_BYTES]; /* input on its way from request->input_fd */
};

/* Most that is kept of each stream, where any is. */
uint64_t pump_output_bytes(const struct gbx_session *s, const struct gbx_request *q)
	__attribute__((nonnull));

/* Make the pipes. ret_theirs: stdin, stdout, stderr for the program; the caller's to
 * close once they are sent. */
int pump_init(struct pump *p, struct gbx_session *s, const struct gbx_request *q, int ret_theirs[3],
	struct fault *f) __attribute__((nonnull));
void pump_done(struct pump *p) __attribute__((nonnull));

/* Move bytes until the result is here and both streams have ended. -EAGAIN and other
 * errors of a refusal; -EPIPE when the supervisor was lost. */
int pump_run(struct pump *p, struct fault *f) __attribute__((nonnull));
