#include "edge/front/kit.h"

#include "api/report.h"
#include "base/check.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* One byte makes the kernel find the first page now. It is overwritten, or cut off again. */
static int make_code(struct kit *k, struct fault *f)
{
	k->fds[0] = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (k->fds[0] < 0)
		return fault_set(f, -errno, "memfd for the code");
	if (pwrite(k->fds[0], "", 1, 0) != 1)
		return fault_set(f, -errno, "memory for the code");
	return 0;
}

/* stdin: at its end from the start. */
static int make_input(struct kit *k, struct fault *f)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, -errno, "pipe for stdin");
	(void)close(ends[1]);
	k->fds[1] = ends[0];
	return 0;
}

/* A pipe that the cell writes: its end, and ours, watched by `s`. */
static int make_output(struct stream *s, const struct kits *ks, int *ret_fd, struct fault *f)
{
	int ends[2], e;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, -errno, "pipe for output");
	*ret_fd = ends[1];
	/* Ours alone: what a program finds as its stdout must block. */
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0) {
		e = -errno;
		(void)close(ends[0]);
		return fault_set(f, e, "pipe for output");
	}
	e = stream_open(s, ks->base, ends[0], ks->output_bytes);
	return e < 0 ? fault_set(f, e, "watch a pipe") : 0;
}

static int make_report(struct kit *k, struct fault *f)
{
	int fd = api_report_make();

	if (fd < 0)
		return fault_set(f, fd, "memory for the report");
	k->report_fd = fd;
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return fault_set(f, -errno, "memory for the report");
	k->fds[4] = fd;
	return 0;
}

static struct kit *make(const struct kits *ks, struct fault *f)
{
	struct kit *k = calloc(1, sizeof(*k));

	if (!k) {
		(void)fault_set(f, -ENOMEM, "memory for a run");
		return NULL;
	}
	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		k->fds[i] = -1;
	k->out.fd = k->err.fd = k->report_fd = -1;
	k->in = FEED_NONE;
	if (make_code(k, f) < 0 || make_input(k, f) < 0 ||
		make_output(&k->out, ks, &k->fds[2], f) < 0 ||
		make_output(&k->err, ks, &k->fds[3], f) < 0 || make_report(k, f) < 0) {
		kit_destroy(k);
		return NULL;
	}
	return k;
}

void kits_init(struct kits *ks, struct event_base *base, unsigned want, uint64_t output_bytes)
{
	*ks = (struct kits){ .base = base, .output_bytes = output_bytes };
	ks->want = want < KITS_MAX ? want : KITS_MAX;
}

void kits_done(struct kits *ks)
{
	while (ks->count > 0)
		kit_destroy(ks->stock[--ks->count]);
}

void kits_fill(struct kits *ks)
{
	struct fault f = { 0 };
	struct kit *k;

	while (ks->count < ks->want && (k = make(ks, &f)))
		ks->stock[ks->count++] = k;
}

struct kit *kits_take(struct kits *ks, struct fault *f)
{
	return ks->count > 0 ? ks->stock[--ks->count] : make(ks, f);
}

int kit_seal(struct kit *k, const struct kit_content *c, struct fault *f)
{
	size_t len = c->code_len + c->inputs_len;
	int e = c->code_len > 0 ? io_write_all(k->fds[0], c->code, c->code_len) : 0;

	if (e == 0 && c->inputs_len > 0)
		e = io_write_all(k->fds[0], c->inputs, c->inputs_len);
	if (e == 0 && len == 0 && ftruncate(k->fds[0], 0) < 0)
		e = -errno;
	if (e < 0)
		return fault_set(f, e, "write %zu bytes of code and inputs", len);
	e = io_seal(k->fds[0]);
	return e < 0 ? fault_set(f, e, "seal the code") : 0;
}

int kit_feed(struct kit *k, struct kits *ks, char *bytes, size_t len, struct fault *f)
{
	drop_fd(&k->fds[1]);
	return feed_open(&k->in, ks->base, bytes, len, &k->fds[1], f);
}

void kit_keep(struct kit *k, uint64_t output_bytes)
{
	CHECK(k->out.kept.total == 0 && k->err.kept.total == 0);
	output_init(&k->out.kept, (size_t)output_bytes);
	output_init(&k->err.kept, (size_t)output_bytes);
}

void kit_interleave(struct kit *k)
{
	k->out.timeline = k->err.timeline = &k->timeline;
	k->out.which = TIMELINE_OUT;
	k->err.which = TIMELINE_ERR;
}

void kit_destroy(struct kit *k)
{
	if (!k)
		return;
	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		drop_fd(&k->fds[i]);
	drop_fd(&k->report_fd);
	feed_close(&k->in);
	stream_close(&k->out);
	stream_close(&k->err);
	timeline_free(&k->timeline);
	free(k);
}
