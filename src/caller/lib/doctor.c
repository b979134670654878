/* gbx_doctor(): the probe's messages as calls. */
#include "caller/lib/session.h"
#include "caller/lib/spawn.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/own.h"
#include "wire/layer.h"

static void show(const struct msg_layer *m, gbx_layer_fn on_layer, void *context)
{
	struct fault why = m->why;
	struct gbx_layer layer = {
		.size = sizeof(layer),
		.in_force = m->state == LAYER_IN_FORCE,
		.tried = m->state == LAYER_IN_FORCE || m->state == LAYER_MISSING,
	};

	if (why.code != 0)
		(void)fault_launder(&why);
	why.text[sizeof(why.text) - 1] = '\0';
	layer.why = why.text;
	if (m->layer < LAYER_MAX) {
		layer.name = layer_word(m->layer);
		layer.lost = layer_lost(m->layer);
		layer.remedy = layer_remedy_for(m->layer, &why);
	}
	on_layer(context, &layer);
}

static int relay(int channel_fd, gbx_layer_fn on_layer, void *context, struct fault *f)
{
	uint64_t deadline = clock_ns() + SESSION_START_MS * NS_PER_MS;
	struct msg m;
	int r;

	for (;;) {
		r = session_next(channel_fd, deadline, &m, f);
		if (r < 0)
			return r;
		if (m.type == MSG_LAYERS_END)
			return m.as.LAYERS_END.would_start != 0;
		if (m.type == MSG_HEALTH && !m.as.HEALTH.ready && m.as.HEALTH.why.code != 0) {
			*f = m.as.HEALTH.why;
			return fault_launder(f);
		}
		if (m.type == MSG_LAYER)
			show(&m.as.LAYER, on_layer, context);
		msg_done(&m);
	}
}

int gbx_doctor(const struct gbx_options *options, gbx_layer_fn on_layer, void *context,
	struct gbx_error *error)
{
	cleanup_fd int channel_fd = -1;
	struct fault f = { 0 };
	pid_t pid;
	int r;

	r = session_start(options, "@probe", &pid, &channel_fd, &f);
	if (r == 0) {
		r = relay(channel_fd, on_layer, context, &f);
		drop_fd(&channel_fd); /* the probe ends, if it has not yet */
		(void)spawn_wait(pid);
	}
	return r < 0 ? session_tell(error, &f) : r;
}
