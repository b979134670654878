#include "api/fields.h"

#include "base/check.h"

#include <string.h>

#define MIB 1048576.0

/* clang-format off */
const struct api_field api_fields[API_FIELDS] = {
	[API_CODE] = { API_CODE, API_STRING, true, "code", "Code",
		"The program, run as `python3 main.py` (or as its `language` says) in a working "
		"directory that holds nothing else but `files`. Any Unicode text. Exactly one of "
		"`code` and `entry_point`.",
		"\"print(6 * 7)\"", 0 },
	[API_LANGUAGE] = { API_LANGUAGE, API_NAME, false, "language", "Language",
		"The language of the program: a name or an alias of `GET /runtimes`. It decides "
		"what the file of the program is called, how it is started, and which limits hold "
		"where the request names none.",
		"\"python\"", 0 },
	[API_IMAGE] = { API_IMAGE, API_NAME, false, "image", "Image",
		"The image that the program runs in, in the place of a `language`: one of the "
		"server's store (`glovebox image list`). It has its own interpreter, and may have "
		"limits of its own that hold where the request names none: `GET /runtimes`.",
		"\"python-data\"", 0 },
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
		"Whether the program may reach the internet: public addresses, through a gate that lists "
		"connections in the reply. Refused where `fixed.network` of GET /limits is false.",
		"false", 0 },
	[API_NETWORK_POLICY] = { API_NETWORK_POLICY, API_POLICY, false, "network", "Network",
		"What the program may reach, below what the operator allows; asks for a network, as "
		"`allow_network` does. `allow` and `deny`: rules, at most 64 each, of the form "
		"`example.org`, `*.example.org`, `203.0.113.7`, `2001:db8::/32` or `*`, with `:443` or "
		"`:8000-8999` behind it, and an IPv6 address then in brackets. `deny` goes first; "
		"without `allow` everything is allowed, and with an empty one nothing. "
		"`max_connections` at the same time, `max_bytes` and `max_rate`, bytes a second, in "
		"both directions together.",
		"{\"allow\":[\"example.org:443\",\"*.example.org:443\"],\"max_bytes\":1048576}", 0 },
	[API_PIDS] = { API_PIDS, API_INTEGER, false, "pids_limit", "Pids Limit",
		"Processes and threads that the program may have at the same time.",
		"32", 1 },
	[API_CPU_TIME] = { API_CPU_TIME, API_NUMBER, false, "cpu_time_seconds", "Cpu Time Seconds",
		"CPU time of the whole run after which it is ended, in seconds. Without it "
		"only timeout_seconds bounds the run.",
		"2.5", 1e6 },
	[API_STDIN] = { API_STDIN, API_STRING, false, "stdin", "Stdin",
		"What the program reads from its standard input, a pipe that then ends. Without "
		"it the pipe is at its end from the start.",
		"\"1 2 3\\n\"", 0 },
	[API_STDIN_ENCODING] = { API_STDIN_ENCODING, API_ENCODING, false, "stdin_encoding",
		"Stdin Encoding",
		"How `stdin` stands in the request: as text, or as the base64 of any bytes.",
		"\"utf8\"", 0 },
	[API_INPUT_ARGS] = { API_INPUT_ARGS, API_STRINGS, false, "args", "Args",
		"Arguments of the program, behind its name (`sys.argv[1:]`). At most 256, and "
		"65,536 bytes together, each with the NUL behind it.",
		"[\"--verbose\",\"in.csv\"]", 0 },
	[API_INPUT_ENV] = { API_INPUT_ENV, API_VARIABLES, false, "env", "Env",
		"Variables of the program's environment, beside those that every program has. At "
		"most 128, and 65,536 bytes together. A name has letters, digits and `_`; what is "
		"read before the program begins cannot be set: `PATH`, `HOME`, `LANG`, `LC_*`, "
		"`LD_*`, `MALLOC_*`, `PYTHON*`, `GLOVEBOX_*` and the like.",
		"{\"MODE\":\"fast\"}", 0 },
	[API_INPUT_FILES] = { API_INPUT_FILES, API_FILES, false, "files", "Files",
		"Files that lie in the working directory when the program begins, as its own. At "
		"most 1,000; with `stdin` at most `input_bytes`, and half of the run's memory.",
		"[{\"path\":\"data/in.csv\",\"content\":\"a,b\\n1,2\\n\"}]", 0 },
	[API_ENTRY_POINT] = { API_ENTRY_POINT, API_STRING, false, "entry_point", "Entry Point",
		"In the place of `code`: the path of the file of `files` that is the program.",
		"\"app/main.py\"", 0 },
	[API_REPORT] = { API_REPORT, API_BOOLEAN, false, "report", "Report",
		"Whether the interpreter tells `error`, `result` and `figures`. Without it they are "
		"null and empty, and nothing runs but the program.",
		"true", 0 },
	[API_RETURN_LAST] = { API_RETURN_LAST, API_BOOLEAN, false, "return_last", "Return Last",
		"Whether the value of the program's last statement, if that is an expression, "
		"comes back as `result`.",
		"true", 0 },
	[API_FIGURES] = { API_FIGURES, API_WORD, false, "figures", "Figures",
		"How the figures that matplotlib has open at the end come back: `png`, `svg`, `both` "
		"or `none`.",
		"\"svg\"", 0 },
	[API_OUTPUT_BYTES] = { API_OUTPUT_BYTES, API_BYTES, false, "output_bytes", "Output Bytes",
		"Most bytes that are kept of each output stream: of a longer one the first and the "
		"last half of that many.",
		"65536", 1 },
	[API_INTERLEAVED] = { API_INTERLEAVED, API_BOOLEAN, false, "interleaved", "Interleaved",
		"Whether both streams also come back as one list of timed chunks, in the order in "
		"which they were read.",
		"true", 0 },
	[API_ARTIFACTS] = { API_ARTIFACTS, API_WORD, false, "artifacts", "Artifacts",
		"What comes back of the files that are new or changed in the working directory when "
		"the run has ended: `list`, their names, sizes and digests in `files`; `inline`, "
		"also their contents, as far as they fit (`artifact_inline_bytes`); `none`, nothing.",
		"\"inline\"", 0 },
};
/* clang-format on */

