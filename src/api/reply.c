#include "api/reply.h"

#include "api/denials.h"
#include "api/fields.h"
#include "api/network.h"
#include "api/network_record.h"
#include "api/writer.h"
#include "base/clock.h"
#include "base/own.h"
#include "wire/layer.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define MIB 1048576.0

const char *api_signal_name(int number, char *text, size_t room)
{
	const char *abbrev = number > 0 ? sigabbrev_np(number) : NULL;

	text[0] = '\0';
	if (abbrev)
		(void)snprintf(text, room, "SIG%s", abbrev);
	else if (number == SIGRTMIN)
		(void)snprintf(text, room, "SIGRTMIN");
	else if (number > SIGRTMIN && number <= SIGRTMAX)
		(void)snprintf(text, room, "SIGRTMIN+%d", number - SIGRTMIN);
	else if (number > 0)
		(void)snprintf(text, room, "SIG%d", number);
	return text;
}

static void put_stream(struct writer *w, const char *key, const struct output_view *v)
{
	writer_text_begin(w, key);
	writer_text(w, v->head, v->head_len);
	writer_text(w, v->tail, v->tail_len);
	writer_text_end(w);
}

/* The six fields of the original contract, in its order. */
static void put_contract(struct writer *w, const struct api_reply *r, const struct output_view *out,
	const struct output_view *err)
{
	const struct msg_result *res = r->result;
	enum run_cause cause = (enum run_cause)res->cause;

	writer_string(w, "status", run_status_word(run_status_of(cause, res->wait_status)));
	put_stream(w, "stdout", out);
	put_stream(w, "stderr", err);
	writer_i64(w, "exit_code", run_exit_code(cause, res->wait_status));
	writer_fixed(w, "execution_time_ms", (double)res->wall_us / 1e3, 2);
	writer_fixed(w, "memory_used_mb", (double)res->memory_peak_bytes / MIB, 3);
}

static void put_ms(struct writer *w, const char *key, uint64_t us)
{
	writer_thousandths(w, key, us);
}

static void put_usage(struct writer *w, const struct api_reply *r)
{
	const struct msg_result *res = r->result;

	writer_object(w, "usage");
	put_ms(w, "cpu_ms", res->cpu_us);
	put_ms(w, "user_ms", res->user_us);
	put_ms(w, "system_ms", res->system_us);
	put_ms(w, "throttled_ms", res->throttled_us);
	writer_u64(w, "memory_peak_bytes", res->memory_peak_bytes);
	writer_string(w, "memory_counter", memory_counter_word(res->memory_counter));
	if (res->pids_peak > 0)
		writer_u64(w, "pids_peak", res->pids_peak);
	else
		writer_null(w, "pids_peak"); /* the kernel does not say */
	writer_u64(w, "pids_refused", res->pids_refused);
	writer_u64(w, "oom_kills", res->oom_kills);
	writer_u64(w, "minor_faults", res->minor_faults);
	writer_u64(w, "major_faults", res->major_faults);
	put_ms(w, "setup_ms", res->setup_us);
	put_ms(w, "teardown_ms", res->teardown_us);
	put_ms(w, "collect_ms", r->collect_us);
	writer_close(w);
}

static void put_rules(
	struct writer *w, const char *key, const struct network_rule *rules, uint32_t count)
{
	char text[NETWORK_RULE_TEXT_MAX + 1];

	writer_array(w, key);
	for (uint32_t i = 0; i < count; i++)
		writer_string(w, NULL, network_rule_format(&rules[i], text));
	writer_close(w);
}

static void put_network_limits(struct writer *w, const struct network_policy *p)
{
	if (!p) {
		writer_null(w, api_fields[API_NETWORK_POLICY].name);
		return;
	}
	writer_object(w, api_fields[API_NETWORK_POLICY].name);
	put_rules(w, "allow", p->allow, p->allow_count);
	put_rules(w, "deny", p->deny, p->deny_count);
	writer_u64(w, "max_connections", p->max_connections);
	writer_u64(w, "max_bytes", p->max_bytes);
	writer_u64(w, "max_rate", p->max_rate);
	writer_close(w);
}

static void put_limits(struct writer *w, const struct api_reply *r)
{
	writer_object(w, "limits");
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *f = &api_fields[i];

		if (!api_field_numeric(f))
			continue;
		if (f->meaning == API_CPU_TIME && r->limits->cpu_time_us == 0)
			writer_null(w, f->name);
		else
			writer_number(w, f->name, api_field_get(f, r->limits));
	}
	writer_bool(w, api_fields[API_NETWORK].name, r->networked);
	put_network_limits(w, r->networked ? r->policy : NULL);
	writer_u64(w, api_fields[API_OUTPUT_BYTES].name, r->output_bytes);
	writer_close(w);
}

/* How the bytes of a stream became the string beside it. `head_bytes` says where the
 * gap is when something was dropped. */
static void put_stream_facts(struct writer *w, const char *key, const struct output_view *v)
{
	writer_object(w, key);
	writer_u64(w, "bytes", v->total);
	writer_u64(w, "kept", v->head_len + v->tail_len);
	writer_u64(w, "dropped", v->dropped);
	writer_u64(w, "head_bytes", v->head_len);
	writer_string(w, "encoding", v->utf8 ? "utf-8" : "binary");
	if (!v->utf8)
		writer_base64(w, "base64", v->head, v->head_len, v->tail, v->tail_len);
	writer_close(w);
}

