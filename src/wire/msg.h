/* Every message that may cross a trust boundary, one line each: who may send it
 * to whom, its exact payload and how many descriptors ride along. A message that
 * is not on this list cannot be sent.
 *
 *   runs in    every process
 *   trusts     nothing that it reads; msg_admit() decides before anybody looks
 */
#pragma once

#include "base/fault.h"
#include "wire/denied.h"
#include "wire/image.h"
#include "wire/language.h"
#include "wire/limits.h"
#include "wire/selftest.h"
#include "wire/settings.h"
#include "wire/verdict.h"

#include <stddef.h>
#include <stdint.h>

/* The config process has read file, environment and flags. fds: what runs with a network may reach, a
 * sealed struct network_policy; the supervisor passes it on. */
struct msg_config {
	struct settings settings;
};

/* The config process refuses: the text is for the operator. */
struct msg_config_bad {
	struct fault fault;
};

/* One language of it, in the order of their numbers; before CONFIG. */
struct msg_language {
	struct language language;
};

/* To the front or the library, once, before anything else. `languages` OFFERs follow it. To a front
 * further ones come whenever an image was added to the store or taken away. */
struct msg_hello {
	struct settings settings;
	uint64_t layers;             /* LAYER_BIT()s in force */
	uint32_t cgroup_version;     /* of the memory controller: 1 or 2 */
	uint32_t memory_counter;     /* enum memory_counter */
	uint32_t core_pattern_piped; /* 1: a loud warning in /health and doctor */
	uint32_t port;      /* the port that is really served; 0 for a Unix socket or none */
	uint32_t languages; /* how many OFFERs follow */
	uint32_t reserved;
};

/* What the client has to know of a language. */
struct msg_offer {
	uint32_t number;
	uint32_t edition;   /* how often the number has been another image's before */
	struct offer offer; /* without a name: there is none of that number any more */
};

/* To a front, after the OFFER of an image: its inventory (wire/image.h). fds: the file, which nobody
 * changes. */
struct msg_inventory {
	uint32_t number, edition; /* as in OFFER */
};

/* How the programs' interpreters are started. */
enum warm_state {
	WARM_OFF,      /* each from cold, as was asked for */
	WARM_STARTING, /* from cold until the zygote is there */
	WARM_ON,       /* forked from a zygote */
	WARM_LOST,     /* from cold, because there is no zygote: degraded */
	WARM_STATE_MAX
};

/* What the supervisor can do now. Sent after HELLO and whenever it changes. */
struct msg_health {
	uint32_t ready; /* 1: SUBMIT is welcome */
	uint32_t running;
	uint32_t pool_ready;  /* parked cells */
	uint32_t warm;        /* enum warm_state */
	uint32_t warm_images; /* a bit for each language that is an image with a zygote */
	uint32_t reserved;
	uint64_t generation;   /* of the zygote that forks now; 0: none */
	struct fault warm_why; /* when WARM_LOST */
	struct fault why;      /* when not ready */
};

/* What `glovebox selftest` found last on this host. Sent after HELLO and whenever it changes. */
struct msg_selftest {
	uint32_t known;      /* 0: it has not been run since this host started */
	uint32_t this_build; /* 1: the program that was tested is the supervisor's own */
	struct selftest_record record;
};

/* Whether a run's workspace is kept for a COLLECT after its RESULT. */
enum collect_when {
	COLLECT_NEVER,
	COLLECT_IF_TOUCHED, /* if it holds anything but the code, as it was: the run has no files */
	COLLECT_ALWAYS,
	COLLECT_WHEN_MAX
};

/* Run this. fds: code and inputs (one sealed memfd), stdin (read end), stdout, stderr (write ends of
 * pipes), and a memfd of REPORT_BYTES for what the interpreter tells (wire/report.h). The answer is one RESULT or one REFUSED with the same `run`. */
struct msg_submit {
	uint64_t run; /* chosen by the sender, never used twice on one channel */
	struct run_limits limits;
	uint64_t code_bytes;
	uint64_t inputs_bytes; /* behind the code: wire/inputs.h; 0: none */
	uint32_t allow_network;
	uint32_t report;   /* REPORT_… of wire/report.h: what shall be told */
	uint64_t build;    /* the run whose compiler made the program: RUN_BUILT; else 0 */
	uint32_t language; /* its number (wire/language.h) */
	uint32_t part;     /* enum run_part */
	uint32_t collect;  /* enum collect_when; of a compiler's part COLLECT_NEVER */
	uint32_t edition;  /* of the number, as OFFER has told it */
};

