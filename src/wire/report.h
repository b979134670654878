/* What a program's interpreter tells beside the output: the exception that ended the program, the
 * value of its last expression, the figures that were open. It goes into memory that SUBMIT and
 * START carry, which the front makes and reads when the run is over. Here is its format.
 *
 *   runs in    the front and the caller, which make the memory and read it (api/report.h); a
 *              program's interpreter, where report.py writes into it. The
 *              supervisor looks at its size and seals, and at no byte of it
 *   trusts     no byte of it: the program can write all of it, at any time
 *
 * Records without padding, in this machine's byte order, from the beginning on; where no magic
 * stands they end. The memory is sparse: what was never written is no page of anybody's.
 *
 *   ERROR      JSON, as report.py's error() makes it
 *   RESULT     JSON, as result() makes it, and a DATA for each of its representations
 *   FIGURE     JSON, as draw() makes it, and a DATA
 */
#pragma once

#include <stdint.h>

/* Of the memory: some fifty figures as PNG. No more than that, because an answer with all of it
 * (api/report.h bounds what it becomes there) has to be kept until its client has taken it. */
#define REPORT_BYTES (UINT64_C(4) << 20)

/* What shall be told, in SUBMIT and START. */
#define REPORT_ERROR UINT32_C(1)
#define REPORT_LAST  UINT32_C(2) /* the value of the last expression */
#define REPORT_PNG   UINT32_C(4) /* figures as such */
#define REPORT_SVG   UINT32_C(8)
#define REPORT_ALL   UINT32_C(15)

#define REPORT_MAGIC UINT32_C(0x31524247) /* "GBR1" */

enum report_kind {
	REPORT_KIND_ERROR = 1,
	REPORT_KIND_RESULT,
	REPORT_KIND_FIGURE,
	REPORT_KIND_DATA
};

struct report_record {
	uint32_t magic;
	uint32_t kind;  /* enum report_kind */
	uint64_t bytes; /* that follow */
};
