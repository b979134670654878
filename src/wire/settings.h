/* Everything the operator can set, checked and in fixed size. Made once at start by
 * the confined config process; the supervisor checks every number again and keeps
 * its own copy, so that nothing that the front says later can raise a ceiling.
 *
 * SETTINGS is the one list: a line is a key of the YAML file, the flag --KEY, the
 * environment variable GLOVEBOX_KEY (upper case, '-' as '_') and a field here.
 *
 *   runs in    every process
 */
#pragma once

#include "wire/limits.h"
#include "wire/network.h"

#include <stdbool.h>
#include <stdint.h>

#define SETTING_TEXT_MAX 256
#define IMAGE_NAME_MAX   RUNTIME_NAME_MAX

/* The uid of the config process: of the default range, because no settings are known yet. */
#define CONFIG_UID 2000001

/* clang-format off */
/* Types: SIZE bytes ("64M", "2GiB"; plain numbers are bytes), COUNT, DURATION in
 * microseconds ("1.5s", "200ms"; plain numbers are seconds), CPUS in thousandths ("0.5"),
 * BOOL ("true", "false"), SWITCH ("off", "on", "auto"), RULES (a list of those of api/network.h,
 * of which the field is how many there are), TEXT (a path), MODULES ("a,b.c"), IMAGE (a name), LAYER_SET (list of layer words),
 * LISTEN, LEVEL.
 *  key, field, type, default, least, most, help */
