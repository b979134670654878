#include "edge/config/limits.h"

#include "base/fault.h"
#include "edge/config/value.h"
#include "wire/settings.h"

#include <errno.h>
#include <stdio.h>

#define OPTIONAL (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(key, member) \
	CYAML_FIELD_STRING_PTR(key, OPTIONAL, struct limits_section, member, 1, RUNTIME_NAME_MAX)

const cyaml_schema_field_t limits_section_fields[] = {
	TEXT("timeout", timeout),
	TEXT("memory", memory),
	TEXT("cpu", cpu),
	TEXT("pids", pids),
	CYAML_FIELD_END,
};

struct range {
	const char *key;
	enum value_type type;
	uint64_t least, most;
};

/* 0 stands for the server's own, and is in no range: nobody means that by writing it. */
static int take_number(const struct document *text, const struct range *range, const char *value,
	uint64_t *ret, struct fault *f)
{
	char least[VALUE_TEXT_MAX], most[VALUE_TEXT_MAX], quoted[VALUE_QUOTE_MAX];
	struct document_place at = { 0, 0 }, section;

	if (!value || (value_parse_number(range->type, value, ret) == 0 && *ret >= range->least &&
			      *ret <= range->most))
		return 0;
	section = document_find(text, "limits", true, at);
	at = document_find(text, range->key, false, section);
	if (at.line == 0) /* as {memory: 1} */
		at = section;
	return fault_say(f, -EINVAL,
		"%s line %u, column %u: limits: %s: \"%s\" is not %s, from %s to %s", text->name,
		at.line, at.column, range->key, value_quote(value, quoted),
		value_expectation(range->type), value_format(range->type, range->least, least),
		value_format(range->type, range->most, most));
}

int limits_take(const struct document *text, const struct limits_section *section,
	struct run_limits *ret, struct fault *f)
{
	static const struct range timeout = { "timeout", VALUE_DURATION, LIMIT_TIMEOUT_MIN_US,
		LIMIT_TIMEOUT_MAX_US };
	static const struct range memory = { "memory", VALUE_SIZE, LIMIT_MEMORY_MIN_BYTES,
		LIMIT_MEMORY_MAX_BYTES };
	static const struct range cpus = { "cpu", VALUE_CPUS, LIMIT_CPU_MIN_MILLI,
		LIMIT_CPU_MAX_MILLI };
	static const struct range processes = { "pids", VALUE_COUNT, LIMIT_PIDS_MIN,
		LIMIT_PIDS_MAX };
	uint64_t cpu = ret->cpu_milli, pids = ret->pids;
	int r = take_number(text, &timeout, section->timeout, &ret->timeout_us, f);

	if (r == 0)
		r = take_number(text, &memory, section->memory, &ret->memory_bytes, f);
	if (r == 0)
		r = take_number(text, &cpus, section->cpu, &cpu, f);
	if (r == 0)
		r = take_number(text, &processes, section->pids, &pids, f);
	ret->cpu_milli = (uint32_t)cpu; /* their ranges fit */
	ret->pids = (uint32_t)pids;
	return r;
}
