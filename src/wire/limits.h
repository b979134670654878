/* What one run may use, and the bounds that the operator puts on it. Numbers only,
 * fixed layout: crosses every trust boundary.
 *
 *   runs in    every process
 */
#pragma once

#include <stdint.h>

/* The limits of one run. All fields are set: there is no "unlimited". */
struct run_limits {
	uint64_t timeout_us;   /* wall clock, from the release of the program */
	uint64_t memory_bytes; /* everything charged to the cell; swap is always 0 */
	uint64_t cpu_time_us;  /* CPU time of the whole cell; 0 = as much as the wall clock gives */
	uint32_t cpu_milli;    /* bandwidth, in thousandths of one CPU */
	uint32_t pids;         /* the program's own tasks; init is not counted */
};

/* Floors that no operator can go below: under them no run could start at all. */
#define LIMIT_TIMEOUT_MIN_US   UINT64_C(1000)
#define LIMIT_MEMORY_MIN_BYTES (UINT64_C(4) << 20) /* the cell's own overhead is about 1 MiB */
#define LIMIT_CPU_MIN_MILLI    UINT32_C(10)        /* the kernel's least quota: 1 ms in 100 ms */
#define LIMIT_PIDS_MIN         UINT32_C(1)

/* And of a network, for operators and requests alike. */
#define LIMIT_NETWORK_CONNECTIONS_MIN UINT32_C(1)
#define LIMIT_NETWORK_BYTES_MIN       UINT64_C(1)
#define LIMIT_NETWORK_RATE_MIN        UINT64_C(1024) /* bytes a second */

/* Ceilings of the representation, above which an operator cannot set a maximum. */
#define LIMIT_TIMEOUT_MAX_US   (UINT64_C(86400) * 1000000)
#define LIMIT_MEMORY_MAX_BYTES (UINT64_C(1) << 42)
#define LIMIT_CPU_MAX_MILLI    UINT32_C(1024000)
#define LIMIT_PIDS_MAX         UINT32_C(32768)

#define RUNS_MAX        (120u) /* of max-runs, and of pool-size: together as many cells as one */
#define POOL_MAX        (380u) /* instance has ids for (priv/supervisor/lease.h) */
#define CODE_BYTES_MAX  (UINT64_C(16) << 20) /* the most that code-bytes can be set to */
#define INPUT_BYTES_MAX (UINT64_C(64) << 20) /* and of input-bytes */
