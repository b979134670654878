#include "edge/config/parse.h"

#include "api/network.h"
#include "base/check.h"
#include "base/fault.h"
#include "edge/config/languages.h"
#include "edge/config/value.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MEBIBYTE         (UINT64_C(1) << 20)
#define GIBIBYTE         (UINT64_C(1) << 30)
#define RUNS_AUTO_LEAST  4
#define KEY_MAX          32
#define ENVIRONMENT_MARK "GLOVEBOX_"

struct setting {
	const char *key;
	enum value_type type;
	size_t offset, width; /* of the field in struct settings */
	const char *def;
	uint64_t least, most;
};

static const struct setting table[CONFIG_SETTINGS] = {
#define X(key, field, type, def, least, most, help)            \
	{ key, VALUE_##type, offsetof(struct settings, field), \
		sizeof(((struct settings *)NULL)->field), def, least, most },
	SETTINGS(X)
#undef X
};

static const struct setting *find(const char *key)
{
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		if (strcmp(table[i].key, key) == 0)
			return &table[i];
	return NULL;
}

/* Where a value came from, for a message's end. */
#define SOURCE_TEXT_MAX 128

static const char *describe(
	const struct config_source *from, const char *key, char room[static SOURCE_TEXT_MAX])
{
	char name[KEY_MAX];
	size_t i;

	if (from->origin == ORIGIN_FLAG) {
		(void)snprintf(room, SOURCE_TEXT_MAX, "flag --%s", key);
	} else if (from->origin == ORIGIN_ENVIRONMENT) {
		for (i = 0; key[i] && i + 1 < sizeof(name); i++)
			name[i] = key[i] == '-'                    ? '_'
				  : key[i] >= 'a' && key[i] <= 'z' ? (char)(key[i] - 'a' + 'A')
								   : key[i];
		name[i] = '\0';
		(void)snprintf(room, SOURCE_TEXT_MAX, "environment " ENVIRONMENT_MARK "%s", name);
	} else if (from->origin == ORIGIN_FILE && from->column > 0) {
		(void)snprintf(room, SOURCE_TEXT_MAX, "%.80s line %u, column %u", from->file,
			from->line, from->column);
	} else if (from->origin == ORIGIN_FILE && from->line > 0) {
		(void)snprintf(room, SOURCE_TEXT_MAX, "%.90s line %u", from->file, from->line);
	} else if (from->origin == ORIGIN_FILE) {
		(void)snprintf(room, SOURCE_TEXT_MAX, "%.100s", from->file);
	} else {
		(void)snprintf(room, SOURCE_TEXT_MAX, "%s",
			from->origin == ORIGIN_LIBRARY ? "option" : "default");
	}
	return room;
}

/* 0 is right for some keys and stands for "computed"; what is then the least beside it? */
static uint64_t least_number(const struct setting *s)
{
	if (s->offset == offsetof(struct settings, max.memory_bytes))
		return LIMIT_MEMORY_MIN_BYTES;
	if (s->offset == offsetof(struct settings, max.cpu_milli))
		return LIMIT_CPU_MIN_MILLI;
	return s->least;
}

static bool is_in_range(const struct setting *s, uint64_t n)
{
	if (n == 0 && s->least == 0)
		return true;
	return n >= least_number(s) && n <= s->most;
}

/* A number of bytes, and too few: 64 is meant to be 64M. */
static bool is_bare_size(const struct setting *s, const char *value)
{
	uint64_t n;

	return s->type == VALUE_SIZE && value[strspn(value, "0123456789")] == '\0' &&
	       value_parse_number(s->type, value, &n) == 0 && n < least_number(s);
}

