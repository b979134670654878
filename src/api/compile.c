#include "api/compile.h"

#include "api/fields.h"
#include "wire/verdict.h"

#define MIB 1048576.0

struct msg_result api_compile_failure(const struct msg_result *compiler)
{
	enum run_cause cause = (enum run_cause)compiler->cause;

	if (cause == CAUSE_CANCELLED)
		return *compiler;
	return (struct msg_result){
		.run = compiler->run,
		.cause = CAUSE_COMPILE,
		.wait_status = run_exit_code(cause, compiler->wait_status) << 8,
		.memory_counter = compiler->memory_counter,
	};
}

static void put_stream(struct writer *w, const char *key, struct output_capture *o)
{
	struct output_view v = output_view(o);

	writer_text_begin(w, key);
	writer_text(w, v.head, v.head_len);
	writer_text(w, v.tail, v.tail_len);
	writer_text_end(w);
}

void api_compile_put_limits(struct writer *w, const char *key, const struct run_limits *l)
{
	writer_object(w, key);
	for (unsigned i = 0; i < API_FIELDS; i++) {
		if (api_field_numeric(&api_fields[i]) && api_fields[i].meaning != API_CPU_TIME)
			writer_number(w, api_fields[i].name, api_field_get(&api_fields[i], l));
	}
	writer_close(w);
}

void api_compile_put(struct writer *w, const struct api_compile *c)
{
	const struct msg_result *r = c->result;
	enum run_cause cause = (enum run_cause)r->cause;

	writer_object(w, "compile");
	writer_string(w, "status", run_status_word(run_status_of(cause, r->wait_status)));
	writer_string(w, "cause", run_cause_word(r->cause));
	writer_i64(w, "exit_code", run_exit_code(cause, r->wait_status));
	put_stream(w, "stdout", c->out);
	put_stream(w, "stderr", c->err);
	writer_fixed(w, "execution_time_ms", (double)r->wall_us / 1e3, 2);
	writer_fixed(w, "memory_used_mb", (double)r->memory_peak_bytes / MIB, 3);
	api_compile_put_limits(w, "limits", c->limits);
	writer_close(w);
}

static void warn_dropped(struct writer *w, const char *name, struct output_capture *o)
{
	struct output_view v = output_view(o);

	if (v.dropped > 0)
		writer_format(w, NULL,
			"compile.%s: %llu bytes were dropped after the first %zu; the last %zu "
			"follow them",
			name, (unsigned long long)v.dropped, v.head_len, v.tail_len);
}

void api_compile_warn(struct writer *w, const struct api_compile *c)
{
	warn_dropped(w, "stdout", c->out);
	warn_dropped(w, "stderr", c->err);
}
