#include "priv/supervisor/builds.h"

#include "priv/launch/build.h"

#include <stddef.h>

struct build *builds_reserve(struct builds *bs, uint64_t run, uint32_t language)
{
	for (unsigned i = 0; i < bs->count; i++) {
		if (bs->of[i].run != 0)
			continue;
		bs->of[i] =
			(struct build){ .run = run, .language = language, .made = bs->of[i].made };
		return &bs->of[i];
	}
	return NULL;
}

struct build *builds_find(struct builds *bs, uint64_t run)
{
	for (unsigned i = 0; i < bs->count; i++) {
		if (bs->of[i].ready && bs->of[i].run == run)
			return &bs->of[i];
	}
	return NULL;
}

unsigned builds_number(const struct builds *bs, const struct build *b)
{
	return (unsigned)(b - bs->of);
}

int builds_drop(struct builds *bs, struct build *b)
{
	int r = b->made ? build_drop(builds_number(bs, b)) : 0;

	if (r == 0)
		b->made = false;
	return r;
}

void builds_release(struct builds *bs, struct build *b)
{
	if (!b)
		return;
	(void)builds_drop(bs, b); /* else builds_tick() does, or whoever gets the place */
	*b = (struct build){ .made = b->made };
}

bool builds_tick(struct builds *bs)
{
	bool left = false;

	for (unsigned i = 0; i < bs->count; i++)
		left |= bs->of[i].run == 0 && builds_drop(bs, &bs->of[i]) < 0;
	return left;
}

void builds_clear(struct builds *bs)
{
	for (unsigned i = 0; i < bs->count; i++) {
		if (bs->of[i].ready)
			builds_release(bs, &bs->of[i]);
	}
}