static int complain(const struct setting *s, const char *value, int why,
	const struct config_source *from, struct fault *f)
{
	char quoted[VALUE_QUOTE_MAX], source[SOURCE_TEXT_MAX];
	char least[VALUE_TEXT_MAX], most[VALUE_TEXT_MAX], range[2 * VALUE_TEXT_MAX + 16] = "";

	if (value_is_number(s->type) && s->type != VALUE_BOOL && s->type != VALUE_SWITCH &&
		s->type != VALUE_LEVEL)
		(void)snprintf(range, sizeof(range), "%s%s to %s",
			s->least == 0 && least_number(s) > 0 ? "0 or " : "",
			value_format(s->type, least_number(s), least),
			value_format(s->type, s->most, most));
	(void)value_quote(value, quoted);
	(void)describe(from, s->key, source);
	/* The command line's `run --memory 64` is MiB. */
	if (why == -ERANGE && is_bare_size(s, value))
		return fault_say(f, -EINVAL,
			"%s: \"%s\" is that many bytes, and out of range, which is %s: write %sM "
			"for "
			"MiB (%s)",
			s->key, quoted, range, quoted, source);
	if (why == -ERANGE)
		return fault_say(f, -EINVAL, "%s: \"%s\" is out of range, which is %s (%s)", s->key,
			quoted, range, source);
	return fault_say(f, -EINVAL, "%s: \"%s\" is not %s%s%s (%s)", s->key, quoted,
		value_expectation(s->type), range[0] ? ", from " : "", range, source);
}

static int set_number(struct settings *to, const struct setting *s, const char *value)
{
	uint64_t n;
	uint32_t narrow;
	int r;

	r = value_parse_number(s->type, value, &n);
	if (r < 0)
		return r;
	if (!is_in_range(s, n))
		return -ERANGE;

	CHECK(s->width == sizeof(n) || (s->width == sizeof(narrow) && n <= UINT32_MAX));
	narrow = (uint32_t)n;
	memcpy((char *)to + s->offset, s->width == sizeof(n) ? (void *)&n : (void *)&narrow,
		s->width);
	return 0;
}

static bool is_text_of(enum value_type type, const char *value)
{
	if (type == VALUE_MODULES)
		return is_modules(value);
	if (value[0] == '\0')
		return true;
	return type == VALUE_IMAGE ? image_name_is_valid(value) : value_is_path(value);
}

static int set_text(struct settings *to, const struct setting *s, const char *value)
{
	size_t len = strlen(value);

	if (len >= s->width || !is_text_of(s->type, value))
		return -EINVAL;
	memcpy((char *)to + s->offset, value, len + 1);
	return 0;
}

static int set_layers(struct settings *to, const struct setting *s, const char *value, bool add)
{
	uint64_t set, old = 0;
	int r;

	CHECK(s->width == sizeof(set));
	r = value_parse_layers(value, &set);
	if (r < 0)
		return r;
	if (add)
		memcpy(&old, (char *)to + s->offset, sizeof(old));
	set |= old;
	memcpy((char *)to + s->offset, &set, sizeof(set));
	return 0;
}

static int set_listen(struct settings *to, const struct setting *s, const char *value)
{
	struct listen_address a;
	int r;

	CHECK(s->width == sizeof(a));
	r = value_parse_listen(value, &a);
	if (r == 0)
		memcpy((char *)to + s->offset, &a, sizeof(a));
	return r;
}

/* The list that a setting of rules stands for. */
static struct network_rule *rules_of(
	struct config *c, const struct setting *s, uint32_t **ret_count)
{
	bool allow = s->offset == offsetof(struct settings, network_allow);

	*ret_count = allow ? &c->policy.allow_count : &c->policy.deny_count;
	return allow ? c->policy.allow : c->policy.deny;
}

/* A rule that is none: what network_rule_parse() has said of it. */
struct bad_rule {
	const char *text;
	size_t len;
	const char *why;
	size_t at;
};

static int complain_rule(const struct setting *s, const struct config_source *from,
	const struct bad_rule *bad, struct fault *f)
{
	struct config_source there = *from;
	char source[SOURCE_TEXT_MAX];
	int shown = bad->len < VALUE_QUOTE_MAX ? (int)bad->len : VALUE_QUOTE_MAX - 1;
	char text[VALUE_QUOTE_MAX], quoted[VALUE_QUOTE_MAX];

	(void)snprintf(text, sizeof(text), "%.*s", shown, bad->text);
	if (there.column > 0)
		there.column += (uint32_t)bad->at;
	return fault_say(f, -EINVAL, "%s: \"%s\" %s (byte %zu; %s)", s->key,
		value_quote(text, quoted), bad->why, bad->at + 1, describe(&there, s->key, source));
}

