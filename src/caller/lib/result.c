#include "caller/lib/result.h"

#include "api/denials.h"
#include "api/network_record.h"
#include "api/reply.h"
#include "base/own.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* The public enums are the wire's, so that a number can cross without a table. */
_Static_assert((int)GBX_SUCCESS == STATUS_SUCCESS && (int)GBX_TIMEOUT == STATUS_TIMEOUT &&
		       (int)GBX_MEMORY_EXCEEDED == STATUS_MEMORY_EXCEEDED &&
		       (int)GBX_ERROR == STATUS_ERROR && STATUS_MAX == 4,
	"enum gbx_status");
_Static_assert((int)GBX_CAUSE_EXIT == CAUSE_EXIT && (int)GBX_CAUSE_SIGNAL == CAUSE_SIGNAL &&
		       (int)GBX_CAUSE_WALL_TIMEOUT == CAUSE_WALL_TIMEOUT &&
		       (int)GBX_CAUSE_CPU_TIMEOUT == CAUSE_CPU_TIMEOUT &&
		       (int)GBX_CAUSE_OOM_KILL == CAUSE_OOM_KILL &&
		       (int)GBX_CAUSE_CANCELLED == CAUSE_CANCELLED &&
		       (int)GBX_CAUSE_COMPILE == CAUSE_COMPILE && CAUSE_MAX == 7,
	"enum gbx_cause");

#define ID_BYTES 16

/* As it was when it had its denials. */
#define RESULT_DENIALS_SIZE offsetof(struct gbx_result, artifacts_complete)

static int make_output(struct output_capture *capture, struct gbx_output *ret)
{
	struct output_view v = output_view(capture);

	ret->bytes = malloc(v.head_len + v.tail_len + 1);
	if (!ret->bytes)
		return -ENOMEM;
	if (v.head_len > 0)
		memcpy(ret->bytes, v.head, v.head_len);
	if (v.tail_len > 0)
		memcpy(ret->bytes + v.head_len, v.tail, v.tail_len);
	ret->head = v.head_len;
	ret->len = v.head_len + v.tail_len;
	ret->bytes[ret->len] = '\0';
	ret->total = v.total;
	ret->dropped = v.dropped;
	return 0;
}

static int make_json(struct pump *p, const struct run_limits *limits, char **ret)
{
	struct api_report report CLEANUP(api_report_free) = { 0 };
	unsigned char bytes[ID_BYTES];
	char id[2 * ID_BYTES + 1];
	struct api_compile compile;
	cleanup_free struct network_record *network = NULL;
	/* A program that did not compile has no streams, and no run of its own. */
	bool interleaved = (p->request->flags & GBX_INTERLEAVED) && p->run > 0;
	size_t len;

	if (p->compiler)
		compile = (struct api_compile){ &p->compiler->result, &p->compiler->limits,
			&p->compiler->captures[PUMP_OUT], &p->compiler->captures[PUMP_ERR] };
	if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes))
		return -EIO;
	for (size_t i = 0; i < ID_BYTES; i++)
		(void)snprintf(id + 2 * i, 3, "%02x", bytes[i]);
	if (p->network_fd >= 0)
		network = api_network_read(p->network_fd);
	if (p->report_fd >= 0)
		api_report_read(p->report_fd, &report);
	*ret = api_reply_json(
		&(struct api_reply){
			.id = id,
			.hello = &p->session->hello,
			.result = &p->result,
			.limits = limits,
			.output_bytes = pump_output_bytes(p->session, p->request),
			.language = p->language,
			.image = p->image,
			.compile = p->compiler ? &compile : NULL,
			.out = &p->captures[PUMP_OUT],
			.err = &p->captures[PUMP_ERR],
			.files = p->files ? incoming_list(p->files) : NULL,
			.collect_us = p->files ? incoming_us(p->files) : 0,
			.files_lost = p->result.kept && !p->files,
			.timeline = interleaved ? &p->timeline : NULL,
			.submitted_ns = p->submitted_ns,
			.report = &report,
			.networked = p->network_fd >= 0,
			.policy = p->policy,
			.network = network,
		},
		&len);
	return *ret ? 0 : -ENOMEM;
}

