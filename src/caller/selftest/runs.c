/* The programs of the self-test, one after the other in cells of one session. */
#include "caller/selftest/selftest.h"

#include "base/check.h"
#include "base/clock.h"
#include "base/own.h"
#include "caller/selftest/calls.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <unistd.h>

/* The programs, carried in this one (src/caller/meson.build). */
#define X(name, file) extern const unsigned char selftest_##file##_start[], selftest_##file##_end[];
SELFTEST_PROGRAMS(X)
#undef X
extern const unsigned char selftest_prelude_start[], selftest_prelude_end[];

#define MIB          (UINT64_C(1) << 20)
#define GUARD_MS     5000   /* after a run's own deadline; then this process ends it */
#define HANG_US      800000 /* long enough to begin and say so */
#define SLACK_US     1000000
#define CPU_SLACK    100000 /* one quota period */
#define SPIN_MILLI   100
#define OUTPUT_CAP   65536
#define FLOOD_MIB    4
#define HOARD_LIMIT  (32 * MIB)
#define CALLER_LEAST 100
#define USUAL_US     1000000 /* the first program takes half of that where nothing else runs */
#define SLOWER_FIRST 3
#define SLOWER_MAX   15       /* an emulated machine */
#define TIMEOUT_MAX  60000000 /* max-timeout of the session */
#define CLONE3       435

struct run {
	enum selftest_source source;
	const char *word; /* the facts about its end are "WORD.verdict" and so on */
	const unsigned char *begin, *end;
	uint64_t timeout_us, memory_bytes, cpu_time_us;
	uint32_t cpu_milli, pids;
	unsigned mib;        /* given to the program */
	bool stopped, leave; /* given to the program */
	void (*judge)(struct selftest *s, const struct gbx_result *r, uint64_t took_us);
};

/* ---- what each run's end says ---- */

static void say_left(struct selftest *s, const char *word)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s.left", word);
	selftest_sayf(s, name, "%u", selftest_host_left(s));
}

static void end_files(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)r;
	(void)took_us;
	selftest_host_visitors(s);
}

static void end_hoard(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)took_us;
	selftest_sayf(s, "hoard.peak", "%s",
		r->memory_peak_bytes > 0 && r->memory_peak_bytes <= HOARD_LIMIT + 8 * MIB
			? "bounded"
			: "beyond");
	say_left(s, "hoard");
}

/* Either the tmpfs was full, or the files counted as the memory that they are. */
static void end_store(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)took_us;
	selftest_sayf(s, "store.verdict", "%s",
		r->status == GBX_MEMORY_EXCEEDED ||
				(r->out.bytes && strstr(r->out.bytes, "\"got\": \"ENOSPC\""))
			? "bounded"
			: "unbounded");
}

static void end_spin(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)took_us;
	selftest_sayf(s, "spin.share", "%s",
		r->cpu_us <= r->wall_us * SPIN_MILLI / 1000 + CPU_SLACK ? "bounded" : "beyond");
	if (r->throttled_us == 0 && r->cpu_us < r->wall_us * SPIN_MILLI / 1000)
		selftest_impossible(
			s, "spin.throttled", "the host is too busy to give it its share");
	else
		selftest_sayf(s, "spin.throttled", "%s", r->throttled_us > 0 ? "yes" : "no");
}

static void end_spawn(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)took_us;
	selftest_sayf(s, "spawn.refused", "%s", r->pids_refused > 0 ? "yes" : "no");
}

static void end_linger(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)r;
	(void)took_us;
	say_left(s, "linger");
}

static void end_leave(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)r;
	(void)took_us;
	say_left(s, "leave");
}

static void end_mark(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)r;
	(void)took_us;
	say_left(s, "mark");
}

/* Deadlines are for programs that have begun: where that takes longer, they are later. */
static uint64_t timeout_of(const struct selftest *s, const struct run *run)
{
	uint64_t us = run->timeout_us * s->slower;

	return us < TIMEOUT_MAX ? us : TIMEOUT_MAX;
}

static void end_look(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	uint64_t slower = 1 + took_us / USUAL_US;

	(void)r;
	s->slower = slower < SLOWER_MAX ? (unsigned)slower : SLOWER_MAX;
}

