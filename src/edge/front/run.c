#include "edge/front/run.h"

#include "api/network_record.h"
#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "edge/front/gather.h"
#include "edge/front/kit.h"
#include "edge/front/link.h"
#include "wire/inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/random.h>

/* Who knows the id may fetch the run's files: it cannot be guessed, and stands in the log. */
static int draw_id(char id[RUN_ID_ROOM])
{
	static const char digits[] = "0123456789abcdef";
	unsigned char bytes[(RUN_ID_ROOM - 1) / 2];

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		id[2 * i] = digits[bytes[i] >> 4];
		id[2 * i + 1] = digits[bytes[i] & 15];
	}
	id[2 * sizeof(bytes)] = '\0';
	return 0;
}

struct run *run_create(struct api_request *request)
{
	struct run *r = calloc(1, sizeof(*r));

	if (!r || draw_id(r->id) < 0) {
		free(r);
		return NULL;
	}
	r->entered_ns = clock_ns();
	r->network_fd = -1;
	r->request = *request;
	*request = (struct api_request){ 0 };
	return r;
}

void run_destroy(struct run *r)
{
	if (!r)
		return;
	kit_destroy(r->kit);
	drop_fd(&r->network_fd);
	gather_destroy(r->gather);
	kit_destroy(r->compiler.kit);
	api_request_free(&r->request);
	free(r);
}

/* What has been handed over, or never will be. */
static void drop_content(struct run *r)
{
	free(take_ptr(r->request.code));
	free(take_ptr(r->request.inputs));
	free(take_ptr(r->request.input));
	r->request.code_len = r->request.inputs_len = r->request.input_len = 0;
}

static int fill(struct run *r, const struct run_way *way, struct fault *f)
{
	const struct kit_content content = {
		.code = r->request.code,
		.code_len = r->request.code_len,
		.inputs = r->request.inputs,
		.inputs_len = r->request.inputs_len,
	};
	int e = kit_seal(r->kit, &content, f);

	if (e == 0 && r->request.input && r->part != RUN_COMPILER)
		e = kit_feed(
			r->kit, way->kits, take_ptr(r->request.input), r->request.input_len, f);
	return e;
}

/* A run without files of its own has a workspace that can be seen to be untouched. */
static uint32_t collect_when(const struct api_request *request)
{
	if (request->artifacts == ARTIFACTS_NONE)
		return COLLECT_NEVER;
	return inputs_have_files(request->inputs, request->inputs_len) ? COLLECT_ALWAYS
								       : COLLECT_IF_TOUCHED;
}

static bool is_compiled(const struct run *r, const struct run_way *way)
{
	return r->request.language < way->offers->count &&
	       way->offers->of[r->request.language].compiled;
}

/* Ahead of its SUBMIT. */
static int send_network(struct run *r, uint64_t number, struct link *link, struct fault *f)
{
	const struct msg_network m = { .run = number };
	int fd, e;

	r->network_fd = api_network_make(r->request.network);
	if (r->network_fd < 0)
		return fault_set(f, r->network_fd, "memory for the network");
	fd = fcntl(r->network_fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return fault_set(f, -errno, "memory for the network");
	e = link_send(link, MSG_NETWORK, &m, &fd); /* takes it */
	return e < 0 ? fault_set(f, e, "send the network to the supervisor") : 0;
}

int run_submit(struct run *r, uint64_t number, const struct run_way *way, struct fault *f)
{
	struct msg_submit m = {
		.run = number,
		.limits = r->request.limits,
		.code_bytes = r->request.code_len,
		.inputs_bytes = r->request.inputs_len,
		.allow_network = r->request.allow_network,
		.language = r->request.language,
		.edition = r->request.edition,
		.collect = collect_when(&r->request),
		.report = api_request_report(&r->request),
	};
	int e;

	r->part = RUN_WHOLE;
	if (is_compiled(r, way))
		r->part = r->compiler.kit ? RUN_BUILT : RUN_COMPILER;
	m.part = r->part;
	if (r->part == RUN_BUILT)
		m.build = r->compiler.result.run;
	if (r->part == RUN_COMPILER) {
		offers_compile_limits(
			way->offers, r->request.language, way->settings, &r->compiler.limits);
		m.limits = r->compiler.limits;
		m.report = 0;
		m.allow_network = 0;
		m.collect = COLLECT_NEVER;
	}
	r->kit = kits_take(way->kits, f);
	if (!r->kit || fill(r, way, f) < 0)
		return f->code;
	kit_keep(r->kit, r->request.output_bytes);
	if (r->request.interleaved && r->part != RUN_COMPILER)
		kit_interleave(r->kit);
	r->submitted_ns = clock_ns();
	if (r->part != RUN_BUILT)
		r->queue_us = (r->submitted_ns - r->entered_ns) / NS_PER_US;
	if (m.allow_network && send_network(r, number, way->link, f) < 0)
		return f->code;
	e = link_send(way->link, MSG_SUBMIT, &m, r->kit->fds); /* takes them all */
	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		r->kit->fds[i] = -1;
	if (e < 0)
		return fault_set(f, e, "send it to the supervisor");
	r->number = number;
	if (r->part != RUN_COMPILER) /* which the program needs again */
		drop_content(r);
	return 0;
}

void run_finish(struct run *r)
{
	stream_drain(&r->kit->out);
	stream_drain(&r->kit->err);
}

void run_abandon(struct run *r)
{
	r->req = NULL;
	kit_destroy(take_ptr(r->kit));
	kit_destroy(take_ptr(r->compiler.kit));
	drop_content(r);
}