#define SETTINGS(X)                                                                                        \
	X("listen",            listen,          LISTEN,    "127.0.0.1:8000", 0, 0,                         \
		"address to serve: ADDR:PORT, [ADDR6]:PORT or unix:PATH; port 0 takes any free one")       \
	X("insecure",          insecure,        BOOL,      "false", 0, 1,                                  \
		"listen beyond loopback although no keys are configured")                                  \
	X("cgroup",            cgroup,          TEXT,      "", 0, 0,                                       \
		"cgroup below which the cells live, as a path from the hierarchy's root; default: found")  \
	X("uid-base",          uid_base,        COUNT,     "2000000", 65536, 4000000000,                   \
		"first of the host uids that cells may use; 65,536 from here on must be free")             \
	X("allow-degraded",    allow_degraded,  LAYER_SET, "", 0, 0,                                       \
		"start although this layer of the cage cannot be had; may be repeated")                    \
	X("max-runs",          max_runs,        COUNT,     "0", 0, RUNS_MAX,                               \
		"runs at the same time; 0 means two for each CPU, at least 4")                             \
	X("pool-size",         pool_size,       COUNT,     "8", 0, POOL_MAX,                               \
		"ready cells kept ahead of requests; 0 makes each cell when it is needed")                 \
	X("max-builds",        max_builds,      COUNT,     "2", 1, 64,                                     \
		"cells made at the same time")                                                             \
	X("cell-max-age",      cell_max_age_us, DURATION,  "600s", 1000000, LIMIT_TIMEOUT_MAX_US,          \
		"age at which a ready cell is replaced")                                                   \
	X("cage-runs",         cage_runs,       COUNT,     "1000",1, 1000000000,                           \
		"programs that one cage may serve, one after the other; 1: a cage for each")               \
	X("cold",              cold,            BOOL,      "false", 0, 1,                                 \
		"start an interpreter for every run instead of forking a warm one")                        \
	X("image",             image,           IMAGE,     "", 0, 0,                                       \
		"image of the store in which programs run; default: the host's own interpreter")           \
	X("image-dir",         image_dir,       TEXT,      "/var/lib/glovebox/images", 0, 0,               \
		"where images are kept: `glovebox image`")                                                 \
	X("preload",           preload,         MODULES,   "", 0, 0,                                       \
		"modules that the warm interpreter imports ahead, beside many of the standard library")    \
	X("zygote-max-forks",  zygote_max_forks, COUNT,    "20000",1, 1000000000,                          \
		"forks after which a warm interpreter is replaced")                                        \
	X("zygote-max-age",    zygote_max_age_us, DURATION, "600s", 1000000, LIMIT_TIMEOUT_MAX_US,         \
		"age at which a warm interpreter is replaced")                                             \
	X("always-rehearse",   always_rehearse, BOOL,      "false", 0, 1,                                  \
		"prepare ready cells in full also while requests wait; default: less then, which is faster") \
	X("urgent",            urgent,          BOOL,      "true", 0, 1,                                   \
		"real-time priority for the supervisor while no more than one run is going on")            \
	X("max-queue",         max_queue,       COUNT,     "64", 0, 4096,                                  \
		"requests that may wait for a run to end; one more is answered 503")                       \
	X("timeout",           def.timeout_us,  DURATION,  "3s", LIMIT_TIMEOUT_MIN_US, LIMIT_TIMEOUT_MAX_US,  \
		"default of timeout_seconds")                                                              \
	X("memory",            def.memory_bytes, SIZE,     "64M", LIMIT_MEMORY_MIN_BYTES, LIMIT_MEMORY_MAX_BYTES, \
		"default of memory_limit_mb")                                                              \
	X("cpu",               def.cpu_milli,   CPUS,      "0.5", LIMIT_CPU_MIN_MILLI, LIMIT_CPU_MAX_MILLI,  \
		"default of cpu_limit")                                                                    \
	X("pids",              def.pids,        COUNT,     "32", LIMIT_PIDS_MIN, LIMIT_PIDS_MAX,           \
		"default of pids_limit: the program's own processes and threads")                          \
	X("max-timeout",       max.timeout_us,  DURATION,  "300s", LIMIT_TIMEOUT_MIN_US, LIMIT_TIMEOUT_MAX_US, \
		"most that a request may ask for")                                                         \
	X("max-memory",        max.memory_bytes, SIZE,     "0", 0, LIMIT_MEMORY_MAX_BYTES,                 \
		"most that a request may ask for; 0: a quarter of the host's, at least 1 GiB where it has that") \
	X("max-cpu",           max.cpu_milli,   CPUS,      "0", 0, LIMIT_CPU_MAX_MILLI,                    \
		"most that a request may ask for; 0: all CPUs of the host")                                \
	X("max-pids",          max.pids,        COUNT,     "512", LIMIT_PIDS_MIN, LIMIT_PIDS_MAX,          \
		"most that a request may ask for")                                                         \
	X("output-bytes",      output_bytes,    SIZE,      "1M", 1024, 67108864,                           \
		"bytes kept of each output stream")                                                        \
	X("body-bytes",        body_bytes,      SIZE,      "4M", 1024, 134217728,                          \
		"largest request body")                                                                    \
	X("code-bytes",        code_bytes,      SIZE,      "2M", 1, CODE_BYTES_MAX,                        \
		"largest program")                                                                         \
	X("input-bytes",       input_bytes,     SIZE,      "3M", 0, INPUT_BYTES_MAX,                       \
		"most that the files and the stdin of a request hold together")                            \
	X("workspace-inodes",  workspace_inodes, COUNT,    "4096", 16, 1048576,                            \
		"files and directories that a run may make in /workspace")                                 \
	X("artifact-files",    artifact_files,  COUNT,     "100", 0, 100000,                                 \
		"files that a run may give back")                                                          \
	X("artifact-file-bytes", artifact_file_bytes, SIZE, "16M", 0, LIMIT_MEMORY_MAX_BYTES,              \
		"largest file that a run may give back")                                                   \
	X("artifact-bytes",    artifact_bytes,  SIZE,      "64M", 0, LIMIT_MEMORY_MAX_BYTES,               \
		"most that all files of a run may hold together to be given back")                         \
	X("artifact-inline-bytes", artifact_inline_bytes, SIZE, "1M", 0, 67108864,                         \
		"most of it that a reply holds when a request asks for it there")                          \
	X("artifact-store",    artifact_store,  SIZE,      "1G", 0, LIMIT_MEMORY_MAX_BYTES,                \
		"disk for files that can be asked for after their run; 0: none are kept")                  \
	X("artifact-dir",      artifact_dir,    TEXT,      "/var/tmp", 0, 0,                               \
		"directory on whose disk they are kept, in a file without a name")                         \
	X("artifact-keep",     artifact_keep_us, DURATION, "600s", 1000000, LIMIT_TIMEOUT_MAX_US,          \
		"how long they are kept")                                                                  \
	X("network",           network,         SWITCH,    "auto", 0, 2,                                   \
		"let requests ask for a network, through a gate; auto: when listen is a loopback address or a Unix socket, and it can") \
	X("network-allow",     network_allow,   RULES,     "", 0, NETWORK_RULES_MAX,                       \
		"what runs with a network may reach, and nothing else; may be repeated; without one: whatever is public") \
	X("network-deny",      network_deny,    RULES,     "", 0, NETWORK_RULES_MAX,                       \
		"what they may not reach, whatever is allowed; may be repeated")                           \
	X("network-connections", network_connections, COUNT, "64", LIMIT_NETWORK_CONNECTIONS_MIN, 1024,    \
		"connections that a run with a network may have at the same time")                         \
	X("network-bytes",     network_bytes,   SIZE,      "256M", LIMIT_NETWORK_BYTES_MIN, LIMIT_MEMORY_MAX_BYTES, \
		"most that a run with a network may receive and send in all")                              \
	X("network-rate",      network_rate,    SIZE,      "64M", LIMIT_NETWORK_RATE_MIN, LIMIT_MEMORY_MAX_BYTES, \
		"most that a run with a network may receive and send in a second")                         \
	X("max-connections",   max_connections, COUNT,     "1024", 1, 65536,                               \
		"client connections at the same time")                                                     \
	X("shutdown-grace",    shutdown_grace_us, DURATION, "30s", 0, LIMIT_TIMEOUT_MAX_US,                \
		"time that running requests get at SIGTERM")                                               \
	X("log-level",         log_level,       LEVEL,     "info", 0, 3,                                   \
		"err, warn, info or debug")