static void end_hang(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	selftest_sayf(s, "hang.time", "%s",
		took_us <= r->setup_us + (HANG_US + SLACK_US) * s->slower ? "bounded" : "late");
	selftest_sayf(s, "hang.stdout", "%s",
		r->out.bytes && strstr(r->out.bytes, "hang.began") ? "kept" : "lost");
}

static void end_flood(struct selftest *s, const struct gbx_result *r, uint64_t took_us)
{
	(void)took_us;
	selftest_sayf(s, "flood.stdout.kept", "%zu", r->out.len);
	selftest_sayf(s, "flood.stdout.total", "%lu", (unsigned long)r->out.total);
	selftest_sayf(s, "flood.stdout.dropped", "%s",
		r->out.dropped == r->out.total - r->out.len ? "exact" : "wrong");
	selftest_sayf(s, "flood.stderr.kept", "%zu", r->err.len);
	selftest_sayf(s, "flood.stderr.total", "%lu", (unsigned long)r->err.total);
}

/* Facts of the two runs of one program are of different probes: SOURCE tells them apart. */
#define FROM(file) selftest_##file##_start, selftest_##file##_end
static const struct run runs[] = {
	{ SELFTEST_LOOK, "look", FROM(look), .timeout_us = 20000000, .judge = end_look },
	{ SELFTEST_CALLS, "calls", FROM(calls), .timeout_us = 20000000 },
	{ SELFTEST_FILES, "files", FROM(files), .timeout_us = 20000000, .judge = end_files },
	{ SELFTEST_MARK, "mark", FROM(mark), .timeout_us = 4000000, .judge = end_mark },
	{ SELFTEST_MARK_2, "mark_2", FROM(mark), .timeout_us = 4000000 },
	{ SELFTEST_HOARD, "hoard", FROM(hoard), .timeout_us = 10000000, .memory_bytes = HOARD_LIMIT,
		.mib = 96, .judge = end_hoard },
	{ SELFTEST_HOARD_CHILD, "hoard_child", FROM(hoard_child), .timeout_us = 10000000,
		.memory_bytes = HOARD_LIMIT, .mib = 96 },
	{ SELFTEST_STORE, "store_run", FROM(store), .timeout_us = 10000000,
		.memory_bytes = HOARD_LIMIT, .mib = 96, .judge = end_store },
	{ SELFTEST_INODES, "inodes", FROM(inodes), .timeout_us = 20000000 },
	{ SELFTEST_SPIN, "spin", FROM(spin), .timeout_us = 800000, .cpu_milli = SPIN_MILLI,
		.judge = end_spin },
	{ SELFTEST_SPAWN, "spawn", FROM(spawn), .timeout_us = 20000000, .pids = 8,
		.judge = end_spawn },
	{ SELFTEST_LINGER, "linger", FROM(linger), .timeout_us = 1000000, .judge = end_linger },
	{ SELFTEST_LEAVE, "leave", FROM(linger), .timeout_us = 4000000, .leave = true,
		.judge = end_leave },
	{ SELFTEST_HANG, "hang", FROM(hang), .timeout_us = HANG_US, .judge = end_hang },
	{ SELFTEST_STOP, "stop", FROM(hang), .timeout_us = HANG_US, .stopped = true },
	{ SELFTEST_BUDGET, "budget", FROM(spin), .timeout_us = 10000000, .cpu_time_us = 300000 },
	{ SELFTEST_FLOOD, "flood", FROM(flood), .timeout_us = 20000000, .mib = FLOOD_MIB,
		.judge = end_flood },
	{ SELFTEST_FORGE, "forge", FROM(forge), .timeout_us = 20000000 },
};
_Static_assert(ARRAY_LEN(runs) == SELFTEST_HOST, "a run for each program");

/* ---- a run that nobody ends is ended here ---- */

static struct gbx_session *volatile guarded;
static volatile pid_t guarded_pid;
static volatile sig_atomic_t guard_stage;

static void on_alarm(int number)
{
	const struct itimerval again = { .it_value = { .tv_sec = 1 } };

	(void)number;
	if (guard_stage++ == 0) {
		gbx_cancel(guarded);
		(void)setitimer(ITIMER_REAL, &again, NULL);
	} else if (guarded_pid > 0) {
		(void)kill(guarded_pid, SIGKILL); /* and with it everything that it made */
	}
}

