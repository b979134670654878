/* What a run needs of the kernel before it can be handed over: memory for its code, a stdin at
 * its end (a run that has one gets another pipe), two pipes that are watched, and memory for what
 * its interpreter tells. Making that is most of what the front does
 * between a request and its SUBMIT, and none of it depends on the request: so a few are made
 * ahead, while nobody waits for them.
 *
 *   runs in    the front
 *   owns       the stock; a kit that was taken is the caller's
 *   threads    none
 *   blocks     never
 */
#pragma once

#include "edge/front/feed.h"
#include "edge/front/stream.h"
#include "wire/msg.h"

#include <stddef.h>
#include <stdint.h>

struct event_base;
struct fault;

/* Enough for a burst of as many runs as a large machine has at a time. A kit holds eight
 * descriptors and a page. */
#define KITS_MAX 8

struct kit {
	/* code, stdin, stdout, stderr, report: the order of SUBMIT; -1: given away */
	int fds[MSG_FDS_MAX];
	int report_fd;            /* the last of them once more, which stays here */
	struct stream out, err;   /* watched from the beginning */
	struct feed in;           /* only where the run has a stdin */
	struct timeline timeline; /* only where it is asked for */
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

/* The code, and behind it the inputs if there are any, go into the memory that nobody can change
 * or shorten any more, not even we. */
struct kit_content {
	const void *code, *inputs;
	size_t code_len, inputs_len;
};
int kit_seal(struct kit *k, const struct kit_content *c, struct fault *f) __attribute__((nonnull));

/* The program's stdin is these bytes (taken, on failure too), in the place of an empty one. */
int kit_feed(struct kit *k, struct kits *ks, char *bytes, size_t len, struct fault *f)
	__attribute__((nonnull));

/* Keep that much of each stream, at least 1 byte; before any has come. */
void kit_keep(struct kit *k, uint64_t output_bytes) __attribute__((nonnull));

/* Note from now on in which order the streams are written. */
void kit_interleave(struct kit *k) __attribute__((nonnull));

/* Close what was not given away. NULL is accepted. */
void kit_destroy(struct kit *k);
