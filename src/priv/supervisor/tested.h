/* The result that `glovebox selftest` has left, for /health.
 *
 *   runs in    the supervisor of a server
 *   owns       one inotify descriptor
 *   trusts     root, who alone can write the file; no byte of it beyond selftest_record_fault()
 *   blocks     never
 */
#pragma once

#include "wire/msg.h"

struct tested {
	int watch_fd; /* readable when there may be another result; -1: none is looked for */
	struct msg_selftest last;
};

void tested_clear(struct tested *t) __attribute__((nonnull));

/* Read what is there and watch for what comes. A failure costs the news, not the server. */
void tested_open(struct tested *t) __attribute__((nonnull));

/* The descriptor is readable. True when there is another result. */
bool tested_look(struct tested *t) __attribute__((nonnull));
