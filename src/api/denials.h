/* What a run has run into, in the API's words: the reply's denials[] and its hint. One table
 * of layers, words and advice is in denials.c.
 *
 *   runs in    the front, the caller
 *   owns       nothing; all texts but the hint are constant
 *   threads    none
 *   trusts     the supervisor's numbers. What a program wrote can only choose among the
 *              table's rows that say so, and none of it is repeated
 */
#pragma once

#include "api/output.h"
#include "wire/msg.h"
#include "wire/network.h"

#include <stdbool.h>
#include <stdint.h>

#define DENIALS_MAX      32
#define DENIALS_HINT_MAX 256

struct denial {
	const char *layer; /* "network" */
	const char *what;  /* what `count` is the number of */
	uint64_t count;    /* at least 1 */
	bool exact;        /* false: it was that often or more */
	bool said;         /* the program's own error output says so, and nobody else */
};

struct denials {
	unsigned count;
	struct denial list[DENIALS_MAX]; /* the one that matters most first */
	/* One line about the first. Without any: what else is good to know, or empty. */
	char hint[DENIALS_HINT_MAX];
};

struct denials_of {
	const struct msg_result *result;
	const struct run_limits *limits;      /* as submitted */
	const struct settings *settings;      /* of the server, for what it gives at most */
	const struct output_view *out, *err;  /* NULL: nothing was kept */
	bool networked;                       /* it was given a network, */
	const struct network_record *network; /* and did this with it; NULL: that is not known */
};

void denials_find(const struct denials_of *of, struct denials *ret) __attribute__((nonnull));
