/* The files that a program of `glovebox run --out DIR` leaves, written below DIR.
 *
 *   runs in    the caller
 *   owns       the directory's descriptor, the file that is being written
 *   threads    none
 *   blocks     as writing does
 *   trusts     no name: nothing is followed on the way down, and what is in the way is replaced
 *              only if it is no directory, and only by a file that is whole
 */
#pragma once

#include <glovebox.h>
#include <stdbool.h>
#include <stdint.h>

struct run_out {
	int dir_fd;
	int parent_fd, file_fd; /* of the file that is being written */
	const char *name;       /* ...in parent_fd, once it is whole */
	char unfinished[32];    /* ...until then */
	bool quiet;             /* the answer as JSON names what was left out */
	bool failed;            /* something could not be written, and that was said */
	unsigned left_out;
	char path[4096];
};

#define RUN_OUT_NONE ((struct run_out){ .dir_fd = -1, .parent_fd = -1, .file_fd = -1 })

/* Open DIR, or make it. 0, or -1 when it has said why not. */
int run_out_open(struct run_out *o, const char *dir) __attribute__((nonnull));

/* As gbx_artifact_fn. */
void run_out_take(struct run_out *o, int event, const struct gbx_artifact *a, const void *bytes,
	size_t len) __attribute__((nonnull(1, 3)));

/* The run is over: say what is missing. 0, or -1: not all that was to be written is. */
int run_out_end(struct run_out *o, const struct gbx_result *result) __attribute__((nonnull));

void run_out_close(struct run_out *o) __attribute__((nonnull));