/* clang-format on */

enum setting_switch {
	SWITCH_OFF,
	SWITCH_ON,
	SWITCH_AUTO
};

/* Why runs can have a network, or cannot: once the supervisor has settled it. */
/* clang-format off */
#define NETWORK_WHYS(X)                                                                                    \
	X(UNSETTLED, "it is not known yet")                                                                \
	X(IS_ON,     "network is on")                                                                      \
	X(IS_OFF,    "network is off")                                                                     \
	X(LOCAL,     "network is auto, and listen is a loopback address or a Unix socket")                 \
	X(BEYOND,    "network is auto, and listen is neither a loopback address nor a Unix socket")        \
	X(NO_DEVICE, "network is auto, and /dev/net/tun cannot be opened here: `modprobe tun` may bring "  \
		"it, in a container --device /dev/net/tun")                                                \
	X(NO_GATE,   "network is auto, and the process that carries packets cannot be started: the log "   \
		"says why")
/* clang-format on */
enum network_why {
#define X(name, text) NETWORK_WHY_##name,
	NETWORK_WHYS(X)
#undef X
	NETWORK_WHY_MAX
};

enum listen_kind {
	LISTEN_INET,
	LISTEN_INET6,
	LISTEN_UNIX
};

struct listen_address {
	uint32_t kind;  /* enum listen_kind */
	uint32_t port;  /* host order; 0: any */
	uint8_t ip[16]; /* network order; the first 4 for LISTEN_INET */
	char path[108]; /* LISTEN_UNIX; terminated */
};

