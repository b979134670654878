/* A rehearsal: the training program runs through the very path of a real one, so that the
 * pages which a run writes are the child's own before there is a run. Then everything that
 * could tell of it is put back.
 *
 *   runs in    a zygote's child, in its cell, with everything dropped
 *   owns       the streams, for its time
 */
#pragma once

struct fault;

/* Run `bytes` of training program. `scrub` puts back what only it knows of; 0, or -1 with
 * an exception set. */
int rehearse(const char *source, unsigned long bytes, int (*scrub)(void), struct fault *f)
	__attribute__((nonnull));
