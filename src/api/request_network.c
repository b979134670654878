#include "api/request_network.h"

#include "api/network.h"
#include "base/check.h"
#include "base/fault.h"
#include "base/likeness.h"
#include "base/own.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The members; the first two are lists of rules. */
static const char *const members[] = { "allow", "deny", "max_connections", "max_bytes",
	"max_rate" };
#define LISTS 2u

void request_network_bounds(
	const struct settings *s, struct request_network_bound ret[static REQUEST_NETWORK_BOUNDS])
{
	ret[0] = (struct request_network_bound){ members[LISTS], "network-connections",
		LIMIT_NETWORK_CONNECTIONS_MIN, s->network_connections };
	ret[1] = (struct request_network_bound){ members[LISTS + 1], "network-bytes",
		LIMIT_NETWORK_BYTES_MIN, s->network_bytes };
	ret[2] = (struct request_network_bound){ members[LISTS + 2], "network-rate",
		LIMIT_NETWORK_RATE_MIN, s->network_rate };
}

/* Where in `network` it is: a member, and in a list an item. */
struct place {
	const struct api_field *field;
	const char *member; /* NULL: the whole */
	long index;         /* -1: the whole member */
};

/* An item of the 422, as long as there are not too many. */
__attribute__((format(printf, 5, 6))) static void refuse(struct request_network *n,
	const struct place *place, const char *type, const json_t *v, const char *fmt, ...)
{
	const struct detail_input input = { .json = v };
	const struct detail_place at = { place->field, -1, place->member,
		(unsigned)(place->index + 1) };
	char msg[512];
	va_list ap;

	n->faults++;
	if (++n->shown > REQUEST_NETWORK_SHOWN)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(msg, sizeof(msg), fmt, ap);
	va_end(ap);
	detail_at(n->why, &at, type, msg, &input);
}

static void check_rule(struct request_network *n, const struct place *place, const json_t *v,
	struct network_rule *ret)
{
	const char *text = json_string_value(v), *rule;
	size_t len = json_string_length(v), at;
	char why[NETWORK_RULE_WHY_MAX];

	if (!text && n->bad_text && json_is_object(v) && json_object_size(v) == 0) {
		refuse(n, place, "string_unicode", NULL,
			"Input should be a valid string, unable to parse raw data as a unicode "
			"string");
		return;
	}
	if (!text) {
		refuse(n, place, "string_type", v, "Input should be a valid string");
		return;
	}
	rule = network_rule_parse(text, len, ret, &at);
	if (rule)
		refuse(n, place, "value_error", v, "Value error, network.%s[%ld]: %s",
			place->member, place->index,
			network_rule_explain(text, len, rule, at, why));
}

static void check_rules(struct request_network *n, struct place *place, const json_t *v,
	struct network_rule *rules, uint32_t *ret_count)
{
	const json_t *item;
	size_t i;

	if (!json_is_array(v)) {
		refuse(n, place, "list_type", v, "Input should be a valid list");
		return;
	}
	if (json_array_size(v) > NETWORK_RULES_MAX) {
		refuse(n, place, "too_long", v,
			"List should have at most %u items after validation, not %zu: a range, or "
			"a "
			"name with *. in front, is one rule for many",
			NETWORK_RULES_MAX, json_array_size(v));
		return;
	}
	json_array_foreach(v, i, item)
	{
		place->index = (long)i;
		check_rule(n, place, item, &rules[i]);
	}
	*ret_count = (uint32_t)json_array_size(v);
}

static void check_bound(struct request_network *n, const struct place *place, const json_t *v,
	const struct request_network_bound *bound, uint64_t *ret)
{
	double number = json_number_value(v);

	/* 1e3 is a whole number, too. */
	if (!json_is_number(v) ||
		(number > -1e15 && number < 1e15 && (double)(int64_t)number != number)) {
		refuse(n, place, json_is_number(v) ? "int_from_float" : "int_type", v,
			"Input should be a valid integer, from %llu to %llu",
			(unsigned long long)bound->least, (unsigned long long)bound->most);
		return;
	}
	if (number < (double)bound->least)
		refuse(n, place, "greater_than_equal", v,
			"Input should be greater than or equal to %llu",
			(unsigned long long)bound->least);
	else if (number > (double)bound->most)
		refuse(n, place, "less_than_equal", v,
			"Input should be less than or equal to %llu, which is this server's %s",
			(unsigned long long)bound->most, bound->setting);
	else
		*ret = (uint64_t)number;
}

static void refuse_unknown(
	struct request_network *n, const struct api_field *f, const char *name, const json_t *v)
{
	const struct place place = { f, name, -1 };
	const char *like = NULL;
	unsigned best = LIKENESS_NONE;

	for (size_t m = 0; m < ARRAY_LEN(members); m++) {
		unsigned far = likeness(name, strlen(name), members[m]);

		if (far < best) {
			best = far;
			like = members[m];
		}
	}
	refuse(n, &place, "extra_forbidden", v,
		"Extra inputs are not permitted: network has allow, deny, max_connections, "
		"max_bytes and max_rate%s%s%s",
		like ? "; did you mean \"" : "", like ? like : "", like ? "\"?" : "");
}