static int set_rules(struct config *c, const struct setting *s, const char *value,
	const struct config_source *from, struct fault *f)
{
	struct network_rule new[NETWORK_RULES_MAX], *rules;
	uint32_t count = 0, *old;
	char source[SOURCE_TEXT_MAX];

	rules = rules_of(c, s, &old);
	if (c->sources[s - table].origin == from->origin)
		count = *old;
	for (const char *rule = value; rule; count++) {
		const char *comma = strchr(rule, ',');
		size_t len = comma ? (size_t)(comma - rule) : strlen(rule), at;
		const char *why;

		if (len == 0 && rule == value && !comma) {
			if (from->origin == ORIGIN_DEFAULT)
				break; /* none */
			/* A variable that nobody has set must not open or shut anything. */
			return fault_say(f, -EINVAL,
				"%s: is empty: name a rule (\"*\" is everything public), or leave "
				"it out (%s)",
				s->key, describe(from, s->key, source));
		}
		if (count == NETWORK_RULES_MAX)
			return fault_say(f, -EINVAL, "%s: more than %u rules (%s)", s->key,
				NETWORK_RULES_MAX, describe(from, s->key, source));
		why = network_rule_parse(rule, len, &new[count], &at);
		if (why)
			return complain_rule(s, from, &(struct bad_rule){ rule, len, why, at }, f);
		rule = comma ? comma + 1 : NULL;
	}
	if (c->sources[s - table].origin != from->origin)
		*old = 0;
	for (uint32_t i = *old; i < count; i++)
		rules[i] = new[i];
	memset(&rules[count], 0, (NETWORK_RULES_MAX - count) * sizeof(rules[0]));
	*old = count;
	memcpy((char *)&c->settings + s->offset, &count, sizeof(count));
	return 0;
}

int config_set(struct config *c, const char *key, const char *value,
	const struct config_source *from, struct fault *f)
{
	const struct setting *s = find(key);
	struct config_source *source;
	char quoted[VALUE_QUOTE_MAX], where[SOURCE_TEXT_MAX];
	int r;

	if (!s) {
		(void)value_quote(key, quoted);
		return fault_say(f, -EINVAL,
			"\"%s\" is no setting; `glovebox serve --help` lists them (%s)", quoted,
			describe(from, quoted, where));
	}
	source = &c->sources[s - table];
	if (s->type == VALUE_RULES) {
		r = set_rules(c, s, value, from, f);
		if (r == 0)
			*source = *from;
		return r;
	}
	if (s->type == VALUE_TEXT || s->type == VALUE_MODULES || s->type == VALUE_IMAGE)
		r = set_text(&c->settings, s, value);
	else if (s->type == VALUE_LISTEN)
		r = set_listen(&c->settings, s, value);
	else if (s->type == VALUE_LAYER_SET)
		r = set_layers(&c->settings, s, value, source->origin == from->origin);
	else
		r = set_number(&c->settings, s, value);
	if (r < 0)
		return complain(s, value, r, from, f);
	*source = *from;
	return 0;
}

void config_init(struct config *c)
{
	static const struct config_source nowhere = { .origin = ORIGIN_DEFAULT };
	struct fault f = { 0 };

	memset(c, 0, sizeof(*c));
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		CHECK(config_set(c, table[i].key, table[i].def, &nowhere, &f) == 0);
}

/* A record's spelling to its key; the source follows from it. */
static enum config_origin spelling_to_key(const char *spelling, size_t len, char key[KEY_MAX])
{
	const size_t mark = strlen(ENVIRONMENT_MARK);
	enum config_origin origin = ORIGIN_LIBRARY;

	if (len > 2 && strncmp(spelling, "--", 2) == 0) {
		origin = ORIGIN_FLAG;
		spelling += 2;
		len -= 2;
	} else if (len > mark && strncmp(spelling, ENVIRONMENT_MARK, mark) == 0) {
		origin = ORIGIN_ENVIRONMENT;
		spelling += mark;
		len -= mark;
	}
	if (len >= KEY_MAX)
		len = KEY_MAX - 1; /* longer than any key: stays unknown */
	for (size_t i = 0; i < len; i++) {
		char ch = spelling[i];

		if (origin == ORIGIN_ENVIRONMENT)
			ch = ch == '_' ? '-' : ch >= 'A' && ch <= 'Z' ? (char)(ch - 'A' + 'a') : ch;
		key[i] = ch;
	}
	key[len] = '\0';
	return origin;
}