static void guard(struct selftest *s, uint64_t ms)
{
	const struct sigaction on = { .sa_handler = on_alarm, .sa_flags = SA_RESTART };
	const struct itimerval at = { .it_value = { .tv_sec = (time_t)(ms / 1000),
					      .tv_usec = (suseconds_t)(ms % 1000 * 1000) } };

	if (ms > 0) {
		guarded = s->session;
		guarded_pid = selftest_host_supervisor();
		guard_stage = 0;
		(void)sigaction(SIGALRM, &on, NULL);
	}
	(void)setitimer(ITIMER_REAL, &at, NULL);
}

/* ---- one run ---- */

struct talk {
	struct selftest *s;
	const struct run *run;
	int input_fd; /* the write end of the program's stdin */
	char line[512];
	size_t len;
	bool overlong;
};

/* The program stands still until it is told to go on. */
static void on_ready(struct talk *t)
{
	if (t->run->source == SELFTEST_LOOK)
		selftest_host_look(t->s);
	if (t->run->source == SELFTEST_LEAVE)
		selftest_sayf(
			t->s, "leave.seen", "%s", selftest_host_living(t->s) == 4 ? "yes" : "no");
	(void)!write(t->input_fd, "go\n", 3);
}

static void on_line(struct talk *t)
{
	json_t *line = json_loadb(t->line, t->len, JSON_REJECT_DUPLICATES, NULL);
	const char *name = json_string_value(json_object_get(line, "probe"));
	const char *got = json_string_value(json_object_get(line, "got"));

	/* Those of which it is asked later what is left wait with their first word. */
	if (t->s->cell.pid == 0)
		selftest_host_find(t->s);
	if (name && got && strcmp(name, "ready") == 0)
		on_ready(t);
	else if (name && got)
		selftest_say(t->s, t->run->source, name, got);
	json_decref(line);
}

static void on_output(void *context, int stream, const void *bytes, size_t len)
{
	struct talk *t = context;
	const char *p = bytes;

	for (; stream == GBX_STDOUT && len > 0; p++, len--) {
		if (*p == '\n') {
			if (!t->overlong)
				on_line(t);
			t->len = 0;
			t->overlong = false;
		} else if (t->len < sizeof(t->line)) {
			t->line[t->len++] = *p;
		} else {
			t->overlong = true;
		}
	}
}

static json_t *calls_list(void)
{
	json_t *list = json_array();

#define X(name, number, args, expected) \
	(void)json_array_append_new(list, json_pack("[s, I, s]", name, (json_int_t)(number), args));
	SELFTEST_CALLS(X)
#undef X
	return list;
}

static json_t *covers_list(void)
{
	json_t *list = json_array();

#define X                 json_array_append_new
#define ROW(append, name) (void)append(list, json_string(name));
	SELFTEST_COVERS(ROW, X)
#undef ROW
#undef X
	return list;
}

/* A low number may be one of the cell's own processes; the parent's is no better then. */
static json_int_t caller(void)
{
	return getpid() > CALLER_LEAST ? getpid() : CALLER_LEAST;
}

/* The first line of the program's stdin. */
static char *given(const struct selftest *s, const struct run *run)
{
	struct utsname host;
	json_t *all;
	char *text;

	if (uname(&host) < 0)
		return NULL;
	all = json_pack("{s:s, s:I, s:s, s:I, s:o, s:o, s:[I, I], s:I, s:b, s:b, s:s}", "canary",
		s->canary, "tcp", (json_int_t)s->tcp_port, "abstract", s->abstract, "caller",
		caller(), "calls", calls_list(), "proc", covers_list(), "clones",
		(json_int_t)SYS_clone, (json_int_t)CLONE3, "mib", (json_int_t)run->mib, "stopped",
		run->stopped, "leave", run->leave, "machine", host.machine);
	text = all ? json_dumps(all, JSON_COMPACT) : NULL;
	json_decref(all);
	return text;
}

