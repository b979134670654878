#include "priv/supervisor/lines.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/log.h"
#include "wire/language.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

_Static_assert(LANGUAGES_MAX <= 32, "each has a bit");

void lines_open(struct lines *ls, const struct lineage_owner *owner)
{
	*ls = (struct lines){ .owner = *owner };
}

static struct line *find(struct lines *ls, uint32_t language)
{
	for (unsigned i = 0; i < LINES_MAX; i++) {
		if (ls->of[i].language == language)
			return &ls->of[i];
	}
	return NULL;
}

/* ---- Begun, ended ---- */

static const char *image_of(const struct line *l)
{
	return l->lineage.owner.factory->runtime->name;
}

/* Whoever waits for a child of it goes on without. */
static void end(struct lines *ls, struct line *l, const char *why)
{
	const uint64_t generations[] = { l->lineage.current.generation, l->lineage.next.generation,
		l->lineage.retired.generation };

	log_info("line_ended", "image=%s why=\"%s\"", LQ(image_of(l)), why);
	lineage_close(&l->lineage);
	l->language = 0;
	for (unsigned i = 0; i < ARRAY_LEN(generations); i++) {
		if (generations[i] > 0)
			ls->owner.lost(ls->owner.ctx, generations[i]);
	}
}

/* A place for another one, or NULL: each of them was asked for a moment ago. */
static struct line *make_room(struct lines *ls, uint64_t now_ns)
{
	struct line *oldest = &ls->of[0], *empty = find(ls, 0);

	if (empty)
		return empty;
	for (unsigned i = 1; i < LINES_MAX; i++) {
		if (ls->of[i].asked_ns < oldest->asked_ns)
			oldest = &ls->of[i];
	}
	if (now_ns - oldest->asked_ns < LINES_KEPT_NS)
		return NULL;
	end(ls, oldest, "another image is asked for");
	return oldest;
}

void lines_want(struct lines *ls, uint32_t language, const struct cell_factory *factory,
	const char *preload, uint64_t now_ns)
{
	struct line *l = find(ls, language);
	struct lineage_owner owner = ls->owner;

	CHECK(language > 0 && language < LANGUAGES_MAX);
	if (!l) {
		l = make_room(ls, now_ns);
		if (!l)
			return;
		*l = (struct line){ .language = language };
		(void)snprintf(l->preload, sizeof(l->preload), "%s", preload);
		owner.factory = factory;
		lineage_open(&l->lineage, &owner, true);
		l->lineage.watch = ls->watch;
		l->lineage.watch.token += LINEAGE_ZYGOTES * (uint64_t)(l - ls->of);
		log_info("line_begun", "image=%s preload=%s", LQ(image_of(l)), LQ(l->preload));
	}
	l->asked_ns = now_ns;
}

void lines_drop(struct lines *ls, uint32_t language)
{
	struct line *l = find(ls, language);

	CHECK(language > 0);
	if (l)
		end(ls, l, "its image was removed or replaced");
}

void lines_close(struct lines *ls)
{
	for (unsigned i = 0; i < LINES_MAX; i++) {
		if (ls->of[i].language > 0)
			end(ls, &ls->of[i], "the server ends");
	}
}

/* ---- Asked, heard ---- */

int lines_fork(struct lines *ls, uint32_t language, struct cell *c, int channel_fd, bool rehearse,
	uint64_t now_ns)
{
	struct line *l = find(ls, language);

	if (!l || !lineage_is_warm(&l->lineage))
		return -ENOENT;
	if (now_ns < l->shunned_ns)
		return -EAGAIN;
	return lineage_fork(&l->lineage, c, channel_fd, rehearse);
}

void lines_shun(struct lines *ls, uint32_t language, uint64_t now_ns)
{
	struct line *l = find(ls, language);

	if (l)
		l->shunned_ns = now_ns + LINES_SHUNNED_NS;
}

void lines_look(struct lines *ls, unsigned which)
{
	struct line *l = &ls->of[which / LINEAGE_ZYGOTES];

	CHECK(which < LINES_MAX * LINEAGE_ZYGOTES);
	if (l->language > 0)
		lineage_look(&l->lineage, which % LINEAGE_ZYGOTES);
}

/* ---- The clock ---- */

/* What the next zygote is to preload. One that was lost to a module of it, and to nothing else,
 * is followed by some without: a module that cannot be imported is worth less than all others
 * are. */
static const char *preload_now(struct line *l, uint64_t now_ns)
{
	if (l->lineage.spoiled) {
		l->lineage.spoiled = false;
		l->spared_ns = now_ns + LINES_SPARED_NS;
		log_warn("line_preload", "image=%s why=%s note=\"%s\" retry_s=%lu", LQ(image_of(l)),
			LQ(l->lineage.lost.text), "new ones are without its preload for a while",
			(unsigned long)(LINES_SPARED_NS / NS_PER_S));
	}
	return now_ns < l->spared_ns ? "" : l->preload;
}

void lines_tick(struct lines *ls, uint64_t now_ns)
{
	uint64_t idle_ns = ls->owner.settings->cell_max_age_us * NS_PER_US;

	for (unsigned i = 0; i < LINES_MAX; i++) {
		struct line *l = &ls->of[i];

		if (l->language == 0)
			continue;
		if (now_ns - l->asked_ns >= idle_ns) {
			end(ls, l, "nobody has asked for it");
			continue;
		}
		l->lineage.owner.preload = preload_now(l, now_ns);
		lineage_tick(&l->lineage, now_ns);
	}
}

uint64_t lines_due_ns(const struct lines *ls)
{
	uint64_t idle_ns = ls->owner.settings->cell_max_age_us * NS_PER_US, next = UINT64_MAX;

	for (unsigned i = 0; i < LINES_MAX; i++) {
		const struct line *l = &ls->of[i];

		if (l->language == 0)
			continue;
		next = clock_earlier(next, lineage_due_ns(&l->lineage));
		next = clock_earlier(next, l->asked_ns + idle_ns);
	}
	return next;
}

bool lines_owe(const struct lines *ls)
{
	unsigned n = 0;

	for (unsigned i = 0; i < LINES_MAX; i++)
		n += ls->of[i].language > 0 && ls->of[i].lineage.current.unanswered > 0;
	return n > 0;
}

bool lines_know(const struct lines *ls, pid_t pid)
{
	for (unsigned i = 0; i < LINES_MAX; i++) {
		if (ls->of[i].language > 0 && lineage_knows(&ls->of[i].lineage, pid))
			return true;
	}
	return false;
}

uint32_t lines_warm(const struct lines *ls)
{
	uint32_t bits = 0;

	for (unsigned i = 0; i < LINES_MAX; i++) {
		if (ls->of[i].language > 0 && lineage_is_warm(&ls->of[i].lineage))
			bits |= UINT32_C(1) << ls->of[i].language;
	}
	return bits;
}
