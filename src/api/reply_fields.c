#include "api/reply_fields.h"

#include "base/check.h"

/* clang-format off */
const struct reply_field reply_fields[] = {
	{ REPLY_TOP, REPLY_STATUS, "status",
		"How the run ended; `success` only with exit code 0.", "\"success\"", 0 },
	{ REPLY_TOP, REPLY_STRING, "stdout",
		"What the program wrote to its standard output; bytes that are not UTF-8 appear as "
		"U+FFFD.", "\"42\\n\"", 0 },
	{ REPLY_TOP, REPLY_STRING, "stderr",
		"The same for its standard error.", "\"\"", 0 },
	{ REPLY_TOP, REPLY_INTEGER, "exit_code",
		"What a shell would see: 0-255, 128+n for a signal; 124 for `timeout`, 137 for "
		"`memory_exceeded`.", "0", 0 },
	{ REPLY_TOP, REPLY_NUMBER, "execution_time_ms",
		"From the release of the program to the death of its main process, in "
		"milliseconds.", "17.42", 0 },
	{ REPLY_TOP, REPLY_NUMBER, "memory_used_mb",
		"Most memory that the run held at one time, in MiB, by the kernel's counter that "
		"usage.memory_counter names.", "9.613", 0 },
	{ REPLY_TOP, REPLY_STRING, "id",
		"Name of this run, the same as in the server's log.", "\"r1\"", 0 },
	{ REPLY_TOP, REPLY_CAUSE, "cause",
		"Precisely what ended the run.", "\"exit\"", 0 },
	{ REPLY_TOP, REPLY_STRING_OR_NULL, "signal",
		"Name of the signal that ended the main process (`SIGSEGV`, `SIGSYS`), null when "
		"none did or when Glovebox sent it.", "null", 0 },
	{ REPLY_TOP, REPLY_OBJECT, "usage", "What the run used.", "Usage", 0 },
	{ REPLY_TOP, REPLY_OBJECT, "limits", "The limits that were in force.", "RunLimits", 0 },
	{ REPLY_TOP, REPLY_OBJECT, "output",
		"How the bytes of both streams became the two strings.", "Output", 0 },
	{ REPLY_TOP, REPLY_OBJECT, "isolation", "The cage that the run was in.", "Isolation", 0 },
	{ REPLY_TOP, REPLY_NUMBER, "queue_ms",
		"Time that the request waited for its turn, in milliseconds.", "0.05", 0 },
	{ REPLY_TOP, REPLY_STRINGS, "warnings",
		"What the caller should know although the run went on: unknown fields, dropped "
		"output, refused processes.", "[]", 0 },

	{ REPLY_USAGE, REPLY_NUMBER, "cpu_ms", "CPU time of the whole run, in milliseconds; the kernel's giving back its memory is part "
		"of it only where the end was not known before.",
		"15.2", 0 },
	{ REPLY_USAGE, REPLY_NUMBER, "user_ms", "The part of it in user mode.", "11.1", 0 },
	{ REPLY_USAGE, REPLY_NUMBER, "system_ms", "The part of it in the kernel.", "4.1", 0 },
	{ REPLY_USAGE, REPLY_NUMBER, "throttled_ms",
		"Time for which cpu_limit held the run back.", "0", 0 },
	{ REPLY_USAGE, REPLY_INTEGER, "memory_peak_bytes", "memory_used_mb in bytes.",
		"10080256", 0 },
	{ REPLY_USAGE, REPLY_STRING, "memory_counter",
		"The kernel's counter behind memory_used_mb.", "\"memory.peak\"", 0 },
	{ REPLY_USAGE, REPLY_INTEGER_OR_NULL, "pids_peak",
		"Most tasks at one time; null where the kernel does not say.", "1", 0 },
	{ REPLY_USAGE, REPLY_INTEGER, "pids_refused",
		"New processes and threads that pids_limit refused.", "0", 0 },
	{ REPLY_USAGE, REPLY_INTEGER, "oom_kills",
		"Processes that the kernel killed at memory_limit_mb.", "0", 0 },
	{ REPLY_USAGE, REPLY_INTEGER, "minor_faults", "Page faults without input.", "950", 0 },
	{ REPLY_USAGE, REPLY_INTEGER, "major_faults", "Page faults that read from disk.", "0", 0 },
	{ REPLY_USAGE, REPLY_NUMBER, "setup_ms",
		"Making the cage, before the program was released.", "6.3", 0 },
	{ REPLY_USAGE, REPLY_NUMBER, "teardown_ms",
		"From the end of the main process to the end of all the others.", "0.4", 0 },

	{ REPLY_STREAM, REPLY_INTEGER, "bytes", "Bytes that the program wrote.", "3", 0 },
	{ REPLY_STREAM, REPLY_INTEGER, "kept", "Bytes in the string.", "3", 0 },
	{ REPLY_STREAM, REPLY_INTEGER, "dropped",
		"Bytes that were not kept; bytes = kept + dropped.", "0", 0 },
	{ REPLY_STREAM, REPLY_INTEGER, "head_bytes",
		"Kept bytes in front of the gap, when some were dropped.", "3", 0 },
	{ REPLY_STREAM, REPLY_STRING, "encoding",
		"`utf-8`, or `binary` when the kept bytes are not valid UTF-8.", "\"utf-8\"", 0 },
	{ REPLY_STREAM, REPLY_STRING, "base64",
		"The kept bytes exactly; only there when the encoding is `binary`.", "\"/w==\"", 1 },

	{ REPLY_ISOLATION, REPLY_STRINGS, "layers", "Layers of the cage in force.",
		"[\"seccomp\"]", 0 },
	{ REPLY_ISOLATION, REPLY_STRINGS, "degraded",
		"Layers that the operator allowed to be missing, and that are.", "[]", 0 },
	{ REPLY_ISOLATION, REPLY_STRING, "cgroup",
		"Version of the control group that bounds memory.", "\"v2\"", 0 },

	{ REPLY_HEALTH, REPLY_STRING, "status", "`ok`, `degraded` (it answers, but without a warm interpreter) or `unavailable`.", "\"ok\"", 0 },
	{ REPLY_HEALTH, REPLY_BOOLEAN, "ready", "Whether a run would start now.", "true", 0 },
	{ REPLY_HEALTH, REPLY_STRING_OR_NULL, "why", "Why it is not ready.", "null", 0 },
	{ REPLY_HEALTH, REPLY_STRING, "version", "Version of the server.", "\"0.1.0\"", 0 },
	{ REPLY_HEALTH, REPLY_STRINGS, "layers", "Layers of the cage in force.",
		"[\"seccomp\"]", 0 },
	{ REPLY_HEALTH, REPLY_STRINGS, "degraded",
		"Layers that the operator allowed to be missing, and that are.", "[]", 0 },
	{ REPLY_HEALTH, REPLY_STRING, "cgroup",
		"Version of the control group that bounds memory.", "\"v2\"", 0 },
	{ REPLY_HEALTH, REPLY_STRINGS, "warnings", "What the operator should see to.", "[]", 0 },
	{ REPLY_HEALTH, REPLY_INTEGER, "running", "Runs under way.", "0", 0 },
	{ REPLY_HEALTH, REPLY_INTEGER, "queued", "Requests that wait for their turn.", "0", 0 },
	{ REPLY_HEALTH, REPLY_INTEGER, "slots", "Runs that may be under way at one time.", "4", 0 },
	{ REPLY_HEALTH, REPLY_INTEGER, "ready_cells", "Cells that wait for a program.", "8", 0 },
	{ REPLY_HEALTH, REPLY_INTEGER, "pool_size", "Ready cells that are kept ahead.", "8", 0 },
	{ REPLY_HEALTH, REPLY_STRING, "warm",
		"How interpreters are started: `on`, forked from a warm one; `starting`, cold until "
		"that is there; `lost`, cold because it is not; `off`, cold as configured.",
		"\"on\"", 0 },
	{ REPLY_HEALTH, REPLY_INTEGER, "generation", "Number of the warm interpreter; 0: none.",
		"1", 0 },
	{ REPLY_HEALTH, REPLY_STRING_OR_NULL, "warm_why", "Why `warm` is `lost`.", "null", 0 },

	{ REPLY_FIXED, REPLY_INTEGER, "code_bytes", "Largest program.", "2097152", 0 },
	{ REPLY_FIXED, REPLY_INTEGER, "body_bytes", "Largest request body.", "4194304", 0 },
	{ REPLY_FIXED, REPLY_INTEGER, "output_bytes", "Bytes kept of each output stream.",
		"1048576", 0 },
	{ REPLY_FIXED, REPLY_INTEGER, "workspace_inodes",
		"Files and directories that a run may make.", "4096", 0 },
	{ REPLY_FIXED, REPLY_INTEGER, "max_runs", "Runs that may be under way at one time.", "4", 0 },
	{ REPLY_FIXED, REPLY_INTEGER, "max_queue", "Requests that may wait for their turn.", "64", 0 },
	{ REPLY_FIXED, REPLY_BOOLEAN, "network", "Whether allow_network may be true.", "false", 0 },
};
/* clang-format on */

const size_t reply_fields_len = ARRAY_LEN(reply_fields);

const char *reply_group_name(enum reply_group group)
{
	static const char *const names[] = {
		[REPLY_TOP] = "ExecutionResponse",
		[REPLY_USAGE] = "Usage",
		[REPLY_STREAM] = "StreamOutput",
		[REPLY_ISOLATION] = "Isolation",
		[REPLY_HEALTH] = "Health",
		[REPLY_FIXED] = "FixedLimits",
	};

	CHECK((size_t)group < ARRAY_LEN(names));
	return names[group];
}
