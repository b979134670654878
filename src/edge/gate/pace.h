/* How fast a run's bytes may pass: max_rate. A second's worth is saved up at most; what has passed
 * beyond that is a debt, and while there is one nothing more should be taken.
 *
 *   runs in    the gate
 *   owns       nothing outside of itself
 *   trusts     nothing: the caller's times do not run backwards
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct pace {
	uint64_t rate;     /* bytes a second */
	uint64_t budget;   /* bytes that may pass now, `rate` at most */
	uint64_t debt;     /* bytes that have passed beyond it */
	uint64_t since_ns; /* until when `budget` was reckoned */
};

/* From now on, with nothing saved. */
void pace_init(struct pace *p, uint64_t rate, uint64_t now_ns) __attribute__((nonnull));

/* Bytes have passed; what is saved up is used first. */
void pace_charge(struct pace *p, size_t bytes) __attribute__((nonnull));

/* What was allowed since the last time. Returns when to look at a debt again, UINT64_MAX: there is
 * none. */
uint64_t pace_earn(struct pace *p, uint64_t now_ns) __attribute__((nonnull));
