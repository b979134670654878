#include "priv/supervisor/offered.h"

#include <string.h>

bool offered_is(const struct languages *l, uint32_t number)
{
	return l->of[number].offer.is_image && l->of[number].offer.name[0];
}

void offered_withdraw(struct languages *l, uint32_t number)
{
	l->of[number].offer = (struct offer){ .is_image = 1 };
}

bool offered_is_withdrawn(const struct languages *l, uint32_t number)
{
	return l->of[number].offer.is_image && !offered_is(l, number) && !(l->unused >> number & 1);
}

void offered_forget(struct languages *l, uint32_t number)
{
	l->unused |= UINT32_C(1) << number;
}

uint32_t offered_find(const struct languages *l, const char *name)
{
	uint32_t i = 0;

	while (i < l->count && !(offered_is(l, i) && strcmp(l->of[i].offer.name, name) == 0))
		i++;
	return i;
}

uint32_t offered_free(const struct languages *l)
{
	uint32_t i = 0;

	while (i < l->count && !(l->unused >> i & 1))
		i++;
	return i;
}

uint32_t offered_successor(const struct languages *l, uint32_t number)
{
	uint32_t now = number;

	if (l->of[number].offer.is_image && !offered_is(l, number))
		now = offered_find(l, l->of[number].runtime.name);
	return now < l->count ? now : number;
}
