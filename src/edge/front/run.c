#include "edge/front/run.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "edge/front/kit.h"
#include "edge/front/link.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

/* Ids are not secrets, but an id that can be guessed is one that can be confused. */
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
	r->request = *request;
	*request = (struct api_request){ 0 };
	return r;
}

void run_destroy(struct run *r)
{
	if (!r)
		return;
	kit_destroy(r->kit);
	api_request_free(&r->request);
	free(r);
}

static void drop_code(struct run *r)
{
	free(take_ptr(r->request.code));
	r->request.code_len = 0;
}

int run_submit(struct run *r, uint64_t number, const struct run_way *way, struct fault *f)
{
	struct msg_submit m = {
		.run = number,
		.limits = r->request.limits,
		.code_bytes = r->request.code_len,
		.allow_network = r->request.allow_network,
	};
	int e;

	r->kit = kits_take(way->kits, f);
	if (!r->kit || kit_seal_code(r->kit, r->request.code, r->request.code_len, f) < 0)
		return f->code;
	r->queue_us = (clock_ns() - r->entered_ns) / NS_PER_US;
	e = link_send(way->link, MSG_SUBMIT, &m, r->kit->fds); /* takes them all */
	for (unsigned i = 0; i < MSG_FDS_MAX; i++)
		r->kit->fds[i] = -1;
	if (e < 0)
		return fault_set(f, e, "send it to the supervisor");
	r->number = number;
	drop_code(r);
	return 0;
}

void run_finish(struct run *r)
{
	stream_finish(&r->kit->out);
	stream_finish(&r->kit->err);
}

void run_abandon(struct run *r)
{
	r->req = NULL;
	kit_destroy(take_ptr(r->kit));
	drop_code(r);
}
