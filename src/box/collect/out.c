#include "box/collect/out.h"

#include "kernel/sys.h"

#include <string.h>

void out_init(struct out *o, int fd)
{
	o->fd = fd;
	o->error = 0;
	o->skipped = o->more = 0;
	o->len = 0;
}

static void flush(struct out *o)
{
	size_t at = 0;

	while (o->error == 0 && at < o->len) {
		ssize_t n = sys.write(o->fd, o->bytes + at, o->len - at);

		if (n < 0)
			o->error = (int)n;
		else
			at += (size_t)n;
	}
	o->len = 0;
}

static void put(struct out *o, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		size_t room = sizeof(o->bytes) - o->len, n = len < room ? len : room;

		memcpy(o->bytes + o->len, at, n);
		o->len += n;
		at += n;
		len -= n;
		if (o->len == sizeof(o->bytes))
			flush(o);
	}
}

static void put_record(struct out *o, const struct files_record *r, const void *tail, size_t len)
{
	put(o, r, sizeof(*r));
	put(o, tail, len);
}

void out_file(struct out *o, const char *path, size_t len, uint64_t size)
{
	const struct files_record r = {
		.type = FILES_FILE, .path_bytes = (uint16_t)len, .size = size
	};

	put_record(o, &r, path, len);
}

void out_bytes(struct out *o, const void *bytes, uint32_t len)
{
	const struct files_record r = { .type = FILES_BYTES, .bytes = len };

	put_record(o, &r, bytes, len);
}

void out_close(struct out *o, enum files_reason why)
{
	const struct files_record r = { .type = FILES_CLOSE, .reason = (uint8_t)why };

	put_record(o, &r, "", 0);
}

void out_skip(struct out *o, const char *path, size_t len, uint64_t size, enum files_reason why)
{
	const struct files_record r = {
		.type = FILES_SKIP,
		.reason = (uint8_t)why,
		.path_bytes = (uint16_t)len,
		.size = size,
	};

	if (o->skipped + len + FILES_SKIP_FRAME > FILES_SKIPPED_MAX) {
		o->more++;
		return;
	}
	o->skipped += len + FILES_SKIP_FRAME;
	put_record(o, &r, path, len);
}

int out_end(struct out *o)
{
	const struct files_record r = { .type = FILES_END, .size = o->more };

	put_record(o, &r, "", 0);
	flush(o);
	return o->error;
}
