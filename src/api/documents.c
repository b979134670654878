#include "api/documents.h"

#include "api/fields.h"
#include "api/reply_fields.h"
#include "api/writer.h"
#include "base/own.h"
#include "wire/inputs.h"
#include "wire/layer.h"
#include "wire/network.h"

#include <string.h>

enum bound {
	BOUND_DEFAULT,
	BOUND_LEAST,
	BOUND_MOST
};

static void put_bounds(
	struct writer *w, const char *key, const struct settings *s, enum bound which)
{
	writer_object(w, key);
	for (unsigned i = 0; i < API_FIELDS; i++) {
		const struct api_field *f = &api_fields[i];
		struct api_range r;

		if (!api_field_numeric(f))
			continue;
		r = api_field_range(f, s);
		if (which == BOUND_DEFAULT && !r.has_def)
			writer_null(w, f->name);
		else
			writer_number(w, f->name,
				which == BOUND_DEFAULT ? r.def
				: which == BOUND_LEAST ? r.least
						       : r.most);
	}
	writer_close(w);
}

char *api_limits_json(const struct settings *s, size_t *ret_len)
{
	struct writer w CLEANUP(writer_drop) = { 0 };

	writer_object(&w, NULL);
	put_bounds(&w, "defaults", s, BOUND_DEFAULT);
	put_bounds(&w, "minima", s, BOUND_LEAST);
	put_bounds(&w, "maxima", s, BOUND_MOST);
	writer_object(&w, "fixed");
	writer_u64(&w, "code_bytes", s->code_bytes);
	writer_u64(&w, "body_bytes", s->body_bytes);
	writer_u64(&w, "input_bytes", s->input_bytes);
	writer_u64(&w, "files", INPUTS_FILES_MAX);
	writer_u64(&w, "args", INPUTS_ARGS_MAX);
	writer_u64(&w, "env", INPUTS_ENV_MAX);
	writer_u64(&w, "words_bytes", INPUTS_WORDS_BYTES_MAX);
	writer_u64(&w, "output_bytes", s->output_bytes);
	writer_u64(&w, "workspace_inodes", s->workspace_inodes);
	writer_u64(&w, "artifact_files", s->artifact_files);
	writer_u64(&w, "artifact_file_bytes", s->artifact_file_bytes);
	writer_u64(&w, "artifact_bytes", s->artifact_bytes);
	writer_u64(&w, "artifact_inline_bytes", s->artifact_inline_bytes);
	writer_u64(&w, "max_runs", s->max_runs);
	writer_u64(&w, "max_queue", s->max_queue);
	writer_bool(&w, "network", s->network == SWITCH_ON);
	writer_u64(&w, "network_rules", NETWORK_RULES_MAX);
	writer_u64(&w, "network_connections", s->network_connections);
	writer_u64(&w, "network_bytes", s->network_bytes);
	writer_u64(&w, "network_rate", s->network_rate);
	writer_close(&w);
	writer_close(&w);
	return writer_take(&w, ret_len);
}

bool api_health_ready(const struct api_health *h)
{
	return !h->draining && h->health && h->health->ready;
}

static const char *why_not(const struct api_health *h)
{
	if (h->draining)
		return "the server is shutting down";
	if (!h->health)
		return "the supervisor has not said yet that it is ready";
	return h->health->why.text[0] ? h->health->why.text : "the supervisor is not ready";
}

static void put_layers(struct writer *w, const char *key, uint64_t layers)
{
	writer_array(w, key);
	for (unsigned i = 0; i < LAYER_MAX; i++) {
		if (layers & LAYER_BIT(i))
			writer_string(w, NULL, layer_word(i));
	}
	writer_close(w);
}

static void put_health_warnings(struct writer *w, const struct msg_hello *h)
{
	writer_array(w, "warnings");
	if (h->core_pattern_piped)
		writer_string(w, NULL,
			"kernel.core_pattern pipes core dumps to a program on the host: a crash in "
			"a "
			"cell would start it; set it to a plain file name");
	for (unsigned i = 0; i < LAYER_MAX; i++) {
		if (!(h->layers & LAYER_BIT(i)))
			writer_format(w, NULL, "%s is not in force: %s; to get it: %s",
				layer_word(i), layer_lost(i), layer_remedy(i));
	}
	writer_close(w);
}

/* Can runs have one, and why so? */
static void put_network(struct writer *w, const struct settings *s)
{
	writer_object(w, "network");
	writer_bool(w, "given", s->network == SWITCH_ON);
	writer_string(w, "why", network_why_text(s->network_why));
	writer_close(w);
}

static void put_pool(struct writer *w, const struct api_health *h)
{
	static const char *const words[WARM_STATE_MAX] = { "off", "starting", "on", "lost" };
	const struct msg_health *m = h->health;
	uint32_t warm = m && m->warm < WARM_STATE_MAX ? m->warm : WARM_OFF;

	writer_u64(w, "ready_cells", m ? m->pool_ready : 0);
	writer_u64(w, "pool_size", h->hello->settings.pool_size);
	writer_string(w, "warm", words[warm]);
	writer_u64(w, "generation", m ? m->generation : 0);
	if (warm == WARM_LOST)
		writer_string(w, "warm_why", m->warm_why.text);
	else
		writer_null(w, "warm_why");
}

static void put_selftest(struct writer *w, const struct msg_selftest *m)
{
	static const struct msg_selftest none = { .known = 0 };
	const struct selftest_record *r;

	if (!m || !m->known || selftest_record_fault(&m->record))
		m = &none;
	r = &m->record;
	writer_object(w, "selftest");
	writer_string(w, "result", !m->known ? "unknown" : r->failed ? "failed" : "contained");
	if (m->known)
		writer_string(w, "at", r->at);
	else
		writer_null(w, "at");
	writer_bool(w, "this_build", m->this_build);
	writer_u64(w, "probes", r->probes);
	writer_u64(w, "failed", r->failed);
	writer_u64(w, "not_possible", r->impossible);
	if (r->failed)
		writer_string(w, "first_failed", r->first_failed);
	else
		writer_null(w, "first_failed");
	writer_close(w);
}

static const char *health_status(const struct api_health *h, bool ready)
{
	if (!ready)
		return "unavailable";
	return h->health->warm == WARM_LOST ? "degraded" : "ok";
}

char *api_health_json(const struct api_health *h, size_t *ret_len)
{
	struct writer w CLEANUP(writer_drop) = { 0 };
	bool ready = api_health_ready(h);

	writer_object(&w, NULL);
	writer_string(&w, "status", health_status(h, ready));
	writer_bool(&w, "ready", ready);
	if (ready)
		writer_null(&w, "why");
	else
		writer_string(&w, "why", why_not(h));
	writer_string(&w, "version", h->version);
	put_layers(&w, "layers", h->hello->layers);
	put_layers(&w, "degraded", LAYER_ALL & ~h->hello->layers);
	writer_format(&w, "cgroup", "v%u", h->hello->cgroup_version);
	put_health_warnings(&w, h->hello);
	writer_u64(&w, "running", h->running);
	writer_u64(&w, "queued", h->queued);
	writer_u64(&w, "slots", h->hello->settings.max_runs);
	put_pool(&w, h);
	put_network(&w, &h->hello->settings);
	put_selftest(&w, h->selftest);
	writer_close(&w);
	return writer_take(&w, ret_len);
}