struct msg_cancel {
	uint64_t run;
};

/* The verdict of a run of which nothing can execute any more. Numbers only. */
struct msg_result {
	uint64_t run;
	uint32_t cause;                      /* enum run_cause */
	int32_t wait_status;                 /* of the main process, as waitpid() gives it */
	uint64_t wall_us;                    /* release to the end of the main process */
	uint64_t setup_us;                   /* SUBMIT to release */
	uint64_t teardown_us;                /* from that to this message */
	uint64_t cpu_us, user_us, system_us; /* of the whole cell */
	uint64_t throttled_us;               /* time that the CPU limit held it back */
	uint64_t memory_peak_bytes;
	uint32_t memory_counter; /* enum memory_counter */
	uint32_t pids_peak;      /* 0: the kernel does not say */
	uint64_t pids_refused;   /* forks that the pids limit refused */
	uint64_t oom_kills;
	uint64_t minor_faults, major_faults; /* of the main process and its awaited children */
	struct denied denied;
	uint32_t kept;      /* 1: COLLECT or CANCEL is awaited */
	uint32_t gate_lost; /* 1: what carried its packets ended before it did */
};

/* Send what is in the workspace of a run whose RESULT said `kept`, as a stream of wire/files.h
 * into the pipe whose write end rides along; a stream without its END is one whose collector has
 * failed. Once for each such run, or else a CANCEL, which also ends the sending. Nothing answers
 * but the end of the pipe. */
struct msg_collect {
	uint64_t run;
};

/* For the SUBMIT of the same run with `allow_network`, which follows: the policy that it asks for, and
 * where the record goes. fds: memory of sizeof(struct network_memory), sealed in its size. */
struct msg_network {
	uint64_t run;
};

/* To a gate: carry a run's packets. fds: the other end of its interface, that memory, and the
 * operator's policy, as it came with CONFIG. */
struct msg_gate {
	uint32_t uid; /* that it becomes */
	uint32_t reserved;
};

/* The run never started: the code did not run. */
struct msg_refused {
	uint64_t run;
	uint32_t retry; /* 1: try again later; 0: this is a failure of Glovebox */
	uint32_t
		missing; /* 1: it is none: a language is not installed, an image gone or not as it was */
	struct fault fault;
};

/* To the front: finish what runs, take nothing new, exit when idle. */
struct msg_drain {
	uint64_t grace_us;
};

/* One row of `glovebox doctor`. */
struct msg_layer {
	uint32_t layer;   /* enum layer; LAYER_MAX: advice that belongs to no layer */
	uint32_t state;   /* enum layer_state */
	struct fault why; /* when missing, or the advice */
};

struct msg_layers_end {
	uint32_t would_start;
	uint32_t reserved;
};

/* To a cell's init: everything it needs to build its side of the cage. fds: listed in
 * wire/cell.h by count of mounts, so that this line carries the fixed ones only. */
#include "wire/cell.h"