static char *program_of(const struct run *run, size_t *ret_len)
{
	size_t head = (size_t)(selftest_prelude_end - selftest_prelude_start);
	size_t rest = (size_t)(run->end - run->begin);
	char *code = malloc(head + rest);

	if (!code)
		return NULL;
	memcpy(code, selftest_prelude_start, head);
	memcpy(code + head, run->begin, rest);
	*ret_len = head + rest;
	return code;
}

static void say_verdict(struct selftest *s, const struct run *run, const struct gbx_result *r)
{
	char name[32];

	(void)snprintf(name, sizeof(name), "%s.verdict", run->word);
	selftest_sayf(s, name, "%s %s %d", gbx_status_word(r->status), gbx_cause_word(r->cause),
		r->exit_code);
}

/* The pipe holds 64 KiB: the line must fit, because nobody reads until the program runs. */
static int open_input(const struct selftest *s, const struct run *run, int ret_fds[2])
{
	cleanup_free char *line = given(s, run);
	size_t len = line ? strlen(line) : 0;

	if (!line || pipe2(ret_fds, O_CLOEXEC) < 0)
		return -ENOMEM;
	if (fcntl(ret_fds[1], F_SETFL, O_NONBLOCK) < 0 || write(ret_fds[1], line, len) < 0 ||
		write(ret_fds[1], "\n", 1) < 0)
		return -errno;
	return 0;
}

static int run_request(struct selftest *s, const struct run *run, struct talk *t, int input_fd,
	struct gbx_error *why)
{
	CLEANUP(gbx_result_clear) struct gbx_result result = { .size = sizeof(result) };
	struct gbx_request q = {
		.size = sizeof(q),
		.flags = GBX_INPUT_FD,
		.timeout_us = timeout_of(s, run),
		.memory_bytes = run->memory_bytes,
		.cpu_time_us = run->cpu_time_us,
		.cpu_milli = run->cpu_milli,
		.pids = run->pids,
		.input_fd = input_fd,
		.on_output = on_output,
		.context = t,
	};
	cleanup_free char *code = program_of(run, &q.code_len);
	uint64_t began = clock_ns(), took_us;
	int r;

	if (!code)
		return -ENOMEM;
	q.code = code;
	guard(s, timeout_of(s, run) / 1000 + (uint64_t)GUARD_MS * s->slower);
	r = gbx_run(s->session, &q, &result, why);
	guard(s, 0);
	took_us = (clock_ns() - began) / NS_PER_US;
	/* What had to be ended from here is a finding, not a failure to find out. */
	if (r < 0)
		return guard_stage > 0 ? 0 : r;
	say_verdict(s, run, &result);
	if (run->judge)
		run->judge(s, &result, took_us);
	return 0;
}

static int run_one(struct selftest *s, const struct run *run, struct gbx_error *why)
{
	struct talk t = { .s = s, .run = run, .input_fd = -1 };
	int fds[2] = { -1, -1 }, r;

	r = open_input(s, run, fds);
	t.input_fd = fds[1];
	s->cell.pid = 0;
	s->cell.stdin_inode = 0;
	if (r == 0)
		r = run_request(s, run, &t, fds[0], why);
	drop_fd(&fds[0]);
	drop_fd(&fds[1]);
	return r;
}

static int run_way(struct selftest *s, struct gbx_error *why)
{
	int r = 0;

	s->slower = SLOWER_FIRST; /* until the first program has shown it */
	for (size_t i = 0; r == 0 && i < ARRAY_LEN(runs); i++) {
		if (!s->session)
			r = gbx_open(&s->options, &s->session, why);
		if (r == 0 && !s->canary[0])
			r = selftest_host_open(s);
		if (r == 0)
			r = run_one(s, &runs[i], why);
		if (guard_stage > 0) {
			gbx_close(s->session);
			s->session = NULL;
			guard_stage = 0;
		}
	}
	gbx_close(s->session);
	s->session = NULL;
	if (r == 0)
		selftest_host_end(s);
	return r;
}

int selftest_run_all(struct selftest *s, struct gbx_error *why)
{
	int r;

	s->way = SELFTEST_COLD;
	r = run_way(s, why);
	if (r < 0 || s->cold_only)
		return r;
	s->way = SELFTEST_WARM;
	s->options.flags |= GBX_READY_CELLS;
	return run_way(s, why);
}
