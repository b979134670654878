#include "api/output.h"

#include "api/text.h"
#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define OUTPUT_FIRST_ROOM 4096

void output_init(struct output_capture *o, size_t cap)
{
	CHECK(cap > 0);
	*o = (struct output_capture){ .cap = cap, .head_cap = cap - cap / 2 };
}

void output_free(struct output_capture *o)
{
	free(o->bytes);
	*o = (struct output_capture){ 0 };
}

static size_t min_size(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Room for `want` bytes, which is at most the cap. */
static bool grow(struct output_capture *o, size_t want)
{
	size_t room = o->room ? o->room : min_size(OUTPUT_FIRST_ROOM, o->cap);
	char *p;

	if (want <= o->room)
		return true;
	while (room < want)
		room = room > o->cap / 2 ? o->cap : room * 2;
	p = realloc(o->bytes, room);
	if (!p)
		return false;
	o->bytes = p;
	o->room = room;
	return true;
}

/* The buffer is full: overwrite the oldest bytes of its second half. */
static void overwrite(struct output_capture *o, const char *p, size_t len)
{
	char *ring = o->bytes + o->head_cap;
	size_t size = o->cap - o->head_cap, n;

	if (size == 0)
		return;
	if (len >= size) {
		memcpy(ring, p + len - size, size);
		o->oldest = 0;
		return;
	}
	n = min_size(len, size - o->oldest);
	memcpy(ring + o->oldest, p, n);
	memcpy(ring, p + n, len - n);
	o->oldest = (o->oldest + len) % size;
}

int output_feed(struct output_capture *o, const void *bytes, size_t len)
{
	const char *p = bytes;
	size_t n = min_size(len, o->cap - o->len);

	o->total += len;
	if (n > 0) {
		if (!grow(o, o->len + n))
			return -ENOMEM;
		memcpy(o->bytes + o->len, p, n);
		o->len += n;
	}
	if (n < len)
		overwrite(o, p + n, len - n);
	return 0;
}

static void reverse(char *p, size_t len)
{
	for (size_t i = 0; i < len / 2; i++) {
		char c = p[i];

		p[i] = p[len - 1 - i];
		p[len - 1 - i] = c;
	}
}

/* Turn the ring so that its oldest byte comes first, without a second buffer. */
static void straighten(struct output_capture *o)
{
	char *ring = o->bytes + o->head_cap;

	if (o->oldest == 0)
		return;
	reverse(ring, o->oldest);
	reverse(ring + o->oldest, o->cap - o->head_cap - o->oldest);
	reverse(ring, o->cap - o->head_cap);
	o->oldest = 0;
}

struct output_view output_view(struct output_capture *o)
{
	struct output_view v = { .head = "", .tail = "", .total = o->total, .utf8 = true };
	size_t cut;

	if (o->len == 0) {
		v.dropped = v.total;
		return v;
	}
	straighten(o);
	v.head = o->bytes;
	v.head_len = o->len;
	if (o->total > o->len) {
		v.head_len = utf8_cut_end(o->bytes, min_size(o->len, o->head_cap));
		v.tail = o->bytes + min_size(o->len, o->head_cap);
		v.tail_len = o->len - min_size(o->len, o->head_cap);
		cut = utf8_cut_start(v.tail, v.tail_len);
		v.tail += cut;
		v.tail_len -= cut;
	}
	v.dropped = v.total - v.head_len - v.tail_len;
	v.utf8 = utf8_valid(v.head, v.head_len) == v.head_len &&
		 utf8_valid(v.tail, v.tail_len) == v.tail_len;
	return v;
}
