/* The load client of the benchmark: N threads repeat one operation, each answer is checked,
 * each latency kept in nanoseconds.
 *
 *   runs in    a process of its own, so that the interpreter which drives the benchmark
 *              costs nothing while it measures
 *   owns       its connections and the children that it starts
 *   threads    one a client
 *   blocks     until the last answer; an answer that takes over 60 s is a wrong one
 *   trusts     nobody: an answer that is not exactly the expected one is counted and shown
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ANSWER_TIMEOUT_MS 60000
#define WHY_SIZE          240

/* One right answer. What a peer cannot tell stays 0. */
struct sample {
	uint64_t latency_ns;
	uint64_t faults; /* minor page faults */
	uint64_t cpu_us;
	uint64_t queue_us, setup_us, run_us, teardown_us; /* as the reply says */
	uint64_t memory_bytes;
};

struct text {
	char *bytes;
	size_t length;
};

struct worker;

/* Do it once. false: the answer was wrong, and w->why says how. */
typedef bool operation_fn(struct worker *w, struct sample *ret);

/* What all workers share; nobody writes it once they run. */
struct load {
	operation_fn *once;
	struct text expect;    /* what the program must print, exactly */
	const char *left_name; /* a file that it must leave, or NULL */
	struct text left;      /* and what that begins with */
	struct text request;   /* http: the bytes to send */
	bool plain;            /* http: any 200 is right */
	unsigned port;
	char *const *argv; /* command */
	int stderr_fd;     /* command: where children complain */
};

struct worker {
	const struct load *load;
	unsigned number;
	unsigned runs; /* begun so far: names that must be unique */
	int fd;        /* http: the connection, -1 without one */
	char *buffer;
	size_t size;
	char why[WHY_SIZE];
};

uint64_t now_ns(void);
bool wrong(struct worker *w, const char *format, ...)
	__attribute__((nonnull, format(printf, 2, 3)));
bool read_file(const char *path, struct text *ret) __attribute__((nonnull, warn_unused_result));

/* http.c */
struct text http_post(const char *path, const struct text *body) __attribute__((nonnull));
struct text http_get(const char *path) __attribute__((nonnull));
bool http_once(struct worker *w, struct sample *ret) __attribute__((nonnull));
/* A thread that answers at once what a perfect server would: the cost of this client and of
 * the loopback. Returns its port, 0 on failure. */
unsigned http_start_echo(const struct text *expect) __attribute__((nonnull));

/* command.c */
bool command_once(struct worker *w, struct sample *ret) __attribute__((nonnull));

/* ready.c: wait until `cells` groups below `dir` hold a process and none of these has run
 * for some milliseconds: the pool is full and at rest. */
bool ready_wait(const char *dir, unsigned cells) __attribute__((nonnull, warn_unused_result));
