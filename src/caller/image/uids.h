/* Are the uids free as which images are read and packed? Whoever has one could write to the file
 * that the kernel is going to parse.
 *
 *   runs in    the command line
 */
#pragma once

struct fault;

/* -EBUSY: /etc/passwd or /etc/subuid gives one of them to somebody. */
int uids_are_ours(struct fault *f) __attribute__((nonnull));
