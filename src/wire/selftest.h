/* What `glovebox selftest` found last on this host, in fixed size: it leaves this in a file, the
 * supervisor of a server reads and checks it, and /health shows it.
 *
 *   runs in    the command line, the supervisor, the front
 *   trusts     nothing: selftest_record_fault() decides
 */
#pragma once

#include <stdint.h>

/* Gone with the boot, as the kernel that was tested is. */
#define SELFTEST_DIR  "/run/glovebox"
#define SELFTEST_FILE "selftest"

#define SELFTEST_MAGIC      UINT32_C(0x31745367) /* "gSt1"; another layout has another one */
#define SELFTEST_BUILD_MAX  20                   /* a build id: SHA-1 */
#define SELFTEST_AT_MAX     24
#define SELFTEST_PROBE_NAME 64

struct selftest_record {
	uint32_t magic;
	uint32_t probes, failed, impossible;
	uint8_t build[SELFTEST_BUILD_MAX];      /* of the program that was tested */
	char at[SELFTEST_AT_MAX];               /* "2026-01-31T12:00:00Z" */
	char first_failed[SELFTEST_PROBE_NAME]; /* "" when none has */
};

/* The broken rule, or NULL when every number and text can be shown. */
const char *selftest_record_fault(const struct selftest_record *r) __attribute__((nonnull));
