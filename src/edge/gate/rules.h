/* May this run connect there? The operator's policy and the request's, the names that led there, and the
 * kinds of addresses (special.h), put together.
 *
 *   runs in    the gate
 *   owns       the names that were looked up, until the run is over
 *   trusts     both policies, when network_policy_fault() has looked at them
 */
#pragma once

#include "wire/network.h"

/* Answers of look-ups that are remembered: beyond that the one that was given longest ago is
 * forgotten, and with it that a name led to its address. */
#define RULES_PINS_MAX 1024u
#define RULES_OWN_MAX  1024u

/* An address of the machine's, with the network that it is in: the first `bits` are those of its
 * neighbours, too. */
struct rules_own {
	struct network_address address;
	uint8_t bits; /* of 128; 128: it has no neighbours */
};

struct rules_pin {
	uint64_t turn; /* when it was looked up last */
	struct network_address address;
	char name[NETWORK_NAME_MAX + 3];
};

struct rules {
	struct network_policy ceiling;       /* the operator's */
	struct network_policy asked;         /* the request's */
	struct rules_own own[RULES_OWN_MAX]; /* the machine's addresses, but its loopback's */
	unsigned own_count;
	struct rules_pin pins[RULES_PINS_MAX];
	unsigned pin_count;
	uint64_t turns;
};

/* May the name be looked up? */
enum network_verdict rules_judge_name(const struct rules *r, const char *name)
	__attribute__((nonnull));

/* May a name have this address? Not one that no run should reach: an
 * answer that leads there would only be tried. */
enum network_verdict rules_judge_answer(const struct rules *r, const struct network_address *a)
	__attribute__((nonnull));

/* `name` leads to `a` from now on. */
void rules_pin(struct rules *r, const char *name, const struct network_address *a)
	__attribute__((nonnull));

/* May it connect there (`port` 0: of what has none)? *ret_name: what was looked up last and led there,
 * or "". */
enum network_verdict rules_judge(const struct rules *r, const struct network_address *a,
	uint16_t port, const char **ret_name) __attribute__((nonnull));

/* Is it allowed there only because a name led there? */
bool rules_need_name(const struct rules *r, const struct network_address *a, uint16_t port)
	__attribute__((nonnull));

/* May it speak there for this name (lower case, no dot at its end)? */
bool rules_allow_spoken(const struct rules *r, const struct network_address *a, uint16_t port,
	const char *name) __attribute__((nonnull));
