#include "api/denials.h"

#include "api/denied_calls.h"
#include "api/fields.h"
#include "base/check.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#define HELD_PART     4 /* held back for that part of its time or more: cpu_limit is the reason */
#define FILES_PART    4 /* files took that part of its memory or more: they are the reason */
#define SAID_LINE_MAX 1024 /* of error output that is looked at; longer lines from behind */

/* Node.js writes its version behind the error that has ended a program: what stands before that
 * line counts as its last one. */
#define NODE_MARK      "Node.js v"
#define NODE_ERROR_MAX 3072

#define NOT_EXECUTABLE_STATUS 126 /* a shell's */

/* What the program has written only says what it says: such rows never stand beside a counted one
 * of their layer. */
enum evidence {
	COUNTED, /* by the kernel or by Glovebox */
	SAID     /* in the last line of the program's error output, or what counts as that */
};

struct row {
	const char *layer, *what;
	enum evidence evidence;
	enum api_meaning limit; /* the field that would have given more; API_FIELDS: none would */
	const char *happened, *advice; /* the hint; the advice only if the field cannot be raised */
};

/* Kinds of denial, the one that matters most first: what has ended a run comes before what it
 * has survived, and that before what was only said. */
enum kind {
	CPU_TIME,
	CPU_HELD,
	WALL_CLOCK,
	MEMORY_FILES,
	MEMORY,
	PIDS,
	NETWORK,
	GATE,
	CALL, /* `what` is its name */
	FILE_SIZE,
	NO_ROOM_SHM, /* as enum scratch_dir */
	NO_ROOM_TMP,
	NO_ROOM_WORKSPACE,
	NO_FILES_SHM,
	NO_FILES_TMP,
	NO_FILES_WORKSPACE,
	OUTPUT_OUT,
	OUTPUT_ERR,
	SAID_READ_ONLY,
	SAID_NAME,
	SAID_NETWORK,
	SAID_NO_ROOM,
	SAID_FILE_SIZE,
	SAID_MEMORY,
	KINDS
};

#define NO_NETWORK                                                                                \
	"this run has no network",                                                                \
		"put what the program needs into its code, or set allow_network, which a server " \
		"refuses where fixed.network of GET /limits is false"
#define NO_ROOM(path)                                                          \
	"disk", "no room left in " path, COUNTED, API_MEMORY,                  \
		"a directory was full: it holds no more than memory_limit_mb", \
		"write less, or delete what is no longer needed"
#define NO_FILES(path)                                                                         \
	"disk", "no more files in " path, COUNTED, API_FIELDS,                                 \
		"a directory holds as many files as it may (workspace_inodes of GET /limits)", \
		"make fewer files, or delete what is no longer needed"
#define LESS_OUTPUT                                                     \
	"it wrote more than output_bytes, and the middle was not kept", \
		"print less: only what matters, or the end of it"

