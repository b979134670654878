/* Fuzz target: what a program may have written where its interpreter tells of it (wire/report.h),
 * read and written into a reply. Checks, beyond memory errors, that
 *  - the reply is JSON with exactly the members that it always has, and those of their types;
 *  - it is not longer than a report can become;
 *  - nothing is passed on that was not there: no more figures and representations than are taken;
 *  - what was read is read the same again.
 */
#include "api/report.h"
#include "tests/fuzz/fuzz.h"
#include "wire/report.h"

#include <jansson.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define FRAME_BYTES 65536 /* of the reader's own: keys, what it says of what it leaves out */

/* Records of the input's kinds, lengths and bytes; now and then a head that is nothing of the kind. */
static void write_records(struct fuzz *z, int fd)
{
	uint64_t at = 0;

	while (z->len > 0 && at < REPORT_BYTES / 2) {
		struct report_record r = { REPORT_MAGIC, fuzz_u8(z) % 6, 0 };
		uint8_t how = fuzz_u8(z);
		size_t n;
		const uint8_t *p = fuzz_take(z, (size_t)fuzz_u8(z) << (how & 7), &n);

		r.bytes = n;
		if (how >= 0xf0)
			fuzz_fill(z, &r, sizeof(r));
		CHECK(pwrite(fd, &r, sizeof(r), (off_t)at) == (ssize_t)sizeof(r));
		at += sizeof(r);
		CHECK(pwrite(fd, p, n, (off_t)at) == (ssize_t)n);
		at += n;
	}
}

static char *reply_of(int fd, bool *ret_bad)
{
	struct api_report report;
	struct writer w = { 0 };

	api_report_read(fd, &report);
	CHECK(report.figures_count <= API_REPORT_FIGURES_MAX);
	CHECK(report.items_count <= API_REPORT_ITEMS_MAX);
	*ret_bad = report.bad != NULL;
	writer_object(&w, NULL);
	api_report_put(&report, &w);
	writer_close(&w);
	api_report_free(&report);
	return writer_take(&w, NULL);
}

static void check_reply(const char *text)
{
	/* Keys of a value may be anything, but each of ours stands once. */
	json_t *v = json_loadb(text, strlen(text), JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);
	const json_t *error, *result, *figures;

	CHECK(v && json_object_size(v) == 3);
	error = json_object_get(v, "error");
	result = json_object_get(v, "result");
	figures = json_object_get(v, "figures");
	CHECK(json_is_null(error) || json_object_size(error) == 7);
	CHECK(json_is_null(result) || json_object_size(result) == 4);
	CHECK(json_is_array(figures) && json_array_size(figures) <= API_REPORT_FIGURES_MAX);
	for (size_t i = 0; i < json_array_size(figures); i++)
		CHECK(json_object_size(json_array_get(figures, i)) == 6);
	json_decref(v);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct fuzz z = { bytes, len };
	int fd = api_report_make();
	bool bad, bad_again;
	char *text, *again;

	CHECK(fd >= 0);
	write_records(&z, fd);
	text = reply_of(fd, &bad);
	CHECK(text);
	CHECK(strlen(text) < API_REPORT_ITEMS_BYTES + API_REPORT_WORDS_BYTES + FRAME_BYTES);
	check_reply(text);
	again = reply_of(fd, &bad_again);
	CHECK(again && bad == bad_again && strcmp(text, again) == 0);
	free(text);
	free(again);
	(void)close(fd);
	return 0;
}
