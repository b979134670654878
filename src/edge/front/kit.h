/* What a run needs of the kernel before it can be handed over: memory for its code, a stdin
 * at its end, and two pipes that are watched. Making that is most of what the front does
 * between a request and its SUBMIT, and none of it depends on the request: so a few are made
 * ahead, while nobody waits for them.
 *
 *   runs in    the front
 *   owns       the stock; a kit that was taken is the caller's
 *   threads    none
 *   blocks     never
 */
#pragma once

#include "edge/front/stream.h"
#include "wire/msg.h"

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct fault;

/* Enough for a burst of as many runs as a large machine has at a time. A kit holds six
 * descriptors and a page. */
#define KITS_MAX 8

struct kit {
	int fds[MSG_FDS_MAX]; /* code, stdin, stdout, stderr: the order of SUBMIT; -1: given away */
	struct stream out, err; /* watched from the beginning */
};

struct kits {
	struct event_base *base;
	uint64_t output_bytes;
	unsigned want, count; /* kept in stock, and there now */
	struct kit *stock[KITS_MAX];
};

/* A stock of `want` kits, at most KITS_MAX, of streams that keep `output_bytes` each. It is
 * empty until kits_fill(). */
void kits_init(struct kits *ks, struct event_base *base, unsigned want, uint64_t output_bytes)
	__attribute__((nonnull));
void kits_done(struct kits *ks) __attribute__((nonnull));

/* From the stock, or made now. NULL with the reason in `f`. */
struct kit *kits_take(struct kits *ks, struct fault *f) __attribute__((nonnull));
/* Fill the stock up. What cannot be made now is not told: who needs a kit that is not there
 * tries again, and says it. */
void kits_fill(struct kits *ks) __attribute__((nonnull));

/* The code goes into the memory that nobody can change or shorten any more, not even we. */
int kit_seal_code(struct kit *k, const void *code, size_t len, struct fault *f)
	__attribute__((nonnull(1, 4)));

/* Close what was not given away. NULL is accepted. */
void kit_destroy(struct kit *k);
