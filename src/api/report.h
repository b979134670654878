/* What a program's interpreter has told beside the output (wire/report.h): read out of the shared
 * memory, checked in every byte, and written into the reply.
 *
 *   runs in    the front, the caller
 *   owns       a copy of what was there, until api_report_free()
 *   blocks     no; some ms of CPU for a memory that is full
 *   trusts     no byte. A program may have written all of it: then it has lied about its own
 *              error, result and figures, and about nothing else of the reply
 */
#pragma once

#include "api/writer.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* report.py's: 32 in both formats, and one that says how many there are besides. */
#define API_REPORT_FIGURES_MAX 65u
#define API_REPORT_ITEMS_MAX   16u /* representations of a value */

/* What a report can become in a reply: the bytes of all representations and figures as JSON has
 * them, and everything else. Images take four thirds of the memory, and texts of a program that does
 * not mean to be a burden little more than they are; a control character takes six bytes. */
#define API_REPORT_ITEMS_BYTES (UINT64_C(6) << 20)
#define API_REPORT_WORDS_BYTES (UINT64_C(2) << 20)

/* Bytes of a representation or a figure, in the copy. */
struct api_report_item {
	const char *bytes;
	size_t len;
	bool left_out; /* it would take more of the reply than there is room for, and the reply says so */
};

struct api_report {
	char *copy;      /* NULL: nothing was told */
	const char *bad; /* why the rest was not read, as a constant text; NULL: all was */
	json_t *error, *result, *figures[API_REPORT_FIGURES_MAX];
	struct api_report_item
		items[API_REPORT_ITEMS_MAX]; /* of the result, as its "mime" lists them */
	struct api_report_item drawn[API_REPORT_FIGURES_MAX];
	unsigned items_count, figures_count;
};

/* Memory for a report, empty, which nobody can make longer or shorter. The descriptor or a
 * negative errno. */
int api_report_make(void);

/* Read what stands in `fd`. It never fails: what cannot be read is named by `bad`. */
void api_report_read(int fd, struct api_report *ret) __attribute__((nonnull));
void api_report_free(struct api_report *r) __attribute__((nonnull));

/* The members "result", "error" and "figures". `r` may be NULL. */
void api_report_put(const struct api_report *r, struct writer *w) __attribute__((nonnull(2)));
