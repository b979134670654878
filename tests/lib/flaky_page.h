/* A page of memory that a test shares with all processes of a server, and that says which of
 * their system calls fail: tests/harness/flaky.py writes it.
 */
#pragma once

#include <stdint.h>

enum flaky_mode {
	FLAKY_OFF,
	/* Call number `nth` since the process began; of the supervisor and the interpreter since
	 * the page has changed. */
	FLAKY_NTH,
	FLAKY_RANDOM /* `odds` of 65,536 */
};

/* The child of a role is one between clone3() and its exec, or until it has become the program. */
enum flaky_role {
	FLAKY_SUPERVISOR = 1 << 0,
	FLAKY_SPAWN = 1 << 1, /* the supervisor's child */
	FLAKY_INIT = 1 << 2,
	FLAKY_ENTER = 1 << 3,
	FLAKY_ZYGOTE = 1 << 4, /* before it becomes the interpreter */
	FLAKY_PYTHON = 1 << 5,
	FLAKY_CHILD = 1 << 6, /* the interpreter's */
	FLAKY_COLLECT = 1 << 7
};

#define FLAKY_NAMES 64

struct flaky_page {
	uint32_t mode, roles, nth, code, odds;
	uint32_t shots; /* so many may fail yet */
	uint32_t epoch; /* counts begin anew when it changes */
	uint32_t calls; /* the highest number that a call had in this epoch, and one */
	uint32_t hits;
	uint32_t only_spared; /* 1: and no others do */
	uint32_t processes;   /* that have it open or had it */
	uint32_t passes;      /* so many times call number `nth` may be made yet before it fails */
	uint32_t unused[4];
	char spared[64];             /* " name name ": these never fail, and do not count */
	char hidden[4][32];          /* see flaky_page.c */
	char names[FLAKY_NAMES][24]; /* of the calls that failed; number i at i % 64 */
	uint32_t by[FLAKY_NAMES];    /* and whose they were */
};

/* Map it, if `argument` (what a process of ours is started with; "module" for the zygote's
 * module) is of one of those above. */
void flaky_page_open(const char *path, const char *argument);
