#include "caller/lib/artifacts.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct incoming {
	int fd;
	const struct gbx_request *request;
	struct artifacts_list list;
	struct files_reader reader;
	struct gbx_artifact current; /* between BEGIN and END */
	char path[FILES_PATH_MAX + 1];
	uint64_t begun_ns, took_us;
	char bytes[FILES_CHUNK];
};

/* ---- First the list, then the caller's function ---- */

static int tell(
	struct incoming *in, int event, const struct gbx_artifact *a, const void *bytes, size_t len)
{
	return in->request->on_artifact(in->request->context, event, a, bytes, len) == 0
		       ? 0
		       : -ECANCELED;
}

static int on_file(void *ctx, const char *path, size_t len, uint64_t size)
{
	struct incoming *in = ctx;
	int r = artifacts_calls.file(&in->list, path, len, size);

	memcpy(in->path, path, len + 1);
	in->current = (struct gbx_artifact){ in->path, len, size, NULL };
	return r < 0 ? r : tell(in, GBX_ARTIFACT_BEGIN, &in->current, NULL, 0);
}

static int on_bytes(void *ctx, const void *bytes, size_t len)
{
	struct incoming *in = ctx;
	int r = artifacts_calls.bytes(&in->list, bytes, len);

	return r < 0 ? r : tell(in, GBX_ARTIFACT_BYTES, &in->current, bytes, len);
}

static int on_close(void *ctx, enum files_reason why)
{
	struct incoming *in = ctx;
	struct gbx_artifact a = in->current;
	int r = artifacts_calls.close(&in->list, why);

	in->current.path = NULL;
	if (why != FILES_WHOLE)
		a.reason = files_reason_word(why);
	return r < 0 ? r : tell(in, GBX_ARTIFACT_END, &a, NULL, 0);
}

static int on_skip(void *ctx, const char *path, size_t len, uint64_t size, enum files_reason why)
{
	struct incoming *in = ctx;
	const struct gbx_artifact a = { path, len, size, files_reason_word(why) };
	int r = artifacts_calls.skip(&in->list, path, len, size, why);

	return r < 0 ? r : tell(in, GBX_ARTIFACT_SKIPPED, &a, NULL, 0);
}

static int on_end(void *ctx, uint64_t more)
{
	struct incoming *in = ctx;

	return artifacts_calls.end(&in->list, more);
}

static const struct files_calls calls = { on_file, on_bytes, on_close, on_skip, on_end };

/* ---- The pipe ---- */

/* A file that was begun gets its end in any case. */
static void finish(struct incoming *in)
{
	drop_fd(&in->fd);
	artifacts_end(&in->list);
	in->took_us = (clock_ns() - in->begun_ns) / NS_PER_US;
	if (in->current.path) {
		in->current.reason = files_reason_word(FILES_FAILED);
		(void)tell(in, GBX_ARTIFACT_END, &in->current, NULL, 0);
	}
}

void incoming_read(struct incoming *in)
{
	ssize_t n = read(in->fd, in->bytes, sizeof(in->bytes));
	const char *rule;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0 || files_read(&in->reader, in->bytes, (size_t)n, &rule) < 0)
		finish(in);
}

struct incoming *incoming_create(
	struct gbx_session *s, const struct gbx_request *q, uint64_t run, struct fault *f)
{
	const struct settings *set = &s->hello.settings;
	const struct artifacts_plan plan = {
		.mode = ARTIFACTS_LIST,
		.caps = { .count = set->artifact_files,
			.file_bytes = set->artifact_file_bytes,
			.total_bytes = set->artifact_bytes },
	};
	const struct msg_collect ask = { .run = run };
	struct incoming *in = calloc(1, sizeof(*in));
	int ends[2] = { -1, -1 }, r;

	if (!in || pipe2(ends, O_CLOEXEC) < 0) {
		(void)fault_set(f, in ? -errno : -ENOMEM, "a pipe for files");
		free(in);
		return NULL;
	}
	in->fd = ends[0];
	in->request = q;
	in->begun_ns = clock_ns();
	artifacts_init(&in->list, &plan);
	files_reader_init(&in->reader, &calls, in);
	r = fcntl(in->fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
	if (r == 0)
		r = channel_send(s->channel_fd, MSG_COLLECT, &ask, &ends[1]);
	(void)close(ends[1]);
	if (r < 0) {
		(void)fault_set(f, r, "ask for files");
		incoming_destroy(in);
		return NULL;
	}
	return in;
}

void incoming_destroy(struct incoming *in)
{
	if (!in)
		return;
	drop_fd(&in->fd);
	artifacts_free(&in->list);
	free(in);
}

int incoming_fd(const struct incoming *in)
{
	return in->fd;
}

const struct artifacts_list *incoming_list(const struct incoming *in)
{
	return &in->list;
}

uint64_t incoming_us(const struct incoming *in)
{
	return in->took_us;
}
