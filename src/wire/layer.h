/* The layers of the cage, one line each: the word by which the operator, the replies
 * and `glovebox doctor` name it, what is lost without it, and how to get it.
 *
 *   runs in    every process
 */
#pragma once

#include <stdint.h>

struct fault;

/* clang-format off */
#define LAYERS(X)                                                                                       \
	X(USER_NS,    "user-namespace",                                                                 \
		"root inside the cell would be root outside",                                           \
		"set user.max_user_namespaces above 0; in a container, allow clone(CLONE_NEWUSER)")     \
	X(PID_NS,     "pid-namespace",                                                                  \
		"the program could see and signal other processes",                                     \
		"run a kernel built with CONFIG_PID_NS")                                                \
	X(MOUNT_NS,   "mount-namespace",                                                                \
		"the program would see the host's files",                                               \
		"start as root with CAP_SYS_ADMIN")                                                     \
	X(IPC_NS,     "ipc-namespace",                                                                  \
		"System V objects and message queues would be shared with the host",                    \
		"run a kernel built with CONFIG_IPC_NS")                                                \
	X(UTS_NS,     "uts-namespace",                                                                  \
		"the program would see the host's name",                                                \
		"run a kernel built with CONFIG_UTS_NS")                                                \
	X(CGROUP_NS,  "cgroup-namespace",                                                               \
		"the program would see where its cgroup lies on the host",                              \
		"run a kernel built with CONFIG_CGROUPS")                                               \
	X(NET_NS,     "network-namespace",                                                              \
		"the program could reach the network and the host's loopback",                          \
		"run a kernel built with CONFIG_NET_NS")                                                \
	X(ROOT,       "read-only-root",                                                                 \
		"the program could change the host's files or share locks and inotify with others",     \
		"load overlayfs (modprobe overlay) and start as root with CAP_SYS_ADMIN")               \
	X(PROC,       "proc",                                                                           \
		"the program would see the host's /proc",                                               \
		"in a container, run with an unmasked /proc (a new proc needs a whole one to be visible)") \
	X(MEMORY,     "cgroup-memory",                                                                  \
		"one run could take all memory of the host",                                            \
		"enable the memory controller (cgroup_enable=memory) or pass --cgroup PATH")            \
	X(SWAP,       "swap-off",                                                                       \
		"a run could go on in swap past its memory limit",                                      \
		"swapoff -a, or enable swap accounting (swapaccount=1)")                                \
	X(CPU,        "cgroup-cpu",                                                                     \
		"one run could take all CPU time",                                                      \
		"enable the cpu controller or pass --cgroup PATH")                                      \
	X(PIDS,       "cgroup-pids",                                                                    \
		"a fork bomb could fill the host's process table",                                      \
		"enable the pids controller or pass --cgroup PATH")                                     \
	X(KILL,       "cgroup-kill",                                                                    \
		"a run could not be killed whole in one step",                                          \
		"mount cgroup2 and run Linux 5.14 or later")                                            \
	X(CAPS,       "capabilities",                                                                   \
		"the program could keep privileges",                                                    \
		"start as root with all capabilities (CapabilityBoundingSet= of a unit, --cap-add)")                                                       \
	X(NNP,        "no-new-privs",                                                                   \
		"set-user-ID programs could give privileges",                                           \
		"run Linux 3.5 or later")                                                               \
	X(SECCOMP,    "seccomp",                                                                        \
		"every system call of the kernel would be open to attack",                              \
		"run a kernel built with CONFIG_SECCOMP_FILTER")                                        \
	X(LANDLOCK,   "landlock",                                                                       \
		"the second wall around files, devices, signals and abstract sockets would be missing", \
		"run Linux 5.13 or later with landlock in the lsm= list")                               \
	X(RLIMITS,    "rlimits",                                                                        \
		"core dumps, open files and file sizes would be unbounded",                             \
		"raise the hard limit of open files (ulimit -Hn, LimitNOFILE= of a unit) or lower max-runs")                                          \
	X(UIDS,       "uid-range",                                                                      \
		"runs could share per-user kernel limits with each other or with people",               \
		"choose a free range with --uid-base N")                                                \
	X(WATCHDOG,   "watchdog",                                                                       \
		"a hanging program would never end",                                                    \
		"run Linux 5.3 or later (pidfd)")
/* clang-format on */

enum layer {
#define X(name, word, lost, remedy) LAYER_##name,
	LAYERS(X)
#undef X
	LAYER_MAX
};
_Static_assert(LAYER_MAX <= 64, "a set of layers is a 64-bit mask");

#define LAYER_BIT(l) (UINT64_C(1) << (l))
#define LAYER_ALL    (LAYER_BIT(LAYER_MAX) - 1)

/* What was found out about one. */
enum layer_state {
	LAYER_MISSING,
	LAYER_IN_FORCE,
	LAYER_UNTRIED /* the look ended before it came to this one */
};

/* Constant texts; "unknown" for a number outside the enum. */
const char *layer_word(uint32_t layer);
const char *layer_lost(uint32_t layer);
const char *layer_remedy(uint32_t layer);

/* The remedy for this cause, where the list's own is for another one. */
const char *layer_remedy_for(uint32_t layer, const struct fault *why) __attribute__((nonnull));

/* The layer of that name, or LAYER_MAX. */
enum layer layer_by_word(const char *word) __attribute__((nonnull));