bool api_field_numeric(const struct api_field *f)
{
	return f->type == API_NUMBER || f->type == API_INTEGER;
}

bool api_field_is_input(const struct api_field *f)
{
	return f->meaning >= API_STDIN && f->meaning <= API_ENTRY_POINT;
}

bool api_field_default(const struct api_field *f)
{
	return f->meaning == API_REPORT;
}

const char *const *api_field_words(const struct api_field *f)
{
	static const char *const figures[] = { "png", "svg", "both", "none", NULL };
	static const char *const artifacts[] = { "none", "list", "inline", NULL };

	CHECK(f->type == API_WORD);
	return f->meaning == API_FIGURES ? figures : artifacts;
}

const char *api_type_word(enum api_type type)
{
	static const char *const words[] = {
		[API_STRING] = "string",
		[API_NUMBER] = "number",
		[API_INTEGER] = "integer",
		[API_BYTES] = "integer",
		[API_BOOLEAN] = "boolean",
		[API_NAME] = "string",
		[API_ENCODING] = "string",
		[API_STRINGS] = "array",
		[API_VARIABLES] = "object",
		[API_FILES] = "array",
		[API_POLICY] = "object",
		[API_WORD] = "string",
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

/* The member of struct run_limits that a numeric field stands for. */
static const struct {
	size_t offset;
	size_t size; /* 0: it stands for none */
} members[API_FIELDS] = {
#define MEMBER(name)                                                                      \
	{                                                                                 \
		offsetof(struct run_limits, name), sizeof(((struct run_limits *)0)->name) \
	}
	[API_TIMEOUT] = MEMBER(timeout_us),
	[API_MEMORY] = MEMBER(memory_bytes),
	[API_CPU] = MEMBER(cpu_milli),
	[API_PIDS] = MEMBER(pids),
	[API_CPU_TIME] = MEMBER(cpu_time_us),
#undef MEMBER
};

/* The member of `l` in its own units. Below 2^53 for every value that settings allow, so
 * that a double holds it exactly. */
double api_field_get(const struct api_field *f, const struct run_limits *l)
{
	const char *at = (const char *)l + members[f->meaning].offset;
	uint64_t raw = 0;
	uint32_t narrow = 0;

	CHECK(members[f->meaning].size > 0);
	if (members[f->meaning].size == sizeof(raw)) {
		memcpy(&raw, at, sizeof(raw));
	} else {
		memcpy(&narrow, at, sizeof(narrow));
		raw = narrow;
	}
	return (double)raw / f->unit;
}

void api_field_set(const struct api_field *f, struct run_limits *l, double value)
{
	char *at = (char *)l + members[f->meaning].offset;
	uint64_t raw = (uint64_t)(value * f->unit + 0.5); /* the cast cuts */
	uint32_t narrow = (uint32_t)raw;

	CHECK(members[f->meaning].size > 0);
	if (members[f->meaning].size == sizeof(raw))
		memcpy(at, &raw, sizeof(raw));
	else
		memcpy(at, &narrow, sizeof(narrow));
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
	struct api_range r;

	if (f->type == API_BYTES)
		return (struct api_range){ 1, (double)s->output_bytes, (double)s->output_bytes,
			true };
	r = (struct api_range){
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