/* One runtime: how to start a language inside a cell, from runtimes/NAME/runtime.yaml. */
#define RUNTIME_NAME_MAX  32
#define RUNTIME_PATH_MAX  128
#define RUNTIME_ROOTS_MAX 24
#define RUNTIME_ARGV_MAX  16
#define RUNTIME_ENV_MAX   16
#define RUNTIME_OPTIONAL  '?' /* before an entry of roots: skipped where the host lacks it */

struct runtime {
	char name[RUNTIME_NAME_MAX];
	char version[RUNTIME_NAME_MAX];   /* what the interpreter says of itself; "" when unknown */
	char main_file[RUNTIME_PATH_MAX]; /* name of the program below /workspace, "main.py" */
	char argv[RUNTIME_ARGV_MAX]
		 [RUNTIME_PATH_MAX];                 /* argv[0] is the absolute path; "" ends it */
	char env[RUNTIME_ENV_MAX][RUNTIME_PATH_MAX]; /* NAME=VALUE; "" ends it */
	char roots[RUNTIME_ROOTS_MAX][RUNTIME_PATH_MAX]; /* host directories shown; "" ends it */
	uint32_t full_proc; /* 1: meminfo, cpuinfo, stat… are visible; 0: subset=pid */
	uint32_t
		reports; /* 1: its interpreter tells of its program, by runtimes/python/report.py */
};

struct settings {
	struct listen_address listen;
	uint32_t insecure;
	uint32_t uid_base;
	char cgroup[SETTING_TEXT_MAX];
	uint64_t allow_degraded; /* LAYER_BIT()s */
	uint32_t max_runs;       /* never 0 once settled */
	uint32_t max_queue;
	uint32_t pool_size;
	uint32_t max_builds;
	uint32_t cold;
	char image[IMAGE_NAME_MAX]; /* image_name_is_valid(), or "" */
	char image_dir[SETTING_TEXT_MAX];
	char preload[SETTING_TEXT_MAX]; /* is_modules() */
	uint32_t zygote_max_forks;
	uint32_t cage_runs;
	uint32_t always_rehearse;
	uint32_t urgent;
	uint64_t cell_max_age_us, zygote_max_age_us;
	struct run_limits def, max;
	uint64_t output_bytes, body_bytes, code_bytes, input_bytes;
	uint64_t artifact_file_bytes, artifact_bytes, artifact_inline_bytes;
	uint64_t artifact_store, artifact_keep_us;
	char artifact_dir[SETTING_TEXT_MAX];
	uint32_t workspace_inodes;
	uint32_t artifact_files;
	uint32_t network;     /* enum setting_switch; once it is settled never SWITCH_AUTO */
	uint32_t network_why; /* enum network_why */
	uint32_t network_allow, network_deny, network_connections;
	uint64_t network_bytes, network_rate;
	uint32_t max_connections;
	uint64_t shutdown_grace_us;
	uint32_t log_level;
	uint32_t uid_range_taken; /* 1: passwd, group or subuid name an id of the range,
				   * or CONFIG_UID */
	struct runtime runtime;
};

/* The broken rule as a constant text ("max_runs out of range"), or NULL when every
 * field is within its range, every text terminated, and no default is above its
 * maximum. Used by the config process before sending and by the supervisor after. */
const char *settings_fault(const struct settings *s) __attribute__((nonnull));

/* The same of a runtime alone. That roots is empty is no fault here: an image brings its own. */
const char *runtime_fault(const struct runtime *r) __attribute__((nonnull));

/* Names as Python's import takes them, separated by commas; "" is none of them. */
bool is_modules(const char *text) __attribute__((nonnull));

/* May an image have that name? Letters, digits, '-', '_' and '.'; it begins with neither '.'
 * nor '-', and has at most 31 bytes. */
bool image_name_is_valid(const char *name) __attribute__((nonnull));

/* Its words. CHECKs its argument. */
const char *network_why_text(uint32_t why);

/* Can nobody but processes of this host reach it? */
bool listen_is_local(const struct listen_address *a) __attribute__((nonnull));
