#include "api/fields.h"

#include "base/check.h"

#include <string.h>

#define MIB 1048576.0

/* clang-format off */
const struct api_field api_fields[API_FIELDS] = {
	[API_CODE] = { API_CODE, API_STRING, true, "code", "Code",
		"The program, run as `python3 main.py` in an empty working directory. "
		"Any Unicode text.",
		"\"print(6 * 7)\"", 0 },
	[API_TIMEOUT] = { API_TIMEOUT, API_NUMBER, false, "timeout_seconds", "Timeout Seconds",
		"Wall-clock time after which the run is ended, in seconds.",
		"3", 1e6 },
	[API_MEMORY] = { API_MEMORY, API_NUMBER, false, "memory_limit_mb", "Memory Limit Mb",
		"Memory of the whole run, its files included, in MiB.",
		"64", MIB },
	[API_CPU] = { API_CPU, API_NUMBER, false, "cpu_limit", "Cpu Limit",
		"CPU bandwidth: 1 is one whole CPU.",
		"0.5", 1e3 },
	[API_NETWORK] = { API_NETWORK, API_BOOLEAN, false, "allow_network", "Allow Network",
		"Whether the program may reach the network. This server has no network gate: "
		"true is refused.",
		"false", 0 },
	[API_PIDS] = { API_PIDS, API_INTEGER, false, "pids_limit", "Pids Limit",
		"Processes and threads that the program may have at the same time.",
		"32", 1 },
	[API_CPU_TIME] = { API_CPU_TIME, API_NUMBER, false, "cpu_time_seconds", "Cpu Time Seconds",
		"CPU time of the whole run after which it is ended, in seconds. Without it "
		"only timeout_seconds bounds the run.",
		"2.5", 1e6 },
};
/* clang-format on */

bool api_field_numeric(const struct api_field *f)
{
	return f->type == API_NUMBER || f->type == API_INTEGER;
}

const char *api_type_word(enum api_type type)
{
	static const char *const words[] = {
		[API_STRING] = "string",
		[API_NUMBER] = "number",
		[API_INTEGER] = "integer",
		[API_BOOLEAN] = "boolean",
	};

	CHECK((size_t)type < ARRAY_LEN(words));
	return words[type];
}

const struct api_field *api_field_by_name(const char *name, size_t len)
{
	for (unsigned i = 0; i < API_FIELDS; i++) {
		if (strlen(api_fields[i].name) == len && memcmp(api_fields[i].name, name, len) == 0)
			return &api_fields[i];
	}
	return NULL;
}

/* The member of `l` in its own units. Below 2^53 for every value that settings allow, so
 * that a double holds it exactly. */
double api_field_get(const struct api_field *f, const struct run_limits *l)
{
	uint64_t raw = 0;

	switch (f->meaning) {
	case API_TIMEOUT:
		raw = l->timeout_us;
		break;
	case API_MEMORY:
		raw = l->memory_bytes;
		break;
	case API_CPU:
		raw = l->cpu_milli;
		break;
	case API_PIDS:
		raw = l->pids;
		break;
	case API_CPU_TIME:
		raw = l->cpu_time_us;
		break;
	case API_CODE:
	case API_NETWORK:
	case API_FIELDS:
	default:
		CHECK(api_field_numeric(f));
	}
	return (double)raw / f->unit;
}

void api_field_set(const struct api_field *f, struct run_limits *l, double value)
{
	double raw = value * f->unit + 0.5; /* the casts cut */

	switch (f->meaning) {
	case API_TIMEOUT:
		l->timeout_us = (uint64_t)raw;
		break;
	case API_MEMORY:
		l->memory_bytes = (uint64_t)raw;
		break;
	case API_CPU:
		l->cpu_milli = (uint32_t)raw;
		break;
	case API_PIDS:
		l->pids = (uint32_t)raw;
		break;
	case API_CPU_TIME:
		l->cpu_time_us = (uint64_t)raw;
		break;
	case API_CODE:
	case API_NETWORK:
	case API_FIELDS:
	default:
		CHECK(api_field_numeric(f));
	}
}

struct api_range api_field_range(const struct api_field *f, const struct settings *s)
{
	static const struct run_limits least = {
		.timeout_us = LIMIT_TIMEOUT_MIN_US,
		.memory_bytes = LIMIT_MEMORY_MIN_BYTES,
		.cpu_time_us = LIMIT_TIMEOUT_MIN_US,
		.cpu_milli = LIMIT_CPU_MIN_MILLI,
		.pids = LIMIT_PIDS_MIN,
	};
	struct api_range r = {
		.least = api_field_get(f, &least),
		.most = api_field_get(f, &s->max),
		.def = api_field_get(f, &s->def),
		.has_def = true,
	};

	if (f->meaning == API_CPU_TIME) {
		/* The operator has no setting for it: a budget above the longest run would
		 * bound nothing that the clock does not bound already on one CPU. */
		if (s->max.cpu_time_us == 0)
			r.most = (double)s->max.timeout_us / f->unit;
		r.has_def = s->def.cpu_time_us != 0;
	}
	return r;
}
