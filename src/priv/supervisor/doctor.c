#include "priv/supervisor/doctor.h"

#include "base/fault.h"
#include "base/log.h"
#include "priv/supervisor/boot.h"
#include "priv/supervisor/engine.h"
#include "wire/channel.h"

#include <string.h>

static void send_layers(const struct engine *e)
{
	for (unsigned i = 0; i < LAYER_MAX; i++) {
		struct msg_layer m = {
			.layer = i,
			.state = !(e->layers.tried & LAYER_BIT(i))   ? LAYER_UNTRIED
				 : e->layers.in_force & LAYER_BIT(i) ? LAYER_IN_FORCE
								     : LAYER_MISSING,
			.why = e->layers.why[i],
		};

		(void)channel_send(BOOT_CHANNEL, MSG_LAYER, &m, NULL);
	}
}

static void send_advice(const struct fault *why)
{
	struct msg_layer m = { .layer = LAYER_MAX, .state = LAYER_UNTRIED, .why = *why };

	(void)channel_send(BOOT_CHANNEL, MSG_LAYER, &m, NULL);
}

/* Whether runs can have one, and why. */
static void say_network(const struct engine *e)
{
	struct fault f = e->no_network;

	if (f.code < 0)
		(void)fault_wrap(&f, "runs get no network");
	else
		(void)fault_say(&f, -1, "runs %s: %s",
			e->settings.network ? "can have a network" : "get no network",
			network_why_text(e->settings.network_why));
	send_advice(&f);
}

int role_probe(void)
{
	static struct engine e;
	struct msg_layers_end end = { 0 };
	struct fault f = { 0 }, missing = { 0 };
	int r;

	log_setup("probe", LOG_LEVEL_ERR);
	engine_clear(&e);
	e.listens = true;
	r = engine_open(&e, true, &f);
	send_layers(&e);
	/* A missing layer has been sent as such. */
	if (r < 0 && layers_explain(&e.layers, e.settings.allow_degraded, &missing) == 0)
		send_advice(&f);
	if (e.layers.core_pattern_piped) {
		(void)fault_say(
			&f, -1, "core_pattern is a pipe: set kernel.core_pattern to a plain name");
		send_advice(&f);
	}
	if (r == 0 && e.records.fd < 0) {
		(void)fault_say(&f, -1, "runs are answered half a millisecond later: %s",
			e.no_records.text);
		send_advice(&f);
	}
	if (r == 0)
		say_network(&e);
	end.would_start = r == 0;
	(void)channel_send(BOOT_CHANNEL, MSG_LAYERS_END, &end, NULL);
	engine_close(&e);
	return r == 0 ? 0 : 1;
}
