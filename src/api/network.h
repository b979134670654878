/* A rule about the network, as people write it:
 *
 *   example.org               a name          *.example.org      all names below it
 *   203.0.113.7               an address      203.0.113.0/24     a range
 *   2001:db8::/32             ...of IPv6      *                  everything
 *
 * Each may end with ":PORT" or ":FIRST-LAST"; IPv6 is then put into brackets, "[2001:db8::1]:443".
 * Without one a rule is about all ports, and about what has none.
 *
 *   runs in    the config process (the operator's), the front and the caller (a request's)
 *   owns       nothing
 *   trusts     no byte of a text
 */
#pragma once

#include "wire/network.h"

#include <stddef.h>

/* The most bytes that a rule can have: "*." and the longest name, ":" and two ports. */
#define NETWORK_RULE_TEXT_MAX (2 + NETWORK_NAME_MAX + 1 + 5 + 1 + 5)

/* Read the `len` bytes of `text`, which need no NUL. NULL: *ret is the rule. Otherwise what is
 * wrong, as the end of a sentence that begins with the text, with *ret_at the byte that it is
 * about, at most `len`; *ret is not a rule then. */
const char *network_rule_parse(const char *text, size_t len, struct network_rule *ret,
	size_t *ret_at) __attribute__((nonnull));

/* The text of a rule that was read or has passed network_policy_fault(), in `room`, which is returned:
 * what network_rule_parse() makes the same rule of. */
const char *network_rule_format(const struct network_rule *r,
	char room[static NETWORK_RULE_TEXT_MAX + 1]) __attribute__((nonnull));

/* What is wrong for whoever wrote the text: its beginning as far as it can be shown, what is wrong and at
 * which byte, counted from 1, and what a rule is; in `room`, which is returned. */
#define NETWORK_RULE_WHY_MAX 384u
const char *network_rule_explain(const char *text, size_t len, const char *why, size_t at,
	char room[static NETWORK_RULE_WHY_MAX]) __attribute__((nonnull));

/* An address alone: "203.0.113.7" or "2001:db8::1". As above. */
const char *network_address_parse(const char *text, size_t len, struct network_address *ret,
	size_t *ret_at) __attribute__((nonnull));
