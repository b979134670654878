#include "wire/settings.h"

#include "base/check.h"
#include "wire/layer.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define INET_LOOPBACK_FIRST 127

static bool is_text(const char *text, size_t room)
{
	return memchr(text, '\0', room) != NULL;
}

static bool is_within(uint64_t value, uint64_t least, uint64_t most)
{
	return value >= least && value <= most;
}

/* One predicate for each type of SETTINGS. */
#define RULE_NUMBER(field, least, most)   is_within(s->field, least, most)
#define RULE_SIZE(field, least, most)     RULE_NUMBER(field, least, most)
#define RULE_COUNT(field, least, most)    RULE_NUMBER(field, least, most)
#define RULE_DURATION(field, least, most) RULE_NUMBER(field, least, most)
#define RULE_CPUS(field, least, most)     RULE_NUMBER(field, least, most)
#define RULE_BOOL(field, least, most)     RULE_NUMBER(field, least, most)
#define RULE_SWITCH(field, least, most)   RULE_NUMBER(field, least, most)
#define RULE_RULES(field, least, most)    RULE_NUMBER(field, least, most)
#define RULE_LEVEL(field, least, most)    RULE_NUMBER(field, least, most)
#define RULE_TEXT(field, least, most)     is_text(s->field, sizeof(s->field))
#define RULE_MODULES(field, least, most) \
	(is_text(s->field, sizeof(s->field)) && is_modules(s->field))
#define RULE_IMAGE(field, least, most)          \
	(is_text(s->field, sizeof(s->field)) && \
		(s->field[0] == '\0' || image_name_is_valid(s->field)))
#define RULE_LAYER_SET(field, least, most) ((s->field & ~LAYER_ALL) == 0)
#define RULE_LISTEN(field, least, most)    listen_is_valid(&s->field)

static bool is_word(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_modules(const char *text)
{
	bool begins = true; /* a name, or a part of one */

	if (text[0] == '\0')
		return true;
	for (; *text; text++) {
		bool is_digit = *text >= '0' && *text <= '9';

		if (!is_word(*text) && (begins || (!is_digit && *text != '.' && *text != ',')))
			return false;
		begins = *text == '.' || *text == ',';
	}
	return !begins;
}

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '-' || c == '_' || c == '.';
}

bool image_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len >= IMAGE_NAME_MAX || name[0] == '.' || name[0] == '-')
		return false;
	for (; *name; name++)
		if (!is_name_char(*name))
			return false;
	return true;
}

static bool listen_is_valid(const struct listen_address *a)
{
	if (a->port > UINT16_MAX)
		return false;
	if (a->kind == LISTEN_UNIX)
		return is_text(a->path, sizeof(a->path)) && a->path[0] == '/';
	return a->kind == LISTEN_INET || a->kind == LISTEN_INET6;
}

const char *network_why_text(uint32_t why)
{
	static const char *const texts[] = {
#define X(name, text) text,
		NETWORK_WHYS(X)
#undef X
	};

	CHECK(why < NETWORK_WHY_MAX);
	return texts[why];
}

bool listen_is_local(const struct listen_address *a)
{
	static const uint8_t loopback6[16] = { [15] = 1 };

	if (a->kind == LISTEN_UNIX)
		return true;
	if (a->kind == LISTEN_INET)
		return a->ip[0] == INET_LOOPBACK_FIRST;
	return a->kind == LISTEN_INET6 && memcmp(a->ip, loopback6, sizeof(loopback6)) == 0;
}

