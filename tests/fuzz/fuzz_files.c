/* Fuzz target: the stream of a run's files, as a client reads it. Any bytes, in one piece and cut
 * at any places, are the same files; the paths keep their rules, nothing is more than the caps
 * allow, what is kept was kept whole or given back, and the reply is JSON. */
#include "api/artifacts.h"
#include "api/writer.h"
#include "tests/fuzz/fuzz.h"

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>

#define PLACES 64

/* A keeper with little room, which is told of each place that it gave. */
static struct place {
	bool taken;
	uint64_t size, got;
} places[PLACES];
static uint64_t room;

static int begin(void *ctx, uint64_t size, void **ret_place)
{
	(void)ctx;
	for (unsigned i = 0; i < PLACES && size <= room; i++) {
		if (places[i].taken)
			continue;
		places[i] = (struct place){ true, size, 0 };
		room -= size;
		*ret_place = &places[i];
		return 0;
	}
	return -ENOSPC;
}

static int bytes(void *ctx, void *place, uint64_t at, const void *from, size_t len)
{
	struct place *p = place;

	(void)ctx;
	(void)from;
	CHECK(p->taken && at == p->got && len <= p->size - p->got);
	p->got += len;
	return p->size == 13 ? -EIO : 0; /* a disk that fails */
}

static void drop(void *ctx, void *place)
{
	struct place *p = place;

	(void)ctx;
	CHECK(p->taken);
	p->taken = false;
	room += p->size;
}

static const struct artifacts_keeper keeper = { begin, bytes, drop, NULL };

static void check_list(const struct artifacts_list *l, const struct artifacts_plan *plan)
{
	uint64_t total = 0, inlined = 0;

	CHECK(l->count <= plan->caps.count);
	for (size_t i = 0; i < l->count; i++) {
		const struct artifact *a = &l->files[i];

		CHECK(!files_path_fault(a->path, a->path_len) && strlen(a->path) == a->path_len);
		CHECK(a->size <= plan->caps.file_bytes);
		CHECK(i == 0 || files_path_compare(l->files[i - 1].path, l->files[i - 1].path_len,
					a->path, a->path_len) < 0);
		CHECK(!a->kept || ((struct place *)a->place)->got == a->size);
		total += a->size;
		inlined += a->content ? a->size : 0;
	}
	CHECK(total <= plan->caps.total_bytes && inlined <= plan->inline_bytes);
	for (size_t i = 0; i < l->skipped_count; i++)
		CHECK(!files_path_fault(l->skipped[i].path, l->skipped[i].path_len));
}

static char *as_json(const struct artifacts_list *l, size_t *ret_len)
{
	struct writer w = { 0 };
	char *json;

	writer_object(&w, NULL);
	artifacts_put(&w, l, "0123456789abcdef0123456789abcdef");
	writer_close(&w);
	json = writer_take(&w, ret_len);
	CHECK(json);
	return json;
}

/* What comes of the stream in pieces of `piece` bytes. */
static char *read_stream(const uint8_t *at, size_t len, size_t piece,
	const struct artifacts_plan *plan, size_t *ret_len)
{
	struct artifacts_list *l = malloc(sizeof(*l));
	const char *rule;
	char *json;
	int r = 0;

	CHECK(l);
	room = 4096;
	artifacts_init(l, plan);
	while (len > 0 && r == 0) {
		size_t n = piece < len ? piece : len;
		char *block = fuzz_block(at, n);

		r = artifacts_feed(l, block, n, &rule);
		CHECK(r == 0 || (r == -EPROTO && rule[0]));
		free(block);
		at += n;
		len -= n;
	}
	artifacts_end(l);
	check_list(l, plan);
	json = as_json(l, ret_len);
	artifacts_unkeep(l);
	artifacts_free(l);
	CHECK(room == 4096);
	free(l);
	return json;
}

int LLVMFuzzerTestOneInput(const uint8_t *input, size_t len)
{
	struct fuzz z = { input, len };
	const struct artifacts_plan plan = {
		.mode = fuzz_u8(&z) & 1 ? ARTIFACTS_INLINE : ARTIFACTS_LIST,
		.caps = { .count = 20, .file_bytes = 5000, .total_bytes = 9000 },
		.inline_bytes = 3000,
		.keeper = fuzz_u8(&z) & 1 ? &keeper : NULL,
	};
	size_t piece = fuzz_u8(&z) + 1u, whole_len, cut_len;
	char *whole = read_stream(z.at, z.len, z.len + 1, &plan, &whole_len);
	char *cut = read_stream(z.at, z.len, piece, &plan, &cut_len);
	json_t *parsed =
		json_loadb(whole, whole_len, JSON_REJECT_DUPLICATES | JSON_ALLOW_NUL, NULL);

	CHECK(whole_len == cut_len && memcmp(whole, cut, whole_len) == 0);
	CHECK(parsed);
	json_decref(parsed);
	free(whole);
	free(cut);
	return 0;
}
