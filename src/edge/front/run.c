#include "edge/front/run.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/io.h"
#include "base/own.h"
#include "edge/front/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Ids are not secrets, but an id that can be guessed is one that can be confused. */
static int draw_id(char id[RUN_ID_ROOM])
{
	unsigned char bytes[(RUN_ID_ROOM - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++)
		(void)snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	return 0;
}

struct run *run_create(struct api_request *request)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r || draw_id(r->id) < 0) {
		free(r);
		return NULL;
	}
	r->out.fd = r->err.fd = -1;
	r->entered_ns = clock_ns();
	r->request = *request;
	*request = (struct api_request){ 0 };
	return r;
}

void run_destroy(struct run *r)
{
	if (!r)
		return;
	stream_close(&r->out);
	stream_close(&r->err);
	api_request_free(&r->request);
	free(r);
}

static void drop_code(struct run *r)
{
	free(take_ptr(r->request.code));
	r->request.code_len = 0;
}

/* The code as a file that nobody can change or shorten any more, not even we. */
static int seal_code(const struct run *r, int *ret_fd, struct fault *f)
{
	cleanup_fd int fd = memfd_create("code", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	int e;

	if (fd < 0)
		return fault_set(f, -errno, "memfd for the code");
	e = io_write_all(fd, r->request.code, r->request.code_len);
	if (e < 0)
		return fault_set(f, e, "write %zu bytes of code", r->request.code_len);
	if (fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return fault_set(f, -errno, "seal the code");
	*ret_fd = take_fd(&fd);
	return 0;
}

/* A pipe that the cell writes: its end, and ours, watched by `s`. */
static int open_output(struct stream *s, const struct run_way *way, int *ret_fd, struct fault *f)
{
	int ends[2], e;

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, -errno, "pipe for output");
	/* Ours alone: what a program finds as its stdout must block. */
	if (fcntl(ends[0], F_SETFL, O_NONBLOCK) < 0)
		e = -errno;
	else
		e = 0;
	*ret_fd = ends[1];
	if (e < 0) {
		(void)close(ends[0]);
		return fault_set(f, e, "pipe for output");
	}
	e = stream_open(s, way->base, ends[0], way->output_bytes);
	return e < 0 ? fault_set(f, e, "watch a pipe") : 0;
}

/* stdin: at its end from the start. */
static int open_input(int *ret_fd, struct fault *f)
{
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) < 0)
		return fault_set(f, -errno, "pipe for stdin");
	(void)close(ends[1]);
	*ret_fd = ends[0];
	return 0;
}

struct heritage {
	int fds[MSG_FDS_MAX]; /* code, stdin, stdout, stderr: the order of SUBMIT */
};

static void drop_heritage(struct heritage *h)
{
	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		drop_fd(&h->fds[i]);
}

int run_submit(struct run *r, uint64_t number, const struct run_way *way, struct fault *f)
{
	CLEANUP(drop_heritage) struct heritage h = { .fds = { -1, -1, -1, -1 } };
	struct msg_submit m = {
		.run = number,
		.limits = r->request.limits,
		.code_bytes = r->request.code_len,
		.allow_network = r->request.allow_network,
	};
	int e;

	if (seal_code(r, &h.fds[0], f) < 0 || open_input(&h.fds[1], f) < 0 ||
		open_output(&r->out, way, &h.fds[2], f) < 0 ||
		open_output(&r->err, way, &h.fds[3], f) < 0)
		return f->code;
	r->queue_us = (clock_ns() - r->entered_ns) / NS_PER_US;
	e = link_send(way->link, MSG_SUBMIT, &m, h.fds); /* takes them all */
	if (e < 0)
		return fault_set(f, e, "send it to the supervisor");
	memset(h.fds, 0xff, sizeof(h.fds));
	r->number = number;
	drop_code(r);
	return 0;
}

void run_finish(struct run *r)
{
	stream_finish(&r->out);
	stream_finish(&r->err);
}

void run_abandon(struct run *r)
{
	r->req = NULL;
	stream_close(&r->out);
	stream_close(&r->err);
	drop_code(r);
}
