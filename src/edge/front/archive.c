/* pax's format, in which any name and any size have a place. Names are put into it as the bytes
 * that they are (hdrcharset=BINARY): this process has no locale that could say more of them. */
#include "edge/front/archive.h"

#include "base/own.h"
#include "edge/front/shelf.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PIECE 16384 /* of a file, read at a time */
#define MODE  0644  /* a program's own modes are nobody else's */

struct archive_stream {
	const struct shelf *shelf;
	const struct stored *run;
	struct archive *tar;
	size_t next;                    /* file to begin */
	const struct stored_file *file; /* whose bytes are being written; NULL: none */
	uint64_t at;
	bool closed;
	bool left;  /* nobody reads any more */
	char *made; /* what was made and not read yet: from `given` to `len` of `room` bytes */
	size_t given, len, room;
};

static la_ssize_t on_write(struct archive *tar, void *ctx, const void *bytes, size_t len)
{
	struct archive_stream *a = ctx;

	if (a->left) {
		archive_set_error(tar, EPIPE, "nobody reads");
		return -1;
	}
	if (len > a->room - a->len) {
		size_t want = a->len + len + PIECE;
		char *more = realloc(a->made, want);

		if (!more) {
			archive_set_error(tar, ENOMEM, "out of memory");
			return -1;
		}
		a->made = more;
		a->room = want;
	}
	memcpy(a->made + a->len, bytes, len);
	a->len += len;
	return (la_ssize_t)len;
}

static int begin_file(struct archive_stream *a)
{
	const struct stored_file *f = &a->run->files[a->next++];
	struct archive_entry *e = archive_entry_new();
	int r;

	if (!e)
		return -ENOMEM;
	archive_entry_copy_pathname(e, f->path);
	archive_entry_set_filetype(e, AE_IFREG);
	archive_entry_set_perm(e, MODE);
	archive_entry_set_size(e, (la_int64_t)f->size);
	r = archive_write_header(a->tar, e);
	archive_entry_free(e);
	a->file = f;
	a->at = 0;
	/* ARCHIVE_WARN: something about the name could not be said in the older header as well. */
	return r < ARCHIVE_WARN ? -EIO : 0;
}

static int go_on_with_file(struct archive_stream *a)
{
	static char piece[PIECE]; /* one at a time */
	ssize_t n = shelf_read(a->shelf, a->file, a->at, piece, sizeof(piece));

	if (n <= 0)
		return n < 0 ? (int)n : -EIO;
	if (archive_write_data(a->tar, piece, (size_t)n) != n)
		return -EIO;
	a->at += (uint64_t)n;
	return 0;
}

/* One step on. */
static int make_more(struct archive_stream *a)
{
	if (a->file && a->at < a->file->size)
		return go_on_with_file(a);
	if (a->next < a->run->count)
		return begin_file(a);
	a->closed = true;
	return archive_write_close(a->tar) == ARCHIVE_OK ? 0 : -EIO;
}

ssize_t archive_stream_read(struct archive_stream *a, void *bytes, size_t room)
{
	size_t n;

	while (a->given == a->len && !a->closed) {
		int r = make_more(a);

		if (r < 0)
			return r;
	}
	n = a->len - a->given < room ? a->len - a->given : room;
	if (n > 0)
		memcpy(bytes, a->made + a->given, n);
	a->given += n;
	/* Readers may be slow, and many: they wait with nothing held for them. */
	if (a->given == a->len) {
		free(take_ptr(a->made));
		a->given = a->len = a->room = 0;
	}
	return (ssize_t)n;
}

struct archive_stream *archive_stream_create(const struct shelf *shelf, const struct stored *run)
{
	struct archive_stream *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->shelf = shelf;
	a->run = run;
	a->tar = archive_write_new();
	if (!a->tar || archive_write_set_format_pax_restricted(a->tar) != ARCHIVE_OK ||
		archive_write_set_format_option(a->tar, "pax", "hdrcharset", "BINARY") <
			ARCHIVE_WARN ||
		archive_write_set_bytes_per_block(a->tar, 0) != ARCHIVE_OK ||
		archive_write_open(a->tar, a, NULL, on_write, NULL) != ARCHIVE_OK) {
		archive_stream_destroy(a);
		return NULL;
	}
	return a;
}

void archive_stream_destroy(struct archive_stream *a)
{
	if (!a)
		return;
	/* Which would first finish the archive: with zeros for what is missing of a file. */
	a->left = true;
	if (a->tar)
		(void)archive_write_free(a->tar);
	free(a->made);
	free(a);
}