int config_override(struct config *c, const char *records, size_t len, struct fault *f)
{
	const char *end = records + len;

	while (records < end) {
		struct config_source from = { 0 };
		const char *equals, *stop = memchr(records, '\0', (size_t)(end - records));
		char key[KEY_MAX];
		int r;

		if (!stop)
			return fault_say(f, -EINVAL, "overrides: the last record is not ended");
		if (*records == LANGUAGES_MARK) { /* a manifest: languages.h */
			records = stop + 1;
			continue;
		}
		equals = strchr(records, '=');
		if (!equals)
			return fault_say(f, -EINVAL, "overrides: a record has no \"=\"");
		from.origin = spelling_to_key(records, (size_t)(equals - records), key);
		r = config_set(c, key, equals + 1, &from, f);
		if (r < 0)
			return r;
		records = stop + 1;
	}
	return 0;
}

static uint64_t auto_memory(uint64_t host)
{
	uint64_t most = host / 4;

	if (most < GIBIBYTE)
		most = host < GIBIBYTE ? host : GIBIBYTE;
	if (most > LIMIT_MEMORY_MAX_BYTES)
		most = LIMIT_MEMORY_MAX_BYTES;
	return most / MEBIBYTE * MEBIBYTE; /* a number that reads well in /limits */
}

static uint32_t auto_runs(uint32_t cpus)
{
	uint64_t most = find("max-runs")->most, runs = UINT64_C(2) * cpus;

	if (runs < RUNS_AUTO_LEAST)
		runs = RUNS_AUTO_LEAST;
	return (uint32_t)(runs < most ? runs : most);
}

static uint32_t auto_cpu(uint32_t cpus)
{
	uint64_t milli = UINT64_C(1000) * cpus;

	return (uint32_t)(milli < LIMIT_CPU_MAX_MILLI ? milli : LIMIT_CPU_MAX_MILLI);
}

static uint64_t number_of(const struct settings *from, const struct setting *s)
{
	uint64_t n = 0;
	uint32_t narrow;

	if (s->width == sizeof(n)) {
		memcpy(&n, (const char *)from + s->offset, sizeof(n));
		return n;
	}
	memcpy(&narrow, (const char *)from + s->offset, sizeof(narrow));
	return narrow;
}

/* A default above its own maximum: say both numbers and where each was set. */
static int check_order(
	const struct config *c, const char *low_key, const char *high_key, struct fault *f)
{
	const struct setting *low = find(low_key), *high = find(high_key);
	char a[VALUE_TEXT_MAX], b[VALUE_TEXT_MAX], from_a[SOURCE_TEXT_MAX], from_b[SOURCE_TEXT_MAX];
	uint64_t n = number_of(&c->settings, low), most = number_of(&c->settings, high);

	if (n <= most)
		return 0;
	return fault_say(f, -EINVAL, "%s %s (%s) is above %s %s (%s)", low_key,
		value_format(low->type, n, a), describe(&c->sources[low - table], low_key, from_a),
		high_key, value_format(high->type, most, b),
		describe(&c->sources[high - table], high_key, from_b));
}

/* What the supervisor does not have to know: for the gates alone. */
static void settle_policy(struct config *c)
{
	struct network_policy *p = &c->policy;

	p->max_connections = c->settings.network_connections;
	p->max_bytes = c->settings.network_bytes;
	p->max_rate = c->settings.network_rate;
	if (p->allow_count > 0)
		return;
	p->allow_count = 1; /* what is public */
	p->allow[0].port_max = UINT16_MAX;
}

int config_settle(struct config *c, const struct config_host *host, struct fault *f)
{
	static const char *const pairs[][2] = {
		{ "timeout", "max-timeout" },
		{ "memory", "max-memory" },
		{ "cpu", "max-cpu" },
		{ "pids", "max-pids" },
	};
	struct settings *s = &c->settings;
	char source[SOURCE_TEXT_MAX];
	int r;

	if (s->max_runs == 0)
		s->max_runs = auto_runs(host->cpus);
	if (s->max.memory_bytes == 0)
		s->max.memory_bytes = auto_memory(host->memory_bytes);
	if (s->max.cpu_milli == 0)
		s->max.cpu_milli = auto_cpu(host->cpus);
	for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
		r = check_order(c, pairs[i][0], pairs[i][1], f);
		if (r < 0)
			return r;
	}
	settle_policy(c);
	if (!s->insecure && !listen_is_local(&s->listen))
		return fault_say(f, -EINVAL,
			"listen: the address is beyond loopback (%s), and there are no keys that "
			"would keep strangers out; set insecure (--insecure) to do it all the same",
			describe(&c->sources[find("listen") - table], "listen", source));
	return 0;
}