/* clang-format off */
static const struct row rows[KINDS] = {
	[CPU_TIME] = { "cpu_time", "ended at cpu_time_seconds", COUNTED, API_CPU_TIME,
		"its CPU time was used up", "do less in one run" },
	[CPU_HELD] = { "cpu", "milliseconds held back by cpu_limit", COUNTED, API_CPU,
		"cpu_limit held it back until its time was up", "do less in one run" },
	[WALL_CLOCK] = { "wall_clock", "ended at timeout_seconds", COUNTED, API_TIMEOUT,
		"its time was up", "do less in one run" },
	[MEMORY_FILES] = { "memory", "processes killed at memory_limit_mb", COUNTED, API_MEMORY,
		"it used more memory than it may, and much of that were files in /workspace, /tmp or "
		"/dev/shm, which count as memory", "keep fewer files" },
	[MEMORY] = { "memory", "processes killed at memory_limit_mb", COUNTED, API_MEMORY,
		"it used more memory than it may", "hold less in memory at one time" },
	[PIDS] = { "pids", "new processes or threads refused", COUNTED, API_PIDS,
		"it wanted more processes or threads than it may have", "use fewer workers" },
	[NETWORK] = { "network", "attempts to reach an address outside", COUNTED, API_FIELDS,
		NO_NETWORK },
	[GATE] = { "network", "packets and look-ups that its rules do not allow", COUNTED, API_FIELDS,
		"it tried to reach what it may not reach", "network.connections of the reply lists each "
		"with the reason" },
	[CALL] = { "seccomp", "other system calls", COUNTED, API_FIELDS,
		"it made a system call that is denied to every program here",
		"there is no setting for it: do without it" },
	[FILE_SIZE] = { "disk", "ended by a file that was too large", COUNTED, API_MEMORY,
		"a file can be no larger than memory_limit_mb", "write smaller files" },
	[NO_ROOM_SHM] = { NO_ROOM("/dev/shm") },
	[NO_ROOM_TMP] = { NO_ROOM("/tmp") },
	[NO_ROOM_WORKSPACE] = { NO_ROOM("/workspace") },
	[NO_FILES_SHM] = { NO_FILES("/dev/shm") },
	[NO_FILES_TMP] = { NO_FILES("/tmp") },
	[NO_FILES_WORKSPACE] = { NO_FILES("/workspace") },
	[OUTPUT_OUT] = { "output", "bytes of stdout dropped", COUNTED, API_FIELDS, LESS_OUTPUT },
	[OUTPUT_ERR] = { "output", "bytes of stderr dropped", COUNTED, API_FIELDS, LESS_OUTPUT },
	[SAID_READ_ONLY] = { "read_only", "writes to a read-only path", SAID, API_FIELDS,
		"its error output says that it wrote where nothing can be written",
		"write below /workspace or /tmp" },
	[SAID_NAME] = { "network", "look-ups of a name", SAID, API_FIELDS,
		"its error output says that it looked up a name; " NO_NETWORK },
	[SAID_NETWORK] = { "network", "attempts to reach an address outside", SAID, API_FIELDS,
		"its error output says that it tried to reach an address; " NO_NETWORK },
	[SAID_NO_ROOM] = { "disk", "writes without room", SAID, API_MEMORY,
		"its error output says that a directory was full: it holds no more than "
		"memory_limit_mb and workspace_inodes of GET /limits",
		"write less, or delete what is no longer needed" },
	[SAID_FILE_SIZE] = { "disk", "files that were too large", SAID, API_MEMORY,
		"its error output says that a file was too large: it can be no larger than "
		"memory_limit_mb", "write smaller files" },
	[SAID_MEMORY] = { "memory", "requests for memory refused", SAID, API_MEMORY,
		"its error output says that it asked for more memory than there is",
		"hold less in memory at one time" },
};

/* The kernel's and the C library's words, which most programs pass on; and Node.js' own. */
static const struct {
	const char *text;
	enum kind kind;
} phrases[] = {
	{ "Read-only file system", SAID_READ_ONLY },
	{ "Name or service not known", SAID_NAME },
	{ "Temporary failure in name resolution", SAID_NAME },
	{ "Could not resolve host", SAID_NAME },
	{ "Network is unreachable", SAID_NETWORK },
	{ "No space left on device", SAID_NO_ROOM },
	{ "File too large", SAID_FILE_SIZE },
	{ "MemoryError", SAID_MEMORY },
	{ "Cannot allocate memory", SAID_MEMORY },
	{ "code: 'EROFS'", SAID_READ_ONLY },
	{ "code: 'ENOTFOUND'", SAID_NAME },
	{ "code: 'EAI_AGAIN'", SAID_NAME },
	{ "syscall: 'query", SAID_NAME },
	{ "code: 'ENETUNREACH'", SAID_NETWORK },
	{ "code: 'ENOSPC'", SAID_NO_ROOM },
	{ "code: 'EFBIG'", SAID_FILE_SIZE },
};

/* Nothing was denied, and yet there is something to know: a hint without a denial. */
#define NOT_THERE \
	"its error output says that it imported what is not there, and nothing can be installed in " \
	"a run; GET /runtimes lists the packages that are there"
#define NOEXEC \
	"nothing in /workspace, /tmp and /dev/shm can be executed; start its interpreter " \
	"instead: sh FILE, python3 FILE"
