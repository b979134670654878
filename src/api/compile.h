/* The compiler's part of a run, for the answer.
 *
 *   runs in    the front, the caller
 *   owns       nothing
 *   trusts     the supervisor's numbers; no byte of the compiler's output
 */
#pragma once

#include "api/output.h"
#include "api/writer.h"
#include "wire/msg.h"

struct api_compile {
	const struct msg_result *result;
	const struct run_limits *limits;
	struct output_capture *out, *err; /* straightened, not consumed */
};

/* The verdict of a run whose program was not run, because its compiler failed: error, with the
 * compiler's exit code; or cancelled, as the compiler was. */
struct msg_result api_compile_failure(const struct msg_result *compiler) __attribute__((nonnull));

/* The limits of a compiler under that key. */
void api_compile_put_limits(struct writer *w, const char *key, const struct run_limits *l)
	__attribute__((nonnull));

/* "compile": {…}, and what was dropped of its output, for warnings[]. */
void api_compile_put(struct writer *w, const struct api_compile *c) __attribute__((nonnull));
void api_compile_warn(struct writer *w, const struct api_compile *c) __attribute__((nonnull));