static const char *ranges_fault(const struct settings *s)
{
#define X(key, field, type, def, least, most, help) \
	if (!RULE_##type(field, least, most))       \
		return key " is out of range";
	SETTINGS(X)
#undef X
	/* The list lets an operator write 0 for these; here they must be settled. */
	if (s->max_runs == 0)
		return "max-runs is not settled";
	if (s->max.memory_bytes < LIMIT_MEMORY_MIN_BYTES)
		return "max-memory is out of range";
	if (s->max.cpu_milli < LIMIT_CPU_MIN_MILLI)
		return "max-cpu is out of range";
	if (s->def.cpu_time_us > LIMIT_TIMEOUT_MAX_US || s->max.cpu_time_us > LIMIT_TIMEOUT_MAX_US)
		return "cpu_time is out of range";
	if (s->network_why >= NETWORK_WHY_MAX)
		return "network_why is none";
	if (s->uid_range_taken > 1)
		return "uid_range_taken is neither 0 nor 1";
	return NULL;
}

static const char *defaults_fault(const struct settings *s)
{
	if (s->def.timeout_us > s->max.timeout_us)
		return "timeout is above max-timeout";
	if (s->def.memory_bytes > s->max.memory_bytes)
		return "memory is above max-memory";
	if (s->def.cpu_milli > s->max.cpu_milli)
		return "cpu is above max-cpu";
	if (s->def.pids > s->max.pids)
		return "pids is above max-pids";
	/* A zygote must not be worn before the pool is full: it would be replaced for ever. */
	if (s->zygote_max_forks < UINT64_C(2) * s->pool_size + 1)
		return "zygote-max-forks is below twice pool-size";
	return NULL;
}

/* In a path that begins with "/". */
static bool has_dot_dot(const char *path)
{
	for (const char *p = path + 1; (p = strstr(p, "..")); p += 2)
		if (p[-1] == '/' && (p[2] == '/' || p[2] == '\0'))
			return true;
	return false;
}

static bool is_clean_path(const char *path)
{
	return path[0] == '/' && path[1] != '\0' && !strstr(path, "//") && !has_dot_dot(path);
}

static bool are_texts(const char (*texts)[RUNTIME_PATH_MAX], size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!is_text(texts[i], RUNTIME_PATH_MAX))
			return false;
	return true;
}

static bool is_main_file(const char *name)
{
	return name[0] != '\0' && name[0] != '.' && !strchr(name, '/');
}

/* None of the lists may be read past its end. */
static const char *runtime_texts_fault(const struct runtime *r)
{
	if (!is_text(r->name, sizeof(r->name)) || r->name[0] == '\0')
		return "runtime: name is missing";
	if (!is_text(r->version, sizeof(r->version)))
		return "runtime: version is not terminated";
	if (!is_text(r->main_file, sizeof(r->main_file)) || !is_main_file(r->main_file))
		return "runtime: main-file is not a plain file name";
	if (!are_texts(r->argv, RUNTIME_ARGV_MAX) || !are_texts(r->env, RUNTIME_ENV_MAX) ||
		!are_texts(r->roots, RUNTIME_ROOTS_MAX))
		return "runtime: a text is not terminated";
	return NULL;
}

/* Paths that the supervisor opens on the host must not be able to climb. */
static const char *runtime_lists_fault(const struct runtime *r)
{
	if (!is_clean_path(r->argv[0]))
		return "runtime: argv does not begin with an absolute path";
	for (size_t i = 0; i < RUNTIME_ENV_MAX && r->env[i][0]; i++)
		if (r->env[i][0] == '=' || !strchr(r->env[i], '='))
			return "runtime: an entry of env is not NAME=VALUE";
	for (size_t i = 0; i < RUNTIME_ROOTS_MAX && r->roots[i][0]; i++)
		if (!is_clean_path(r->roots[i] + (r->roots[i][0] == RUNTIME_OPTIONAL)))
			return "runtime: an entry of roots is not an absolute path";
	return NULL;
}

const char *runtime_fault(const struct runtime *r)
{
	const char *why = runtime_texts_fault(r);

	if (!why)
		why = runtime_lists_fault(r);
	if (!why && (r->full_proc > 1 || r->reports > 1))
		why = "runtime: a flag is neither 0 nor 1";
	return why;
}

const char *settings_fault(const struct settings *s)
{
	const char *why = ranges_fault(s);

	if (!why)
		why = defaults_fault(s);
	if (!why && !s->insecure && !listen_is_local(&s->listen))
		why = "listen is beyond loopback and insecure is not set";
	if (!why)
		why = runtime_fault(&s->runtime);
	if (!why && s->runtime.roots[0][0] == '\0')
		why = "runtime: roots is empty";
	return why;
}