static int make_denials(struct pump *p, const struct run_limits *limits, struct gbx_result *ret)
{
	struct output_view out, err;
	struct denials_of of = {
		.result = &p->result, .limits = limits, .settings = &p->session->hello.settings
	};
	struct denials d;
	cleanup_free struct network_record *network =
		p->network_fd >= 0 ? api_network_read(p->network_fd) : NULL;

	of.networked = p->network_fd >= 0;
	of.network = network;
	out = output_view(&p->captures[PUMP_OUT]);
	err = output_view(&p->captures[PUMP_ERR]);
	/* Nobody has asked for what is kept only to be looked at here. */
	if (p->request->flags & GBX_NO_CAPTURE)
		out.dropped = err.dropped = 0;
	of.out = &out;
	of.err = &err;
	denials_find(&of, &d);
	if (d.hint[0]) {
		ret->hint = strdup(d.hint);
		if (!ret->hint)
			return -ENOMEM;
	}
	if (d.count == 0)
		return 0;
	ret->denials = calloc(d.count, sizeof(*ret->denials));
	if (!ret->denials)
		return -ENOMEM;
	for (; ret->denial_count < d.count; ret->denial_count++) {
		const struct denial *from = &d.list[ret->denial_count];

		ret->denials[ret->denial_count] = (struct gbx_denial){ from->layer, from->what,
			from->count, from->exact, from->said };
	}
	return 0;
}

static struct gbx_result numbers(const struct msg_result *m)
{
	return (struct gbx_result){
		.status = (int)run_status_of((enum run_cause)m->cause, m->wait_status),
		.cause = (int)m->cause,
		.exit_code = run_exit_code((enum run_cause)m->cause, m->wait_status),
		.signal = run_signal((enum run_cause)m->cause, m->wait_status),
		.wall_us = m->wall_us,
		.setup_us = m->setup_us,
		.teardown_us = m->teardown_us,
		.cpu_us = m->cpu_us,
		.user_us = m->user_us,
		.system_us = m->system_us,
		.throttled_us = m->throttled_us,
		.memory_peak_bytes = m->memory_peak_bytes,
		.memory_counter = memory_counter_word(m->memory_counter),
		.pids_refused = m->pids_refused,
		.oom_kills = m->oom_kills,
	};
}

static void tell_artifacts(const struct pump *p, struct gbx_result *ret)
{
	const struct artifacts_list *l = p->files ? incoming_list(p->files) : NULL;

	if (!p->request->on_artifact)
		return;
	ret->artifacts_complete = l ? l->complete : !p->result.kept;
	ret->artifacts_unnamed = l ? l->more : 0;
	ret->collect_us = l ? incoming_us(p->files) : 0;
}

int result_make(struct pump *p, const struct run_limits *limits, struct gbx_result *ret)
{
	CLEANUP(gbx_result_clear) struct gbx_result all = numbers(&p->result);
	size_t size = ret->size;
	int r = 0;

	all.size = sizeof(all);
	if (!(p->request->flags & GBX_NO_CAPTURE)) {
		r = make_output(&p->captures[PUMP_OUT], &all.out);
		if (r == 0)
			r = make_output(&p->captures[PUMP_ERR], &all.err);
	}
	if (r == 0 && (p->request->flags & GBX_WANT_JSON))
		r = make_json(p, limits, &all.json);
	if (r == 0 && size >= RESULT_DENIALS_SIZE)
		r = make_denials(p, limits, &all);
	tell_artifacts(p, &all);
	if (r < 0)
		return r;
	/* A caller of a later header has a longer struct, whose rest we do not know; one of an
	 * earlier header a shorter one. */
	memset(ret, 0, size);
	memcpy(ret, &all, size < sizeof(all) ? size : sizeof(all));
	ret->size = size;
	all.out.bytes = all.err.bytes = all.json = all.hint = NULL; /* they are the caller's now */
	all.denials = NULL;
	return 0;
}

void gbx_result_clear(struct gbx_result *result)
{
	size_t size = result->size;

	free(result->out.bytes);
	free(result->err.bytes);
	free(result->json);
	if (size >= RESULT_DENIALS_SIZE) {
		free(result->denials);
		free(result->hint);
	}
	memset(result, 0, size < sizeof(*result) ? size : sizeof(*result));
	result->size = size;
}

const char *gbx_status_word(int status)
{
	return run_status_word((uint32_t)status);
}

const char *gbx_cause_word(int cause)
{
	return run_cause_word((uint32_t)cause);
}

const char *gbx_version(void)
{
	return GLOVEBOX_VERSION;
}

const char *gbx_strerror(int code)
{
	const char *text = code <= 0 ? strerrordesc_np(-code) : NULL;

	return text ? text : "unknown error";
}
