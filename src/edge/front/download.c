#include "edge/front/download.h"

#include "base/own.h"
#include "edge/front/answer.h"
#include "edge/front/archive.h"
#include "edge/front/routes.h"
#include "edge/front/shelf.h"
#include "edge/http/server.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One answer under way: the run is held until it has left. */
struct download {
	struct shelf *shelf;
	const struct stored *run;
	const struct stored_file *file; /* NULL: all of them, as */
	struct archive_stream *archive;
	uint64_t at;
};

static void done(void *ctx)
{
	struct download *d = ctx;

	archive_stream_destroy(d->archive);
	shelf_leave(d->shelf, d->run);
	free(d);
}

static ssize_t read_some(void *ctx, void *bytes, size_t room)
{
	struct download *d = ctx;
	ssize_t n;

	if (d->archive)
		return archive_stream_read(d->archive, bytes, room);
	n = shelf_read(d->shelf, d->file, d->at, bytes, room);
	d->at += n > 0 ? (uint64_t)n : 0;
	return n;
}

static void refuse(struct http_request *req, int status, const char *why)
{
	answer_detail(req, &(struct answer){ .status = status }, "%s", why);
}

/* The run that the request names, held; or it has been answered that there is none. */
static const struct stored *visit(struct shelf *shelf, struct http_request *req)
{
	const struct stored *run = NULL;
	char id[ROUTE_ID_LEN + 1];
	bool gone = false;

	if (!shelf) {
		refuse(req, 404, "this server keeps no files (artifact-store)");
		return NULL;
	}
	memcpy(id, route_id(http_request_path(req)), ROUTE_ID_LEN);
	id[ROUTE_ID_LEN] = '\0';
	run = shelf_visit(shelf, id, &gone);
	if (!run && gone)
		refuse(req, 410, "the files of this execution are no longer kept");
	else if (!run)
		refuse(req, 404,
			"no files are kept of such an execution: it left none, did not ask for "
			"them with "
			"artifacts, or is long over");
	return run;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The bytes that an escaped path stands for, in `ret` of the same room; -1: it stands for none. */
static ssize_t unescape(const char *from, char *ret)
{
	size_t n = 0;

	for (; *from; from++) {
		if (*from == '%') {
			int high = digit_of(from[1]), low = high >= 0 ? digit_of(from[2]) : -1;

			if (low < 0)
				return -1;
			ret[n++] = (char)(high << 4 | low);
			from += 2;
		} else {
			ret[n++] = *from;
		}
	}
	return (ssize_t)n;
}

/* Send what `d` holds, with what keeps a browser from running it as a page of this server. */
static void send_it(
	struct http_request *req, struct download *d, const char *type, const char *name)
{
	char disposition[128 + 3 * 255];
	const struct http_header extra[] = {
		{ "Content-Disposition", disposition },
		{ "X-Content-Type-Options", "nosniff" },
		{ "Content-Security-Policy", "default-src 'none'; sandbox" },
		{ "Cache-Control", "private, no-store" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ NULL, NULL },
	};
	const struct http_source source = { read_some, done, d };
	uint64_t len = d->file ? d->file->size : HTTP_LEN_UNKNOWN;

	/* `name` is escaped as a URL is, which is what this parameter wants (RFC 8187). */
	(void)snprintf(disposition, sizeof(disposition), "attachment; filename*=UTF-8''%s", name);
	answer_stream(req, type, len, &source, extra);
}

static struct download *begin(struct shelf *shelf, const struct stored *run)
{
	struct download *d = calloc(1, sizeof(*d));

	if (d)
		*d = (struct download){ .shelf = shelf, .run = run };
	return d;
}

static bool is_plain(char c)
{
	return strchr("%.-_~", c) || (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') ||
	       (c >= 'a' && c <= 'z');
}

/* The last component of an escaped path, with nothing in it that a header could not hold. */
static void name_of(const char *path, char *ret, size_t room)
{
	const char *last = path;
	size_t n = 0;

	for (const char *at = path; *at; at++) {
		if (*at == '/')
			last = at + 1;
		if (strncasecmp(at, "%2f", 3) == 0)
			last = at + 3;
	}
	for (; *last && n + 4 < room; last++) {
		if (is_plain(*last))
			ret[n++] = *last;
		else
			n += (size_t)snprintf(ret + n, room - n, "%%%02X", (unsigned char)*last);
	}
	ret[n] = '\0';
}

void download_file(struct shelf *shelf, struct http_request *req)
{
	const char *escaped = route_file(http_request_path(req));
	cleanup_free char *path = malloc(strlen(escaped) + 1);
	ssize_t len = path ? unescape(escaped, path) : 0;
	const struct stored_file *file;
	const struct stored *run;
	struct download *d;
	char name[3 * 255 + 1];

	if (len < 0) {
		refuse(req, 400, "the path has a % without two hexadecimal digits behind it");
		return;
	}
	run = visit(shelf, req);
	if (!run)
		return;
	file = path ? stored_find(run, path, (size_t)len) : NULL;
	d = file ? begin(shelf, run) : NULL;
	if (!d) {
		shelf_leave(shelf, run);
		refuse(req, file || !path ? 503 : 404,
			file || !path
				? "out of memory"
				: "no file of this path is kept of that execution; files in its "
				  "answer has those that are");
		return;
	}
	d->file = file;
	name_of(escaped, name, sizeof(name));
	send_it(req, d, artifacts_mime(file->path, file->path_len), name);
}

void download_archive(struct shelf *shelf, struct http_request *req)
{
	const struct stored *run = visit(shelf, req);
	struct download *d;

	if (!run)
		return;
	d = begin(shelf, run);
	if (d)
		d->archive = archive_stream_create(shelf, run);
	if (!d || !d->archive) {
		free(d);
		shelf_leave(shelf, run);
		refuse(req, 503, "out of memory");
		return;
	}
	send_it(req, d, "application/x-tar", "files.tar");
}
