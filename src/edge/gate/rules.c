#include "edge/gate/rules.h"

#include "edge/gate/special.h"

#include <stdio.h>
#include <string.h>

static bool any_name(const struct network_rule *rules, uint32_t count, const char *name)
{
	for (uint32_t i = 0; i < count; i++)
		if (network_rule_has_name_somewhere(&rules[i], name))
			return true;
	return false;
}

/* A name that is denied for some ports only can be looked up. */
static bool denies_name(const struct network_policy *p, const char *name)
{
	for (uint32_t i = 0; i < p->deny_count; i++)
		if (p->deny[i].port_min == 0 && p->deny[i].port_max == UINT16_MAX &&
			network_rule_has_name_somewhere(&p->deny[i], name))
			return true;
	return false;
}

enum network_verdict rules_judge_name(const struct rules *r, const char *name)
{
	if (denies_name(&r->ceiling, name) ||
		!any_name(r->ceiling.allow, r->ceiling.allow_count, name))
		return NETWORK_OPERATOR;
	if (denies_name(&r->asked, name))
		return NETWORK_DENIED;
	return any_name(r->asked.allow, r->asked.allow_count, name) ? NETWORK_ALLOWED
								    : NETWORK_NO_RULE;
}

/* The machine itself, its neighbours, or neither. A network without bits is all of its family and
 * nothing of the other. */
static enum network_verdict whose(const struct rules *r, const struct network_address *a)
{
	enum network_verdict v = NETWORK_ALLOWED;

	for (unsigned i = 0; i < r->own_count; i++) {
		const struct rules_own *own = &r->own[i];

		if (network_same_bits(&own->address, a, 128))
			return NETWORK_OWN;
		if (network_is_ipv4(&own->address) == network_is_ipv4(a) &&
			network_same_bits(&own->address, a, own->bits))
			v = NETWORK_NEIGHBOUR;
	}
	return v;
}

static enum network_verdict kind_of(const struct rules *r, const struct network_address *a)
{
	enum network_verdict whom = whose(r, a), special = network_special(a);

	return whom == NETWORK_OWN || special == NETWORK_ALLOWED ? whom : special;
}

/* Who connects there has not left the machine: 0.0.0.0 and :: are other words for its loopback. */
static bool is_of_machine(enum network_verdict kind)
{
	return kind == NETWORK_OWN || kind == NETWORK_LOOPBACK || kind == NETWORK_THIS_HOST;
}

/* Only a range or an address names what is not public: "*" and a name mean the internet. And what is
 * the machine's own only an address names: nobody who writes down a network means what listens on
 * this end of it. */
static bool names(const struct network_rule *rule, enum network_verdict kind)
{
	return rule->match == NETWORK_RANGE && (rule->prefix == 128 || !is_of_machine(kind));
}

/* For that port. */
static bool is_named(const struct network_policy *p, const struct network_address *a,
	enum network_verdict kind, uint16_t port)
{
	for (uint32_t i = 0; i < p->allow_count; i++)
		if (names(&p->allow[i], kind) && network_rule_has_address(&p->allow[i], a, port))
			return true;
	return false;
}

static bool is_named_somewhere(
	const struct network_policy *p, const struct network_address *a, enum network_verdict kind)
{
	for (uint32_t i = 0; i < p->allow_count; i++)
		if (names(&p->allow[i], kind) &&
			network_rule_has_address_somewhere(&p->allow[i], a))
			return true;
	return false;
}

enum network_verdict rules_judge_answer(const struct rules *r, const struct network_address *a)
{
	enum network_verdict kind = kind_of(r, a);

	return is_named_somewhere(&r->ceiling, a, kind) ? NETWORK_ALLOWED : kind;
}

/* ---- Pins ---- */

static bool leads_to(const struct rules_pin *p, const struct network_address *a)
{
	return network_same_bits(&p->address, a, 128);
}

/* The one that says the same; otherwise one that says nothing yet, or the oldest. */
static struct rules_pin *find_pin(
	struct rules *r, const char *name, const struct network_address *a)
{
	struct rules_pin *oldest = &r->pins[0];