static const struct {
	const char *text, *hint;
	int status; /* of the program; 0: any */
} advices[] = {
	{ "ModuleNotFoundError: No module named", NOT_THERE, 0 },
	{ "code: 'MODULE_NOT_FOUND'", NOT_THERE, 0 },
	{ "code: 'ERR_MODULE_NOT_FOUND'", NOT_THERE, 0 },
	{ "Permission denied: '/workspace/", NOEXEC, 0 },
	{ "Permission denied: '/tmp/", NOEXEC, 0 },
	{ "Permission denied: './", NOEXEC, 0 },
	{ "Permission denied", NOEXEC, NOT_EXECUTABLE_STATUS },
};
/* clang-format on */

static const char *call_name(uint32_t number)
{
	for (size_t i = 0; i < ARRAY_LEN(denied_calls); i++) {
		if (denied_calls[i].number == number)
			return denied_calls[i].name;
	}
	return "(unknown)";
}

/* What is advised, with the numbers of this run and this server. */
static void put_hint(const struct denials_of *of, const struct row *row, char *ret, size_t room)
{
	const struct api_field *field;
	double now, most;

	if (row->limit == API_FIELDS) {
		(void)snprintf(ret, room, "%s; %s", row->happened, row->advice);
		return;
	}
	field = &api_fields[row->limit];
	now = api_field_get(field, of->limits);
	most = api_field_range(field, of->settings).most;
	if (now < most)
		(void)snprintf(ret, room, "%s; raise %s (now %.12g, at most %.12g here)",
			row->happened, field->name, now, most);
	else
		(void)snprintf(ret, room, "%s; %s (%s is %.12g, the most that this server gives)",
			row->happened, row->advice, field->name, now);
}

static struct denial *add(
	const struct denials_of *of, struct denials *d, enum kind kind, uint64_t count)
{
	const struct row *row = &rows[kind];
	struct denial *next = &d->list[d->count];

	if (count == 0 || d->count == DENIALS_MAX)
		return NULL;
	if (d->count++ == 0)
		put_hint(of, row, d->hint, sizeof(d->hint));
	*next = (struct denial){
		.layer = row->layer,
		.what = row->what,
		.count = count,
		.exact = row->evidence == COUNTED,
		.said = row->evidence == SAID,
	};
	return next;
}

/* By which limit the run was ended. */
static void find_end(const struct denials_of *of, struct denials *d)
{
	const struct msg_result *r = of->result;
	int number = run_signal((enum run_cause)r->cause, r->wait_status);
	bool late = r->cause == CAUSE_WALL_TIMEOUT;

	if (r->cause == CAUSE_CPU_TIMEOUT || number == SIGXCPU)
		(void)add(of, d, CPU_TIME, 1);
	if (late && r->throttled_us >= r->wall_us / HELD_PART)
		(void)add(of, d, CPU_HELD, r->throttled_us / 1000);
	if (late)
		(void)add(of, d, WALL_CLOCK, 1);
	if (r->denied.scratch_bytes >= of->limits->memory_bytes / FILES_PART)
		(void)add(of, d, MEMORY_FILES, r->oom_kills);
	else
		(void)add(of, d, MEMORY, r->oom_kills);
	if (number == SIGXFSZ)
		(void)add(of, d, FILE_SIZE, 1);
}

/* By name, as far as the supervisor has told them apart. */
static void find_calls(const struct denials_of *of, struct denials *d)
{
	const struct denied *seen = &of->result->denied;
	struct denial *next;

	for (unsigned i = 0; i < DENIED_CALLS_MAX; i++) {
		const char *name = call_name(seen->calls[i].number);
		bool first = d->count == 0;

		next = add(of, d, CALL, seen->calls[i].times);
		if (!next)
			continue;
		next->what = name;
		next->exact = !seen->clipped;
		if (first)
			(void)snprintf(d->hint, sizeof(d->hint),
				"%s: this system call, or what was asked of it, is denied to "
				"every program here; %s",
				name, rows[CALL].advice);
	}
	next = add(of, d, CALL, seen->other_calls);
	if (next)
		next->exact = !seen->clipped;
}

