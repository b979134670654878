/* Fuzz target: what goes into a run beside its code. The first byte says which part of it:
 *   any bytes as a blob, in the cell: what is taken can be walked to its end and keeps the rules
 *   any bytes as paths, in the front: those that clash are those that a slow comparison finds
 *   any bytes as base64: what is taken is what its own bytes become again
 */
#include "api/inputs.h"
#include "api/text.h"
#include "api/writer.h"
#include "tests/fuzz/fuzz.h"

#include <stdbool.h>

#define PATHS_MAX 12

static void walk(const struct inputs *in)
{
	const char *word = in->args, *at = in->files;
	size_t sum = 0;

	for (uint32_t i = 0; i < in->head.args; i++, word = inputs_next(word))
		sum += strlen(word) + 1;
	CHECK(sum <= INPUTS_WORDS_BYTES_MAX && word == in->env);
	sum = 0;
	for (uint32_t i = 0; i < in->head.env; i++, word = inputs_next(word)) {
		CHECK(!inputs_variable_fault(word, strcspn(word, "=")));
		sum += strlen(word) + 1;
	}
	CHECK(sum <= INPUTS_WORDS_BYTES_MAX && word == in->files);
	for (uint32_t i = 0; i < in->head.files; i++) {
		volatile char byte = 0; /* read for the sanitizer */
		struct inputs_item item;

		inputs_take(&at, &item);
		CHECK(item.path[0] != '/' && item.path[0] != '\0' && item.mode <= 0777);
		CHECK(strlen(item.path) <= INPUTS_PATH_MAX && !strstr(item.path, "//"));
		CHECK((i + 1 == in->head.entry) == (item.path == in->entry));
		for (uint64_t n = 0; n < item.len; n++)
			byte = item.bytes[n];
		(void)byte;
	}
}

static void try_blob(const uint8_t *bytes, size_t len)
{
	/* A block of exactly that length, so that ASan notices one byte too far. */
	char *blob = malloc(len ? len : 1);
	struct inputs in;

	CHECK(blob);
	memcpy(blob, bytes, len);
	if (!inputs_open(blob, len, &in))
		walk(&in);
	free(blob);
}

static bool is_below(const struct inputs_plan_file *a, const struct inputs_plan_file *b)
{
	return a->path_len > b->path_len && memcmp(a->path, b->path, b->path_len) == 0 &&
	       a->path[b->path_len] == '/';
}

static void on_clash(void *ctx, unsigned file, const char *what)
{
	unsigned *bits = ctx;

	CHECK(what[0] != '\0' && !(*bits & 1u << file));
	*bits |= 1u << file;
}

/* Each file that has the path of an earlier one, or lies below another. */
static unsigned clashes(const struct inputs_plan *p)
{
	unsigned bits = 0;

	for (unsigned i = 0; i < p->file_count; i++) {
		const struct inputs_plan_file *f = &p->files[i];

		for (unsigned j = 0; j < p->file_count; j++) {
			const struct inputs_plan_file *g = &p->files[j];

			if ((j < i && f->path_len == g->path_len &&
				    memcmp(f->path, g->path, f->path_len) == 0) ||
				is_below(f, g))
				bits |= 1u << i;
		}
	}
	return bits;
}

static void try_paths(const uint8_t *bytes, size_t len)
{
	struct inputs_plan_file files[PATHS_MAX];
	struct inputs_plan p = { .files = files };
	struct inputs_need need;
	unsigned bits = 0;

	while (len > 0 && p.file_count < PATHS_MAX) {
		const uint8_t *end = memchr(bytes, '\n', len);
		size_t n = end ? (size_t)(end - bytes) : len;

		if (!inputs_path_fault((const char *)bytes, n))
			files[p.file_count++] =
				(struct inputs_plan_file){ .path = (const char *)bytes,
					.path_len = n };
		bytes += end ? n + 1 : n;
		len -= end ? n + 1 : n;
	}
	CHECK(inputs_plan_look(&p, NULL, on_clash, &bits, &need) == 0);
	CHECK(bits == clashes(&p));
	CHECK(need.inodes >= p.file_count);
}

static void try_base64(const uint8_t *bytes, size_t len)
{
	const char *text = (const char *)bytes;
	struct writer w = { 0 };
	size_t n;
	char *out, *again;

	if (!base64_valid(text, len, &n)) {
		CHECK(n <= len);
		return;
	}
	CHECK(base64_len(n) == len);
	out = malloc(n ? n : 1);
	CHECK(out);
	base64_decode(text, len, out);
	writer_base64(&w, NULL, out, n, NULL, 0);
	again = writer_take(&w, NULL);
	CHECK(again && strlen(again) == len + 2 && memcmp(again + 1, text, len) == 0);
	free(again);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	if (len == 0)
		return 0;
	if (bytes[0] == 'p')
		try_paths(bytes + 1, len - 1);
	else if (bytes[0] == '6')
		try_base64(bytes + 1, len - 1);
	else
		try_blob(bytes + 1, len - 1);
	return 0;
}