static bool is_member(const char *name)
{
	for (size_t m = 0; m < ARRAY_LEN(members); m++)
		if (strcmp(members[m], name) == 0)
			return true;
	return false;
}

/* Everything that the operator allows. */
static int begin(struct request_network *n)
{
	struct network_policy *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->allow_count = 1;
	p->allow[0].port_max = UINT16_MAX;
	p->max_connections = n->settings->network_connections;
	p->max_bytes = n->settings->network_bytes;
	p->max_rate = n->settings->network_rate;
	n->policy = p;
	return 0;
}

static void check_members(struct request_network *n, const struct api_field *f, const json_t *v)
{
	struct network_policy *p = n->policy;
	struct network_rule *const lists[LISTS] = { p->allow, p->deny };
	uint32_t *const counts[LISTS] = { &p->allow_count, &p->deny_count };
	uint64_t connections = p->max_connections;
	uint64_t *const numbers[] = { &connections, &p->max_bytes, &p->max_rate };
	struct request_network_bound bounds[REQUEST_NETWORK_BOUNDS];

	request_network_bounds(n->settings, bounds);
	for (size_t m = 0; m < ARRAY_LEN(members); m++) {
		const json_t *value = json_object_get(v, members[m]);
		struct place place = { f, members[m], -1 };

		if (!value || json_is_null(value)) /* as if it were not there */
			continue;
		if (m < LISTS)
			check_rules(n, &place, value, lists[m], counts[m]);
		else
			check_bound(n, &place, value, &bounds[m - LISTS], numbers[m - LISTS]);
	}
	p->max_connections = (uint32_t)connections;
}

int request_network_check(struct request_network *n, const struct api_field *f, const json_t *v,
	const struct detail_input *odd)
{
	const struct place whole = { f, NULL, -1 };
	json_t *object = (json_t *)(uintptr_t)v, *value; /* only looked at */
	const char *name;
	int r;

	if (odd || !json_is_object(v)) {
		n->faults++;
		detail_field(n->why, f, "dict_type", "Input should be a valid dictionary",
			odd ? odd : &(struct detail_input){ .json = v });
		return 0;
	}
	r = begin(n);
	if (r < 0)
		return r;
	check_members(n, f, v);
	json_object_foreach(object, name, value)
	{
		if (!is_member(name))
			refuse_unknown(n, f, name, value);
	}
	if (n->shown > REQUEST_NETWORK_SHOWN) {
		unsigned hidden = n->shown - REQUEST_NETWORK_SHOWN;

		n->shown = 0;
		refuse(n, &whole, "value_error", NULL, "Value error, %u more are wrong", hidden);
	}
	return 0;
}

struct network_policy *request_network_take(struct request_network *n)
{
	if (!n->policy && begin(n) < 0)
		return NULL;
	return take_ptr(n->policy);
}

/* The first item that a 422 would have: "network.allow[2]: ..." */
static void say_first(struct writer *why, struct fault *f)
{
	static const char prefix[] = "Value error, ";
	const json_t *item, *loc, *member;
	cleanup_free char *text = NULL;
	const char *msg;
	size_t len;
	json_t *all;

	writer_close(why);
	text = writer_take(why, &len);
	all = text ? json_loadb(text, len, 0, NULL) : NULL;
	item = json_array_get(all, 0);
	loc = json_object_get(item, "loc");
	member = json_array_get(loc, 2);
	msg = json_string_value(json_object_get(item, "msg"));
	if (!msg)
		(void)fault_say(f, -ENOMEM, "network: out of memory");
	else if (strncmp(msg, prefix, strlen(prefix)) == 0)
		(void)fault_say(f, -EINVAL, "%s", msg + strlen(prefix));
	else
		(void)fault_say(f, -EINVAL, "network%s%.64s: %s", member ? "." : "",
			member ? json_string_value(member) : "", msg);
	json_decref(all);
}

int request_network_parse(
	const char *text, const struct settings *s, struct network_policy **ret, struct fault *f)
{
	struct writer why CLEANUP(writer_drop) = { 0 };
	struct request_network n CLEANUP(request_network_done) = { .settings = s, .why = &why };
	json_error_t error;
	json_t *v = json_loads(text, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	int r;

	if (!v)
		return fault_say(f, -EINVAL, "network: no JSON at byte %d: %s", error.position + 1,
			error.text);
	writer_array(&why, NULL);
	r = request_network_check(&n, &api_fields[API_NETWORK_POLICY], v, NULL);
	if (r < 0)
		(void)fault_set(f, r, "network");
	else if (n.faults > 0)
		say_first(&why, f);
	else
		*ret = take_ptr(n.policy);
	json_decref(v);
	return f->code;
}

void request_network_done(struct request_network *n)
{
	free(n->policy);
	n->policy = NULL;
}
