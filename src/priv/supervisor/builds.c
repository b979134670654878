#include "priv/supervisor/builds.h"

#include "priv/launch/build.h"

#include <stddef.h>

struct build *builds_reserve(struct builds *bs, uint64_t run, uint32_t language)
{
	for (unsigned i = 0; i < bs->count; i++) {
		if (bs->of[i].run != 0)
			continue;
		bs->of[i] = (struct build){ .run = run, .language = language };
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

void builds_release(struct builds *bs, struct build *b)
{
	if (!b)
		return;
	if (b->made)
		build_drop(builds_number(bs, b));
	*b = (struct build){ .run = 0 };
}

void builds_clear(struct builds *bs)
{
	for (unsigned i = 0; i < bs->count; i++) {
		if (bs->of[i].ready)
			builds_release(bs, &bs->of[i]);
	}
}