/* clang-format off */
/*        name        from         to           payload                 fds */
#define MESSAGES(X)                                                                    \
	X(LANGUAGE,   CONFIG,      SUPERVISOR, struct msg_language,    0)              \
	X(CONFIG,     CONFIG,      SUPERVISOR, struct msg_config,      1)              \
	X(CONFIG_BAD, CONFIG,      SUPERVISOR, struct msg_config_bad,  0)              \
	X(HELLO,      SUPERVISOR,  CLIENT,     struct msg_hello,       0)              \
	X(OFFER,      SUPERVISOR,  CLIENT,     struct msg_offer,       0)              \
	X(INVENTORY,  SUPERVISOR,  CLIENT,     struct msg_inventory,   1)              \
	X(HEALTH,     SUPERVISOR,  CLIENT,     struct msg_health,      0)              \
	X(SELFTEST,   SUPERVISOR,  CLIENT,     struct msg_selftest,    0)              \
	X(SUBMIT,     CLIENT,      SUPERVISOR, struct msg_submit,      5)              \
	X(CANCEL,     CLIENT,      SUPERVISOR, struct msg_cancel,      0)              \
	X(RESULT,     SUPERVISOR,  CLIENT,     struct msg_result,      0)              \
	X(REFUSED,    SUPERVISOR,  CLIENT,     struct msg_refused,     0)              \
	X(DRAIN,      SUPERVISOR,  CLIENT,     struct msg_drain,       0)              \
	X(LAYER,      SUPERVISOR,  CLIENT,     struct msg_layer,       0)              \
	X(LAYERS_END, SUPERVISOR,  CLIENT,     struct msg_layers_end,  0)              \
	X(BUILD,      SUPERVISOR,  BOX,        struct msg_build,       0)              \
	X(MOUNT,      SUPERVISOR,  BOX,        struct msg_mount,       1)              \
	X(BUILT,      BOX,         SUPERVISOR, struct msg_built,       0)              \
	X(JOIN,       SUPERVISOR,  BOX,        struct msg_join,        1)              \
	X(RENEW,      SUPERVISOR,  BOX,        struct msg_renew,       1)              \
	X(ENTER,      SUPERVISOR,  BOX,        struct msg_enter,       1)              \
	X(START,      SUPERVISOR,  BOX,        struct msg_start,       5)              \
	X(LISTENER,   BOX,         SUPERVISOR, struct msg_listener,    1)              \
	X(ENTERED,    BOX,         SUPERVISOR, struct msg_entered,     0)              \
	X(BROKEN,     BOX,         SUPERVISOR, struct msg_broken,      0)              \
	X(PRELOADING, ZYGOTE,      SUPERVISOR, struct msg_preloading,  0)              \
	X(WARM,       ZYGOTE,      SUPERVISOR, struct msg_warm,        0)              \
	X(FORK,       SUPERVISOR,  ZYGOTE,     struct msg_fork,        3)              \
	X(FORKED,     ZYGOTE,      SUPERVISOR, struct msg_forked,      1)              \
	X(UNFORKED,   ZYGOTE,      SUPERVISOR, struct msg_broken,      0)              \
	X(COLLECT,    CLIENT,      SUPERVISOR, struct msg_collect,     1)              \
	X(GATHER,     SUPERVISOR,  BOX,        struct msg_gather,      3)              \
	X(NETWORK,    CLIENT,      SUPERVISOR, struct msg_network,     1)              \
	X(TUN,        SUPERVISOR,  BOX,        struct msg_tun,         1)              \
	X(GATE_JOIN,  SUPERVISOR,  GATE,       struct msg_join,        1)              \
	X(GATE,       SUPERVISOR,  GATE,       struct msg_gate,        3)              \
	X(GATE_BAD,   GATE,        SUPERVISOR, struct msg_broken,      0)              \
	X(UNPACK,     CLIENT,      IMAGER,     struct msg_unpack,      0)              \
	X(UNPACKING,  IMAGER,      CLIENT,     struct msg_unpacking,   0)              \
	X(LISTED,     IMAGER,      CLIENT,     struct msg_listed,      0)              \
	X(UNPACKED,   IMAGER,      CLIENT,     struct msg_unpacked,    0)              \
	X(PLAN,       IMAGER,      CLIENT,     struct msg_plan,        0)              \
	X(DIGEST,     IMAGER,      CLIENT,     struct msg_digest,      0)              \
	X(IMAGE_BAD,  IMAGER,      CLIENT,     struct msg_image_bad,   0)
/* clang-format on */

/* CLIENT is the front, or libglovebox in the caller's process: neither is trusted. */
enum role {
	ROLE_CLIENT,
	ROLE_SUPERVISOR,
	ROLE_CONFIG,
	ROLE_BOX,
	ROLE_ZYGOTE,
	ROLE_IMAGER, /* reads what others made into images */
	ROLE_GATE    /* carries a run's packets */
};

enum msg_type {
	MSG_NONE,
#define X(name, from, to, payload, fds) MSG_##name,
	MESSAGES(X)
#undef X
	MSG_TYPE_MAX
};

#define MSG_FDS_MAX 5

/* Any message's payload. */
union msg_any {
#define X(name, from, to, payload, fds) payload name;
	MESSAGES(X)
#undef X
};

/* May a `type` of `len` bytes with `nfds` descriptors come from `from` to `to`?
 * NULL when it may; otherwise a constant text naming the broken rule, for the
 * log line that goes with dropping that peer. */
const char *msg_admit(enum role from, enum role to, uint32_t type, size_t len, unsigned nfds);

/* The message's name as it stands in the list (upper case), "unknown" outside of it. */
const char *msg_name(uint32_t type);

/* Its exact payload size; CHECKs the type. */
size_t msg_size(enum msg_type type);
unsigned msg_fds(enum msg_type type);
