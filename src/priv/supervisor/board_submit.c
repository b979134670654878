/* A run that is asked for: refused, or given a place. And the build that it makes or takes. */
#include "priv/supervisor/board_internal.h"

#include "base/clock.h"
#include "base/fault.h"
#include "base/log.h"
#include "base/own.h"
#include "priv/supervisor/offered.h"
#include "priv/supervisor/submit.h"

#include <errno.h>
#include <string.h>

static void send_refusal(struct board *b, const struct msg_refused *m)
{
	/* A client that does not read while it asks has broken the order of things: it is
	 * dropped, rather than left to wait for an answer that could not be sent. */
	if (b->client_fd >= 0 && channel_send(b->client_fd, MSG_REFUSED, m, NULL) < 0)
		b->client_broken = true;
}

/* Before it was given a place. The program of a build that is refused was the last that could have
 * named it: it goes. */
static void refuse(struct board *b, const struct msg_submit *s, bool retry, bool missing,
	const struct fault *f)
{
	if (s->part == RUN_BUILT)
		builds_release(&b->pool->builds, builds_find(&b->pool->builds, s->build));
	send_refusal(b, &(struct msg_refused){
				.run = s->run, .retry = retry, .missing = missing, .fault = *f });
}

static struct job *free_slot(struct board *b)
{
	for (unsigned i = 0; i < b->slots; i++) {
		if (b->jobs[i].state == JOB_NONE)
			return &b->jobs[i];
	}
	return NULL;
}

/* What it needs that this supervisor lacks, as the refusal of a run. 0: nothing; an image that was
 * replaced since the client heard of it has become the one in its place. */
static int look_at_language(const struct board *b, struct msg_submit *s, struct fault *f)
{
	struct factories *fs = b->pool->factories;
	struct fault later = { 0 };
	int r;

	if (s->language == 0)
		return 0;
	if (s->edition != fs->languages->editions[s->language])
		return fault_say(
			f, -ESTALE, "the image was removed or replaced before its turn came");
	s->language = offered_successor(fs->languages, s->language);
	r = factories_look(fs, s->language, f);
	/* It is mounted before anybody can remove it; if that fails, the run's order says so. */
	if (r == 0 && fs->languages->of[s->language].offer.is_image)
		(void)factories_get(fs, s->language, FACTORY_PROGRAM, &later);
	return r;
}

/* As submit_violation(). A client that keeps the order of things never asks for a build that there
 * is not: only its own CANCEL takes one away. */
static const char *language_violation(const struct board *b, const struct msg_submit *s)
{
	const struct languages *all = b->pool->factories->languages;
	const struct build *build;

	if (s->language >= all->count)
		return "there is no such language";
	if ((all->of[s->language].offer.compiled == 1) != (s->part != RUN_WHOLE) ||
		(s->part == RUN_BUILT) != (s->build != 0))
		return "a part of a run that the language has not";
	build = s->build ? builds_find(&b->pool->builds, s->build) : NULL;
	if (s->build && (!build || build->language != s->language))
		return "there is no such build";
	return NULL;
}

/* The build that it makes or takes: false when there is no room for one. */
static bool take_build(struct board *b, struct job *j)
{
	struct builds *bs = &b->pool->builds;

	if (j->submit.part == RUN_COMPILER)
		j->build = builds_reserve(bs, j->submit.run, j->submit.language);
	else if (j->submit.part == RUN_BUILT)
		j->build = builds_find(bs, j->submit.build);
	if (j->build)
		j->build->ready = false;
	return j->submit.part == RUN_WHOLE || j->build;
}

int board_network(struct board *b, struct msg *m, const char **ret_rule)
{
	/* One whose SUBMIT could not be sent is of no use any more. */
	drop_fd(&b->network_fd);
	if (!submit_is_network_memory(m->fds[0])) {
		*ret_rule = "what a NETWORK brings is not memory of its size";
		msg_done(m);
		return -EPROTO;
	}
	b->network_fd = take_fd(&m->fds[0]);
	b->network_run = m->as.NETWORK.run;
	return 0;
}

/* What a client that keeps the order of things never sends. NULL: it is none of that. */
static const char *violation(struct board *b, const struct msg *m)
{
	const struct msg_submit *s = &m->as.SUBMIT;
	const char *rule = submit_violation(m);

	if (rule)
		return rule;
	if (board_find(b, s->run) || collects_have(&b->collects, s->run))
		return "the run's id is in use";
	if (s->allow_network && (b->network_fd < 0 || b->network_run != s->run))
		return "a network without its NETWORK";
	return language_violation(b, s);
}

int board_submit(struct board *b, struct msg *m, const char **ret_rule)
{
	struct msg_submit *s = &m->as.SUBMIT;
	const char *rule = violation(b, m);
	cleanup_fd int network_fd = -1;
	struct fault f = { 0 };
	struct job *j;

	if (rule) {
		*ret_rule = rule;
		msg_done(m);
		return -EPROTO;
	}
	if (s->allow_network)
		network_fd = take_fd(&b->network_fd);
	j = free_slot(b);
	if (!j)
		(void)fault_say(&f, -EAGAIN, "all %u places are taken", b->slots);
	if (!j || submit_check_limits(s, b->settings, &f) < 0) {
		refuse(b, s, f.code == -EAGAIN, false, &f);
		msg_done(m);
		return 0;
	}
	if (look_at_language(b, s, &f) < 0) {
		refuse(b, s, board_is_shortage(f.code), factories_lack(f.code), &f);
		msg_done(m);
		return 0;
	}

	*j = (struct job){
		.state = JOB_WAITING,
		.submit = *s,
		.submitted_ns = clock_ns(),
		.network_fd = -1,
	};
	gate_clear(&j->gate);
	if (!take_build(b, j)) {
		(void)fault_say(&f, -EAGAIN, "all %u places for builds are taken", b->slots);
		refuse(b, s, true, false, &f);
		msg_done(m);
		j->state = JOB_NONE;
		return 0;
	}
	memcpy(j->fds, m->fds, sizeof(j->fds));
	j->network_fd = take_fd(&network_fd);
	j->order = s->language > 0 || j->network_fd >= 0 ? ++b->last_order : 0;
	j->deadline_ns = j->submitted_ns + BOARD_BUILD_TIMEOUT_NS;
	board_serve_waiting(b);
	return 0;
}

static bool is_used(const struct board *b, uint32_t language)
{
	for (unsigned i = 0; i < b->slots; i++) {
		if (b->jobs[i].state != JOB_NONE && b->jobs[i].submit.language == language)
			return true;
	}
	return pool_has_other(b->pool, language);
}

bool board_drop_images(struct board *b)
{
	struct factories *fs = b->pool->factories;
	bool dropped = false;
	int r;

	for (uint32_t i = 1; i < fs->languages->count; i++) {
		if (!offered_is_withdrawn(fs->languages, i) || is_used(b, i))
			continue;
		lines_drop(&b->pool->lines, i);
		r = factories_drop(fs, i);
		if (r < 0)
			log_warn("image_kept", "name=%s why=\"%s\"",
				LQ(fs->languages->of[i].runtime.name), strerrordesc_np(-r));
		dropped |= r == 0;
	}
	return dropped;
}

void board_leave_build(struct board *b, struct job *j, bool success)
{
	struct build *build = take_ptr(j->build);

	if (build && j->submit.part == RUN_COMPILER && success && !j->orphan && !j->unwanted)
		build->ready = true;
	else
		builds_release(&b->pool->builds, build);
}