	for (unsigned i = 0; i < r->pin_count; i++) {
		struct rules_pin *p = &r->pins[i];

		if (leads_to(p, a) && strcmp(p->name, name) == 0)
			return p;
		if (p->turn < oldest->turn)
			oldest = p;
	}
	return r->pin_count < RULES_PINS_MAX ? &r->pins[r->pin_count++] : oldest;
}

void rules_pin(struct rules *r, const char *name, const struct network_address *a)
{
	struct rules_pin *p = find_pin(r, name, a);

	p->turn = ++r->turns;
	p->address = *a;
	(void)snprintf(p->name, sizeof(p->name), "%s", name);
}

static const char *name_of(const struct rules *r, const struct network_address *a)
{
	const struct rules_pin *newest = NULL;

	for (unsigned i = 0; i < r->pin_count; i++)
		if (leads_to(&r->pins[i], a) && (!newest || r->pins[i].turn > newest->turn))
			newest = &r->pins[i];
	return newest ? newest->name : "";
}

/* ---- Connections ---- */

/* Does one of the rules speak of the address, or of a name that led there? */
static bool any_speaks(const struct rules *r, const struct network_rule *rules, uint32_t count,
	const struct network_address *a, uint16_t port)
{
	for (uint32_t i = 0; i < count; i++) {
		if (network_rule_has_address(&rules[i], a, port))
			return true;
		if (rules[i].match != NETWORK_NAME && rules[i].match != NETWORK_SUBNAME)
			continue;
		for (unsigned k = 0; k < r->pin_count; k++)
			if (leads_to(&r->pins[k], a) &&
				network_rule_has_name(&rules[i], r->pins[k].name, port))
				return true;
	}
	return false;
}

enum network_verdict rules_judge(const struct rules *r, const struct network_address *a,
	uint16_t port, const char **ret_name)
{
	const struct network_policy *ceiling = &r->ceiling, *asked = &r->asked;
	enum network_verdict kind = kind_of(r, a);

	*ret_name = name_of(r, a);
	if (kind != NETWORK_ALLOWED && !is_named(ceiling, a, kind, port))
		return kind;
	if (any_speaks(r, ceiling->deny, ceiling->deny_count, a, port) ||
		!any_speaks(r, ceiling->allow, ceiling->allow_count, a, port))
		return NETWORK_OPERATOR;
	if (any_speaks(r, asked->deny, asked->deny_count, a, port))
		return NETWORK_DENIED;
	return any_speaks(r, asked->allow, asked->allow_count, a, port) ? NETWORK_ALLOWED
									: NETWORK_NO_RULE;
}

/* ---- Names that are spoken ---- */

static bool any_address(const struct network_rule *rules, uint32_t count,
	const struct network_address *a, uint16_t port)
{
	for (uint32_t i = 0; i < count; i++)
		if (network_rule_has_address(&rules[i], a, port))
			return true;
	return false;
}

static bool any_name_there(
	const struct network_rule *rules, uint32_t count, const char *name, uint16_t port)
{
	for (uint32_t i = 0; i < count; i++)
		if (network_rule_has_name(&rules[i], name, port))
			return true;
	return false;
}

bool rules_need_name(const struct rules *r, const struct network_address *a, uint16_t port)
{
	return !any_address(r->ceiling.allow, r->ceiling.allow_count, a, port) ||
	       !any_address(r->asked.allow, r->asked.allow_count, a, port);
}

static bool allows_spoken(const struct network_policy *p, const struct network_address *a,
	uint16_t port, const char *name)
{
	return !any_name_there(p->deny, p->deny_count, name, port) &&
	       (any_name_there(p->allow, p->allow_count, name, port) ||
		       any_address(p->allow, p->allow_count, a, port));
}

bool rules_allow_spoken(
	const struct rules *r, const struct network_address *a, uint16_t port, const char *name)
{
	return allows_spoken(&r->ceiling, a, port, name) && allows_spoken(&r->asked, a, port, name);
}
