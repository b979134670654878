#include "priv/supervisor/submit.h"

#include "base/fault.h"
#include "base/io.h"
#include "wire/inputs.h"
#include "wire/network.h"
#include "wire/report.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* A pipe of its own, open in exactly the one direction. */
static bool is_pipe(int fd, int mode, struct stat *ret)
{
	int flags = fcntl(fd, F_GETFL);

	return flags >= 0 && !(flags & O_PATH) && (flags & O_ACCMODE) == mode &&
	       fstat(fd, ret) == 0 && S_ISFIFO(ret->st_mode);
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Memory of that very size for as long as it lives: what is written past its end is an error of
 * the writer's, and a reader can map it. */
static bool is_memory(int fd, uint64_t bytes)
{
	const int seals = F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW;
	struct stat st;
	int have = fcntl(fd, F_GET_SEALS);

	return have >= 0 && (have & seals) == seals && fstat(fd, &st) == 0 &&
	       (uint64_t)st.st_size == bytes;
}

bool submit_is_network_memory(int fd)
{
	return is_memory(fd, sizeof(struct network_memory));
}

static bool has_reserved_bits(const struct msg_submit *s)
{
	return (s->report & ~REPORT_ALL) || s->allow_network > 1 || s->part >= RUN_PART_MAX ||
	       s->collect >= COLLECT_WHEN_MAX;
}

static const char *streams_violation(const int *fds)
{
	struct stat in, out, err;

	if (!is_pipe(fds[1], O_RDONLY, &in))
		return "stdin is not the read end of a pipe";
	if (!is_pipe(fds[2], O_WRONLY, &out) || !is_pipe(fds[3], O_WRONLY, &err))
		return "stdout and stderr are not write ends of pipes";
	if (is_same(&in, &out) || is_same(&in, &err) || is_same(&out, &err))
		return "one pipe for two streams";
	return NULL;
}

const char *submit_violation(const struct msg *m)
{
	const struct msg_submit *s = &m->as.SUBMIT;
	const char *rule;
	struct stat st;
	uint64_t bytes;
	int seals = fcntl(m->fds[0], F_GET_SEALS);

	if (has_reserved_bits(s))
		return "reserved bits are set";
	if (s->part == RUN_COMPILER && s->collect != COLLECT_NEVER)
		return "a compiler leaves nothing to collect";
	if (s->part == RUN_COMPILER && s->allow_network)
		return "a compiler has no network";
	if (seals < 0 || (seals & IO_SEALS) != IO_SEALS)
		return "the code is not sealed memory";
	if (__builtin_add_overflow(s->code_bytes, s->inputs_bytes, &bytes) ||
		fstat(m->fds[0], &st) < 0 || (uint64_t)st.st_size != bytes)
		return "the code is not as long as announced";
	rule = streams_violation(m->fds);
	if (rule)
		return rule;
	if (!is_memory(m->fds[4], REPORT_BYTES))
		return "the report is not memory of its size";
	return NULL;
}

static int check(const char *name, uint64_t value, uint64_t least, uint64_t most, struct fault *f)
{
	if (value >= least && value <= most)
		return 0;
	return fault_say(f, -ERANGE, "%s: %lu is not between %lu and %lu", name,
		(unsigned long)value, (unsigned long)least, (unsigned long)most);
}

int submit_check_limits(
	const struct msg_submit *s, const struct settings *settings, struct fault *f)
{
	const struct run_limits *l = &s->limits, *max = &settings->max;
	int r = check(
		"timeout (microseconds)", l->timeout_us, LIMIT_TIMEOUT_MIN_US, max->timeout_us, f);

	if (r == 0)
		r = check("memory (bytes)", l->memory_bytes, LIMIT_MEMORY_MIN_BYTES,
			max->memory_bytes, f);
	if (r == 0)
		r = check(
			"cpu (thousandths)", l->cpu_milli, LIMIT_CPU_MIN_MILLI, max->cpu_milli, f);
	if (r == 0)
		r = check("pids", l->pids, LIMIT_PIDS_MIN, max->pids, f);
	if (r == 0)
		r = check("cpu time (microseconds)", l->cpu_time_us, 0, max->timeout_us, f);
	if (r == 0)
		r = check("code (bytes)", s->code_bytes, 0, settings->code_bytes, f);
	if (r == 0)
		r = check("inputs (bytes)", s->inputs_bytes, 0,
			settings->input_bytes + INPUTS_FRAME_MAX, f);
	if (r == 0 && s->allow_network && !settings->network)
		r = fault_say(f, -EOPNOTSUPP, "allow_network: this server gives runs no network");
	return r;
}
