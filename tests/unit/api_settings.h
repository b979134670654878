/* The settings that the API tests presume: the defaults of a host with 4 CPUs and 8 GiB.
 *
 *   runs in    unit tests
 */
#pragma once

#include "wire/settings.h"

static const struct settings api_settings = {
	.max_runs = 8,
	.max_queue = 64,
	.def = { .timeout_us = 3000000, .memory_bytes = 64 << 20, .cpu_milli = 500, .pids = 32 },
	.max = { .timeout_us = 300000000,
		.memory_bytes = UINT64_C(2) << 30,
		.cpu_milli = 4000,
		.pids = 512 },
	.output_bytes = 1048576,
	.body_bytes = 4194304,
	.code_bytes = 2097152,
	.input_bytes = 3145728,
	.workspace_inodes = 4096,
	.artifact_files = 100,
	.artifact_file_bytes = 16 << 20,
	.artifact_bytes = 64 << 20,
	.artifact_inline_bytes = 1 << 20,
	.artifact_store = 1 << 30,
	.artifact_keep_us = 600000000,
	.network_why = NETWORK_WHY_IS_OFF,
	.network_connections = 64,
	.network_bytes = 256 << 20,
	.network_rate = 64 << 20,
	.runtime = { .main_file = "main.py" },
};