static void put_isolation(struct writer *w, const struct msg_hello *h)
{
	writer_object(w, "isolation");
	writer_array(w, "layers");
	for (unsigned i = 0; i < LAYER_MAX; i++) {
		if (h->layers & LAYER_BIT(i))
			writer_string(w, NULL, layer_word(i));
	}
	writer_close(w);
	writer_array(w, "degraded");
	for (unsigned i = 0; i < LAYER_MAX; i++) {
		if (!(h->layers & LAYER_BIT(i)))
			writer_string(w, NULL, layer_word(i));
	}
	writer_close(w);
	writer_format(w, "cgroup", "v%u", h->cgroup_version);
	writer_close(w);
}

static void warn_dropped(struct writer *w, const char *name, const struct output_view *v)
{
	if (v->dropped > 0)
		writer_format(w, NULL,
			"%s: %llu bytes were dropped after the first %zu; the last %zu follow them",
			name, (unsigned long long)v->dropped, v->head_len, v->tail_len);
}

static void warn_files(struct writer *w, const struct api_reply *r)
{
	if (r->files_lost || (r->files && !r->files->complete))
		writer_string(w, NULL,
			"files: collecting them failed; what came before that is in files and "
			"skipped, and there may be more");
	else if (r->files && r->files->more > 0)
		writer_format(w, NULL,
			"files: %llu more were left out that skipped does not name: its names "
			"would take over a megabyte",
			(unsigned long long)r->files->more);
}

/* What the program ran into, beside its verdict and never in place of it. */
static void put_warnings(struct writer *w, const struct api_reply *r, const struct output_view *out,
	const struct output_view *err)
{
	writer_array(w, "warnings");
	for (unsigned i = 0; r->warnings && i < r->warnings->count; i++)
		writer_string(w, NULL, r->warnings->text[i]);
	if (r->compile)
		api_compile_warn(w, r->compile);
	warn_dropped(w, "stdout", out);
	warn_dropped(w, "stderr", err);
	warn_files(w, r);
	if (r->report && r->report->bad)
		writer_format(w, NULL,
			"what the program's interpreter told was not read to its end: %s; the "
			"program "
			"itself has written there",
			r->report->bad);
	if (r->networked && (r->result->gate_lost || !r->network))
		writer_string(w, NULL,
			"network: the gate that carried its packets ended before it did; from then "
			"on "
			"nothing could be reached, and what network lists may not be all");
	if (r->result->pids_refused > 0)
		writer_format(w, NULL, "pids_limit (%u) refused %llu new processes or threads",
			r->limits->pids, (unsigned long long)r->result->pids_refused);
	writer_close(w);
}

static void put_denials(struct writer *w, const struct api_reply *r, const struct output_view *out,
	const struct output_view *err)
{
	const struct denials_of of = { r->result, r->limits, &r->hello->settings, out, err,
		r->networked, r->network };
	struct denials d;

	denials_find(&of, &d);
	writer_array(w, "denials");
	for (unsigned i = 0; i < d.count; i++) {
		writer_object(w, NULL);
		writer_string(w, "layer", d.list[i].layer);
		writer_string(w, "what", d.list[i].what);
		writer_u64(w, "count", d.list[i].count);
		writer_bool(w, "exact", d.list[i].exact);
		writer_string(w, "evidence", d.list[i].said ? "stderr" : "counted");
		writer_close(w);
	}
	writer_close(w);
	if (d.hint[0])
		writer_string(w, "hint", d.hint);
	else
		writer_null(w, "hint");
}

static void put_name(struct writer *w, const char *key, const char *name)
{
	if (name)
		writer_string(w, key, name);
	else
		writer_null(w, key);
}

char *api_reply_json(const struct api_reply *r, size_t *ret_len)
{
	struct writer w CLEANUP(writer_drop) = { 0 };
	struct output_view out = output_view(r->out), err = output_view(r->err);
	const struct msg_result *res = r->result;
	int number = run_signal((enum run_cause)res->cause, res->wait_status);
	char name[24];

	writer_object(&w, NULL);
	put_contract(&w, r, &out, &err);
	writer_string(&w, "id", r->id);
	put_name(&w, "language", r->language);
	put_name(&w, "image", r->image);
	writer_string(&w, "cause", run_cause_word(res->cause));
	if (number > 0)
		writer_string(&w, "signal", api_signal_name(number, name, sizeof(name)));
	else
		writer_null(&w, "signal");
	if (r->compile)
		api_compile_put(&w, r->compile);
	put_usage(&w, r);
	put_limits(&w, r);
	writer_object(&w, "output");
	put_stream_facts(&w, "stdout", &out);
	put_stream_facts(&w, "stderr", &err);
	writer_close(&w);
	put_isolation(&w, r->hello);
	put_ms(&w, "queue_ms", r->queue_us);
	put_warnings(&w, r, &out, &err);
	put_denials(&w, r, &out, &err);
	api_network_put(&w, r->network);
	api_report_put(r->report, &w);
	timeline_put(r->timeline, r->submitted_ns + res->setup_us * NS_PER_US,
		(const struct output_view[TIMELINE_STREAMS]){ out, err }, &w);
	artifacts_put(&w, r->files, r->id);
	writer_close(&w);
	return writer_take(&w, ret_len);
}
