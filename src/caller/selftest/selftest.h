/* `glovebox selftest`: the probes, what was found, and what is made of it.
 *
 * Programs in real cells say facts; processes, mounts and groups are looked at from out here
 * while they run and after they have ended. A probe holds when its fact is the one that it must
 * be, from the source that it names; one of which nothing was heard has failed.
 *
 *   runs in    the command line
 *   owns       one session at a time, and what lies on the host while the tests run
 *   blocks     for some seconds; every run is ended by a clock of this process as well
 *   trusts     the kernel's files; no byte that a cell says beyond being one fact
 */
#pragma once

#include "caller/selftest/probes.h"
#include "wire/layer.h"

#include <glovebox.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Who says a fact. */
enum selftest_source {
#define X(name, file) SELFTEST_##name,
	SELFTEST_PROGRAMS(X)
#undef X
	SELFTEST_HOST,
	SELFTEST_SOURCE_MAX
};

/* The group of the report that is no layer: what a reply promises. */
#define SELFTEST_API    LAYER_MAX
#define SELFTEST_GROUPS (LAYER_MAX + 1)

struct selftest_probe {
	unsigned group; /* enum layer, or SELFTEST_API */
	enum selftest_source source;
	const char *name, *expected, *sentence;
	bool is_call; /* the sentence is made from name and expected */
};

/* Programs start in two ways, and each probe is tried in both: in a cell that is made for it, by
 * an interpreter that starts cold, as `glovebox run` does; and in a ready cell, forked from a
 * warm one, as a server does. */
enum selftest_way {
	SELFTEST_COLD,
	SELFTEST_WARM,
	SELFTEST_WAYS
};

enum selftest_outcome {
	SELFTEST_FAILED,
	SELFTEST_OK,
	SELFTEST_IMPOSSIBLE
};

#define SELFTEST_GOT_MAX    96
#define SELFTEST_PROBES_MAX 512

/* What was said for one probe. */
struct selftest_fact {
	char got[SELFTEST_GOT_MAX]; /* with nothing in it that a terminal would obey */
	unsigned times;             /* more than once is no fact */
};

/* A group of this instance in one hierarchy: its number may be another's after the end. */
struct selftest_top {
	char path[1400]; /* "" when there is none */
	uint64_t inode;
};
#define SELFTEST_TOPS 4

/* What is known of the cell whose program stands still, and of this instance. */
struct selftest_cell {
	uint64_t stdin_inode; /* of the pipe that its program and all that it starts read */
	pid_t pid;
	struct selftest_top tops[SELFTEST_TOPS];
	char groups[4096]; /* its /proc/PID/cgroup */
};

struct selftest {
	struct gbx_options options;
	bool cold_only;        /* the operator's servers start programs cold */
	enum selftest_way way; /* that is being tried */
	struct gbx_session *session;
	struct selftest_fact facts[SELFTEST_WAYS][SELFTEST_PROBES_MAX];
	struct selftest_cell cell;
	char canary[64];         /* a file of the host */
	char abstract[32];       /* an abstract socket of the host */
	int tcp_fd, abstract_fd; /* listen; nobody may come */
	unsigned tcp_port;
	unsigned slower; /* how many times slower than usual this host is now, at least 1 */
	uint64_t took_ns;
};

/* judge.c: the table, and what was found. ----------------------------------------------- */

unsigned selftest_count(void);
const struct selftest_probe *selftest_probe(unsigned i);
const char *selftest_group_word(unsigned group);

/* Take down that `source` said `got` for the probe of that name; any other is dropped. */
void selftest_say(struct selftest *s, enum selftest_source source, const char *name,
	const char *got) __attribute__((nonnull));
void selftest_sayf(struct selftest *s, const char *name, const char *fmt, ...)
	__attribute__((format(printf, 3, 4), nonnull));

/* Out here it cannot be known on this host, for that reason. A cell cannot say so. */
void selftest_impossible(struct selftest *s, const char *name, const char *why)
	__attribute__((nonnull));

/* In one way; and in all that were to be tried: failed if it failed in one. */
enum selftest_outcome selftest_judge_way(
	const struct selftest *s, unsigned i, enum selftest_way way) __attribute__((nonnull));
enum selftest_outcome selftest_judge(const struct selftest *s, unsigned i) __attribute__((nonnull));

/* The way in which it has that outcome. */
enum selftest_way selftest_way_of(const struct selftest *s, unsigned i) __attribute__((nonnull));

/* host.c: what is seen from out here. --------------------------------------------------- */

/* Lay out what no program may reach. 0, or a negative errno after saying why. */
int selftest_host_open(struct selftest *s) __attribute__((nonnull));
void selftest_host_close(struct selftest *s) __attribute__((nonnull));

/* Find the program that runs now, its stdin and its groups. */
void selftest_host_find(struct selftest *s) __attribute__((nonnull));

/* Look at the program that stands still now. */
void selftest_host_look(struct selftest *s) __attribute__((nonnull));

/* Has anybody come to what must not be reachable? */
void selftest_host_visitors(struct selftest *s) __attribute__((nonnull));

/* Processes that have the program's stdin, waited for to be none for at most two seconds. */
unsigned selftest_host_left(const struct selftest *s) __attribute__((nonnull));
unsigned selftest_host_living(const struct selftest *s) __attribute__((nonnull));

/* The session has been closed: is everything gone? */
void selftest_host_end(struct selftest *s) __attribute__((nonnull));

/* The supervisor of the session; 0 when there is none. */
pid_t selftest_host_supervisor(void);

/* runs.c: the programs, one after the other. 0, or a negative errno when Glovebox failed, with
 * *why. ------------------------------------------------------------------------------- */
int selftest_run_all(struct selftest *s, struct gbx_error *why) __attribute__((nonnull));

/* report.c ------------------------------------------------------------------------------ */

struct selftest_sums {
	unsigned ok, failed, impossible;
};
struct selftest_sums selftest_add_up(const struct selftest *s) __attribute__((nonnull));

/* 0, or negative when it could not be written. */
int selftest_print(const struct selftest *s) __attribute__((nonnull));
int selftest_print_json(const struct selftest *s) __attribute__((nonnull));
