/* The numbers of images among a supervisor's languages: each is one image, from when it is offered
 * until it is withdrawn and nothing uses it any more. Then it becomes another one's.
 *
 *   runs in    the supervisor and the probe
 */
#pragma once

#include "wire/language.h"

#include <stdbool.h>
#include <stdint.h>

/* The number of the image that is offered by that name, or l->count. */
uint32_t offered_find(const struct languages *l, const char *name) __attribute__((nonnull));

/* The first number that is nobody's: l->count when that is the next one. */
uint32_t offered_free(const struct languages *l) __attribute__((nonnull));

/* Is it an image that is offered? */
bool offered_is(const struct languages *l, uint32_t number) __attribute__((nonnull));

/* Offer it to nobody any more. It keeps its number until offered_forget(), and its name, in the
 * runtime, until another one has that number. */
void offered_withdraw(struct languages *l, uint32_t number) __attribute__((nonnull));
bool offered_is_withdrawn(const struct languages *l, uint32_t number) __attribute__((nonnull));
void offered_forget(struct languages *l, uint32_t number) __attribute__((nonnull));

/* What a run gets that asks for `number`: of an image that has gone the one that has its name now, if
 * there is one; otherwise the number itself. */
uint32_t offered_successor(const struct languages *l, uint32_t number) __attribute__((nonnull));