static void find_survived(const struct denials_of *of, struct denials *d)
{
	const struct msg_result *r = of->result;

	(void)add(of, d, PIDS, r->pids_refused);
	(void)add(of, d, NETWORK, of->networked ? 0 : r->denied.unrouted);
	(void)add(of, d, GATE, of->network ? of->network->refused : 0);
	find_calls(of, d);
	for (unsigned i = 0; i < SCRATCH_MAX; i++) {
		/* A directory that is full is seen once, at the end. */
		struct denial *room = add(of, d, (enum kind)(NO_ROOM_SHM + i),
			(r->denied.full & SCRATCH_NO_ROOM(i)) != 0);
		struct denial *files = add(of, d, (enum kind)(NO_FILES_SHM + i),
			(r->denied.full & SCRATCH_NO_FILES(i)) != 0);

		if (room)
			room->exact = false;
		if (files)
			files->exact = false;
	}
	(void)add(of, d, OUTPUT_OUT, of->out ? of->out->dropped : 0);
	(void)add(of, d, OUTPUT_ERR, of->err ? of->err->dropped : 0);
}

/* The last line that is not empty, or the end of it; of Node.js the error before it. Not
 * terminated. */
static const char *last_words(const struct output_view *v, size_t *ret_len)
{
	const char *begin = v->tail_len > 0 ? v->tail : v->head, *line = begin;
	size_t len = v->tail_len > 0 ? v->tail_len : v->head_len, most = SAID_LINE_MAX;
	const char *at;

	while (len > 0 && (begin[len - 1] == '\n' || begin[len - 1] == '\r'))
		len--;
	at = len > 0 ? memrchr(begin, '\n', len) : NULL;
	if (at)
		line = at + 1;
	len -= (size_t)(line - begin);
	if (at && len > strlen(NODE_MARK) && memcmp(line, NODE_MARK, strlen(NODE_MARK)) == 0) {
		len = (size_t)(line - begin);
		line = begin;
		most = NODE_ERROR_MAX;
	}
	if (len > most) {
		line += len - most;
		len = most;
	}
	*ret_len = len;
	return line;
}

static bool has_layer(const struct denials *d, const char *layer)
{
	for (unsigned i = 0; i < d->count; i++) {
		if (strcmp(d->list[i].layer, layer) == 0)
			return true;
	}
	return false;
}

static bool has_text(const char *words, size_t len, const char *text)
{
	return memmem(words, len, text, strlen(text)) != NULL;
}

/* Not of a network where it had one: then the gate's own count tells more. */
static bool is_said(const struct denials_of *of, enum kind kind, const char *words, size_t len,
	const char *text)
{
	return has_text(words, len, text) &&
	       !(of->networked && strcmp(rows[kind].layer, "network") == 0);
}

/* Only of a program that has failed: what one that has succeeded wrote is no reason. */
static void find_said(const struct denials_of *of, struct denials *d)
{
	const struct msg_result *r = of->result;
	int status = run_exit_code((enum run_cause)r->cause, r->wait_status);
	const char *words;
	size_t len;

	if (r->cause != CAUSE_EXIT || r->wait_status == 0 || !of->err)
		return;
	words = last_words(of->err, &len);
	for (size_t i = 0; len > 0 && i < ARRAY_LEN(phrases); i++) {
		if (!is_said(of, phrases[i].kind, words, len, phrases[i].text))
			continue;
		if (!has_layer(d, rows[phrases[i].kind].layer))
			(void)add(of, d, phrases[i].kind, 1);
		return;
	}
	for (size_t i = 0; d->count == 0 && len > 0 && i < ARRAY_LEN(advices); i++) {
		if (!has_text(words, len, advices[i].text) ||
			(advices[i].status && advices[i].status != status))
			continue;
		(void)snprintf(d->hint, sizeof(d->hint), "%s", advices[i].hint);
		return;
	}
}

void denials_find(const struct denials_of *of, struct denials *ret)
{
	*ret = (struct denials){ 0 };
	find_end(of, ret);
	find_survived(of, ret);
	find_said(of, ret);
	if (of->result->cause == CAUSE_COMPILE)
		(void)snprintf(ret->hint, sizeof(ret->hint),
			"no program was made and none was run; compile.stderr and compile.cause "
			"say why");
}
