#include "api/timeline.h"

#include "api/text.h"

#include <stdbool.h>
#include <stdlib.h>

#define HALF (TIMELINE_CHUNKS_MAX / 2)

/* Where the nth chunk lies: the first half stays, the second is a ring. */
static struct timeline_chunk *place(const struct timeline *t, uint64_t n)
{
	return &t->chunks[n < HALF ? n : HALF + (n - HALF) % HALF];
}

void timeline_note(
	struct timeline *t, enum timeline_stream stream, uint64_t from, size_t len, uint64_t now_ns)
{
	struct timeline_chunk *c;

	if (!t->chunks)
		t->chunks = calloc(TIMELINE_CHUNKS_MAX, sizeof(*t->chunks));
	if (!t->chunks) {
		t->count++;
		t->omitted_bytes += len;
		return;
	}
	c = t->count > 0 ? place(t, t->count - 1) : NULL;
	if (c && c->stream == stream && c->to == from && now_ns - c->at_ns < TIMELINE_JOIN_NS) {
		c->to += len;
		return;
	}
	c = place(t, t->count);
	if (t->count >= TIMELINE_CHUNKS_MAX)
		t->omitted_bytes += c->to - c->from;
	t->count++;
	*c = (struct timeline_chunk){ now_ns, from, from + len, stream };
}

void timeline_free(struct timeline *t)
{
	free(t->chunks);
	*t = (struct timeline){ 0 };
}

/* A piece of kept bytes, of which the first is number `at` of its stream. */
struct piece {
	const char *bytes;
	uint64_t at;
	size_t len;
};

/* Not into the middle of a character: it comes with its last byte. */
static size_t cut(const struct piece *p, uint64_t where)
{
	if (where <= p->at)
		return 0;
	if (where >= p->at + p->len)
		return p->len;
	return utf8_cut_end(p->bytes, (size_t)(where - p->at));
}

/* What of a chunk lies in a piece. */
static struct piece part(const struct piece *p, const struct timeline_chunk *c)
{
	size_t from = cut(p, c->from), to = cut(p, c->to);

	return (struct piece){ p->bytes + from, p->at + from, to - from };
}

static void put_chunk(struct writer *w, const struct timeline_chunk *c, uint64_t begin_ns,
	const struct output_view *v)
{
	static const char *const names[] = { [TIMELINE_OUT] = "stdout", [TIMELINE_ERR] = "stderr" };
	const struct piece head = { v->head, 0, v->head_len };
	const struct piece tail = { v->tail, v->total - v->tail_len, v->tail_len };
	const struct piece a = part(&head, c), b = part(&tail, c);
	uint64_t gap_from = c->from > head.len ? c->from : head.len;
	uint64_t gap_to = c->to < tail.at ? c->to : tail.at;
	uint64_t dropped = gap_to > gap_from ? gap_to - gap_from : 0;

	if (a.len + b.len + dropped == 0)
		return; /* the beginning of a character, which is in the next one */
	writer_object(w, NULL);
	writer_string(w, "stream", names[c->stream]);
	writer_thousandths(w, "ms", c->at_ns > begin_ns ? (c->at_ns - begin_ns) / 1000 : 0);
	writer_text_begin(w, "text");
	writer_text(w, a.bytes, a.len);
	writer_text(w, b.bytes, b.len);
	writer_text_end(w);
	writer_u64(w, "bytes", a.len + b.len);
	writer_u64(w, "dropped", dropped);
	if (utf8_valid(a.bytes, a.len) != a.len || utf8_valid(b.bytes, b.len) != b.len)
		writer_base64(w, "base64", a.bytes, a.len, b.bytes, b.len);
	writer_close(w);
}

void timeline_put(const struct timeline *t, uint64_t begin_ns,
	const struct output_view views[TIMELINE_STREAMS], struct writer *w)
{
	uint64_t omitted;

	if (!t) {
		writer_null(w, "interleaved");
		return;
	}
	omitted = !t->chunks                       ? t->count
		  : t->count > TIMELINE_CHUNKS_MAX ? t->count - TIMELINE_CHUNKS_MAX
						   : 0;
	writer_object(w, "interleaved");
	writer_array(w, "chunks");
	for (uint64_t n = 0; t->chunks && n < t->count; n++) {
		if (n >= HALF && n < HALF + omitted)
			continue;
		put_chunk(w, place(t, n), begin_ns, &views[place(t, n)->stream]);
	}
	writer_close(w);
	writer_u64(w, "chunks_omitted", omitted);
	writer_u64(w, "bytes_omitted", t->omitted_bytes);
	writer_close(w);
}
