/* The probes of `glovebox selftest` but for system calls (calls.h): what each checks, who says
 * the fact, and what the fact must be.
 *
 *   runs in    the command line
 *   trusts     nothing that a program in a cell says beyond being one fact of one probe
 */
#pragma once

/* The programs, each run in a cell of its own: runtimes/python/selftest/NAME.py. A fact of a
 * probe is taken from the program that the probe names and from no other. Those that end in
 * _2 are a second run of the same program. */
/* clang-format off */
#define SELFTEST_PROGRAMS(X) \
	X(LOOK,        look) \
	X(CALLS,       calls) \
	X(FILES,       files) \
	X(MARK,        mark) \
	X(MARK_2,      mark) \
	X(HOARD,       hoard) \
	X(HOARD_CHILD, hoard_child) \
	X(STORE,       store) \
	X(INODES,      inodes) \
	X(SPIN,        spin) \
	X(SPAWN,       spawn) \
	X(LINGER,      linger) \
	X(LEAVE,       linger) \
	X(HANG,        hang) \
	X(STOP,        hang) \
	X(BUDGET,      spin) \
	X(FLOOD,       flood) \
	X(FORGE,       forge)

/* X(layer, who says it, name, what it must be, what it checks)
 *
 * Who: a program above, or HOST: seen or measured out here. What it must be: words separated by
 * "|"; "<=N", a number of at most N; "!NAME", another namespace than this process's. API is no
 * layer: what a reply promises. */
#define SELFTEST_PROBES(X) \
	SELFTEST_NAMESPACES(X) \
	SELFTEST_FILES(X) \
	SELFTEST_RESOURCES(X) \
	SELFTEST_RIGHTS(X) \
	SELFTEST_PROMISES(X)

#define SELFTEST_NAMESPACES(X) \
	X(USER_NS, LOOK, "ns.user", "!user", "the program says that its user namespace is not the host's") \
	X(USER_NS, HOST, "seen.ns.user", "!user", "seen from outside, its user namespace is not the host's") \
	X(USER_NS, HOST, "seen.uid_map", "two ids", "no host id but the two of its cell is mapped into it") \
	X(USER_NS, HOST, "seen.gid_map", "two ids", "no host group but the two of its cell is mapped into it") \
	X(USER_NS, HOST, "seen.setgroups", "deny", "groups cannot be dropped to gain what they deny") \
	X(PID_NS, LOOK, "ns.pid", "!pid", "the program says that its pid namespace is not the host's") \
	X(PID_NS, HOST, "seen.ns.pid", "!pid", "seen from outside, its pid namespace is not the host's") \
	X(PID_NS, HOST, "seen.pid.levels", "2", "its processes have numbers of their own") \
	X(PID_NS, LOOK, "pid.number", "2", "the program is process 2 of its cell") \
	X(PID_NS, LOOK, "pid.parent", "0", "its parent is outside of what it can name") \
	X(PID_NS, LOOK, "pid.caller", "ESRCH", "a process of the host cannot be signalled by its number") \
	X(PID_NS, LOOK, "pid.init", "EPERM", "the cell's init cannot be killed") \
	X(PID_NS, LOOK, "pid.init.memory", "ENOENT|EACCES|EPERM", "the memory of the cell's init cannot be opened") \
	X(PID_NS, LOOK, "pid.init.root", "ENOENT|EACCES|EPERM", "there is no way out through the root of the cell's init") \
	X(MOUNT_NS, LOOK, "ns.mnt", "!mnt", "the program says that its mount namespace is not the host's") \
	X(MOUNT_NS, HOST, "seen.ns.mnt", "!mnt", "seen from outside, its mount namespace is not the host's") \
	X(MOUNT_NS, HOST, "seen.mounts", "own", "none of the host's file systems is mounted in it but read-only pieces") \
	X(MOUNT_NS, LOOK, "mount.canary", "ENOENT", "a file of the host that all may read cannot be found") \
	X(MOUNT_NS, LOOK, "mount.parents", "ENOENT", "it cannot be found by climbing out of the working directory either") \
	X(MOUNT_NS, LOOK, "mount.root", "True", "the parent of the root is the root") \
	X(IPC_NS, LOOK, "ns.ipc", "!ipc", "the program says that its ipc namespace is not the host's") \
	X(IPC_NS, HOST, "seen.ns.ipc", "!ipc", "seen from outside, its ipc namespace is not the host's") \
	X(IPC_NS, LOOK, "ipc.shm", "empty", "no shared memory of anybody is in sight") \
	X(UTS_NS, LOOK, "ns.uts", "!uts", "the program says that its uts namespace is not the host's") \
	X(UTS_NS, HOST, "seen.ns.uts", "!uts", "seen from outside, its uts namespace is not the host's") \
	X(UTS_NS, LOOK, "uts.name", "glovebox", "the host's name is not shown") \
	X(CGROUP_NS, LOOK, "ns.cgroup", "!cgroup", "the program says that its cgroup namespace is not the host's") \
	X(CGROUP_NS, HOST, "seen.ns.cgroup", "!cgroup", "seen from outside, its cgroup namespace is not the host's") \
	X(CGROUP_NS, LOOK, "cgroup.path", "/", "where its groups lie on the host is not shown") \
	X(CGROUP_NS, LOOK, "cgroup.mounted", "ENOENT", "no control group file can be reached") \
	X(NET_NS, LOOK, "ns.net", "!net", "the program says that its network namespace is not the host's") \
	X(NET_NS, HOST, "seen.ns.net", "!net", "seen from outside, its network namespace is not the host's") \
	X(NET_NS, FILES, "net.interfaces", "lo", "there is no interface but its own loopback") \
	X(NET_NS, FILES, "net.host.tcp", "ECONNREFUSED", "a server on the host's loopback cannot be reached") \
	X(NET_NS, HOST, "seen.net.tcp", "nobody", "nobody has come to the server on the host's loopback") \
	X(NET_NS, FILES, "net.host.abstract", "ECONNREFUSED", "an abstract socket of the host cannot be reached") \
	X(NET_NS, HOST, "seen.net.abstract", "nobody", "nobody has come to the abstract socket of the host") \
	X(NET_NS, FILES, "net.beyond", "ENETUNREACH", "there is no way to an address beyond the host") \
	X(NET_NS, FILES, "net.metadata", "ENETUNREACH", "there is no way to a cloud's metadata service") \
	X(NET_NS, FILES, "net.gateway", "ENETUNREACH", "there is no way to a private network") \
	X(NET_NS, FILES, "net.beyond6", "ENETUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT", "there is no way anywhere over IPv6") \
	X(NET_NS, FILES, "net.listeners", "0", "no socket of the host is listed") \
	X(NET_NS, FILES, "net.routes", "0", "there is no route") \
	X(NET_NS, FILES, "net.loopback", "done", "loopback itself works, so that the refusals say something")

#define SELFTEST_FILES(X) \
	X(ROOT, FILES, "create.top", "EROFS", "no file can be made in /") \
	X(ROOT, FILES, "create.usr", "EROFS", "no file can be made in /usr") \
	X(ROOT, FILES, "create.usr.bin", "EROFS", "no file can be made in /usr/bin") \
	X(ROOT, FILES, "create.usr.lib", "EROFS", "no file can be made in /usr/lib") \
	X(ROOT, FILES, "create.etc", "EROFS", "no file can be made in /etc") \
	X(ROOT, FILES, "create.dev", "EROFS", "no file can be made in /dev") \
	X(ROOT, FILES, "create.var", "EROFS", "no file can be made in /var") \
	X(ROOT, FILES, "create.home", "EROFS", "no file can be made in /home") \
	X(ROOT, FILES, "create.run", "EROFS", "no file can be made in /run") \
	X(ROOT, FILES, "env.write", "EROFS", "a program of the host cannot be opened for writing") \
	X(ROOT, FILES, "env.truncate", "EROFS", "a program of the host cannot be cut off") \
	X(ROOT, FILES, "env.chmod", "EROFS", "a program of the host cannot get another mode") \
	X(ROOT, FILES, "env.utime", "EROFS", "a program of the host cannot get other times") \
	X(ROOT, FILES, "env.unlink", "EROFS", "a program of the host cannot be removed") \
	X(ROOT, FILES, "env.setxattr", "EROFS", "a program of the host cannot be given an attribute") \
	X(ROOT, FILES, "env.rename", "EROFS", "a program of the host cannot be renamed") \
	X(ROOT, FILES, "env.link", "EROFS", "a program of the host cannot be linked to") \
	X(ROOT, FILES, "readonly.top", "True", "/ is mounted read-only") \
	X(ROOT, FILES, "readonly.usr.bin", "True", "/usr/bin is mounted read-only") \
	X(ROOT, FILES, "readonly.usr.lib.python3", "True", "the interpreter's modules are mounted read-only") \
	X(ROOT, FILES, "readonly.dev", "True", "/dev is mounted read-only") \
	X(ROOT, HOST, "seen.writable", "/dev/shm /tmp /workspace", "seen from outside, three places are writable and no other") \
	X(ROOT, HOST, "seen.overlay", "overlay ro", "seen from outside, its root is a read-only overlay") \
	X(ROOT, FILES, "dev.names", "fd full null random shm stderr stdin stdout urandom zero", "/dev has ten names, no disk and no terminal") \
	X(ROOT, FILES, "dev.null", "True", "/dev/null is the device") \
	X(ROOT, FILES, "exec.workspace", "EACCES", "what was written to /workspace cannot be executed") \
	X(ROOT, FILES, "exec.tmp", "EACCES", "what was written to /tmp cannot be executed") \
	X(ROOT, FILES, "exec.dev.shm", "EACCES", "what was written to /dev/shm cannot be executed") \
	X(ROOT, FILES, "map.workspace", "EPERM|EACCES", "what was written to /workspace cannot be mapped as code") \
	X(ROOT, FILES, "map.tmp", "EPERM|EACCES", "what was written to /tmp cannot be mapped as code") \
	X(ROOT, FILES, "map.dev.shm", "EPERM|EACCES", "what was written to /dev/shm cannot be mapped as code") \
	X(ROOT, FILES, "sys.absent", "ENOENT", "there is no /sys") \
	X(PROC, FILES, "create.proc", "ENOENT|EACCES|EROFS|EPERM", "no file can be made in /proc") \
	X(PROC, FILES, "readonly.proc", "True", "/proc is mounted read-only") \
	X(PID_NS, LOOK, "pid.others", "1", "/proc shows no process but the program's own") \
	X(PROC, FILES, "write.core", "ENOENT|EROFS|EACCES|EPERM", "core_pattern cannot be written") \
	X(PROC, FILES, "write.modprobe", "ENOENT|EROFS|EACCES|EPERM", "modprobe's path cannot be written") \
	X(PROC, FILES, "write.oom", "EROFS|EACCES|EPERM", "the program cannot save itself from the OOM killer") \
	X(PROC, FILES, "write.map", "EROFS|EACCES|EPERM", "its id map cannot be written again") \
	SELFTEST_COVERED(X) \
	X(LANDLOCK, FILES, "char.workspace", "EACCES", "the refusal of a character device in /workspace is Landlock's") \
	X(LANDLOCK, FILES, "char.tmp", "EACCES", "the refusal of a character device in /tmp is Landlock's") \
	X(LANDLOCK, FILES, "char.dev.shm", "EACCES", "the refusal of a character device in /dev/shm is Landlock's") \
	X(LANDLOCK, FILES, "block.workspace", "EACCES", "the refusal of a block device in /workspace is Landlock's") \
	X(LANDLOCK, FILES, "block.tmp", "EACCES", "the refusal of a block device in /tmp is Landlock's") \
	X(LANDLOCK, FILES, "block.dev.shm", "EACCES", "the refusal of a block device in /dev/shm is Landlock's")

/* Names below /proc that must be covered where the host has them; the program is given the list.
 * P(macro of the caller, name) */
#define SELFTEST_COVERS(P, X) \
	P(X, "kcore") P(X, "kallsyms") P(X, "kmsg") P(X, "keys") P(X, "key-users") \
	P(X, "sysrq-trigger") P(X, "timer_list") P(X, "interrupts") P(X, "modules") \
	P(X, "cmdline") P(X, "config.gz") P(X, "iomem") P(X, "ioports") P(X, "slabinfo") \
	P(X, "swaps") P(X, "partitions") P(X, "diskstats") P(X, "vmstat") P(X, "zoneinfo") \
	P(X, "locks") P(X, "consoles") P(X, "crypto") P(X, "devices") P(X, "softirqs") \
	P(X, "sys") P(X, "sysvipc") P(X, "bus") P(X, "irq") P(X, "fs") P(X, "driver") P(X, "tty")
#define SELFTEST_COVERED_ROW(X, name) \
	X(PROC, FILES, "proc." name, "covered|ENOENT", "/proc/" name " shows nothing of the host")
#define SELFTEST_COVERED(X) SELFTEST_COVERS(SELFTEST_COVERED_ROW, X)

#define SELFTEST_RESOURCES(X) \
	X(MEMORY, HOST, "seen.memory", "bounded", "seen from outside, its group has a memory limit") \
	X(MEMORY, HOST, "hoard.verdict", "memory_exceeded oom_kill 137", "a program that takes more than its limit is stopped, and the verdict says so") \
	X(MEMORY, HOST, "hoard.peak", "bounded", "a program that takes memory never has more than its limit") \
	X(MEMORY, HOST, "hoard.left", "0", "nothing is left of a program that was stopped for its memory") \
	X(MEMORY, HOST, "hoard_child.verdict", "memory_exceeded oom_kill 137", "a program whose child takes the memory is stopped, and the verdict says so") \
	X(MEMORY, HOST, "store.verdict", "bounded", "memory cannot be taken as files in its place") \
	X(MEMORY, INODES, "inodes.end", "ENOSPC", "the number of files in /workspace has an end") \
	X(MEMORY, HOST, "seen.oom_score", "1000", "the kernel chooses it before anything of the host") \
	X(SWAP, HOST, "seen.swap", "bounded|no swap", "seen from outside, it gets no swap beyond its limit") \
	X(CPU, HOST, "seen.cpu", "bounded", "seen from outside, its group has a CPU quota") \
	X(CPU, HOST, "spin.share", "bounded", "a loop without end gets no more than its share") \
	X(CPU, HOST, "spin.throttled", "yes", "the kernel counts how the loop was held back") \
	X(PIDS, HOST, "seen.pids", "bounded", "seen from outside, its group has a limit of processes") \
	X(PIDS, SPAWN, "fork.end", "EAGAIN", "a fork beyond the limit is refused") \
	X(PIDS, SPAWN, "fork.count", "7", "the limit of 8 leaves 7 beside the program") \
	X(PIDS, SPAWN, "thread.end", "refused", "a thread beyond the limit is refused") \
	X(PIDS, SPAWN, "thread.count", "7", "threads count as processes do") \
	X(PIDS, HOST, "spawn.refused", "yes", "the kernel counts the refused forks in the group") \
	X(KILL, HOST, "seen.kill", "yes", "its group can be killed in one step") \
	X(KILL, HOST, "linger.verdict", "timeout wall_timeout 124", "children that mean to stay do not keep a run from being ended") \
	X(KILL, HOST, "linger.left", "0", "none of those children is left, also not the stopped one") \
	X(KILL, HOST, "leave.verdict", "success exit 0", "a program that leaves such children behind ends as itself") \
	X(KILL, HOST, "leave.seen", "yes", "children of a program that ends itself live while it runs") \
	X(KILL, HOST, "leave.left", "0", "none of those children lives on after it") \
	X(WATCHDOG, HOST, "hang.verdict", "timeout wall_timeout 124", "a program that ignores every signal is ended when its time is up") \
	X(WATCHDOG, HOST, "hang.time", "bounded", "the outside's clock ends it within a second of that") \
	X(WATCHDOG, HOST, "stop.verdict", "timeout wall_timeout 124", "a program that has stopped itself is ended when its time is up") \
	X(WATCHDOG, HOST, "spin.verdict", "timeout wall_timeout 124", "a loop without end is ended when its time is up") \
	X(WATCHDOG, HOST, "budget.verdict", "timeout cpu_timeout 124", "a budget of CPU time ends a program before its time is up")

#define SELFTEST_RIGHTS(X) \
	X(CAPS, LOOK, "caps.CapInh", "0000000000000000", "no capability is inheritable") \
	X(CAPS, LOOK, "caps.CapPrm", "0000000000000000", "no capability is permitted") \
	X(CAPS, LOOK, "caps.CapEff", "0000000000000000", "no capability is effective") \
	X(CAPS, LOOK, "caps.CapBnd", "0000000000000000", "no capability is in the bounding set") \
	X(CAPS, LOOK, "caps.CapAmb", "0000000000000000", "no capability is ambient") \
	X(CAPS, HOST, "seen.CapInh", "0000000000000000", "seen from outside, no capability is inheritable") \
	X(CAPS, HOST, "seen.CapPrm", "0000000000000000", "seen from outside, no capability is permitted") \
	X(CAPS, HOST, "seen.CapEff", "0000000000000000", "seen from outside, no capability is effective") \
	X(CAPS, HOST, "seen.CapBnd", "0000000000000000", "seen from outside, no capability is in the bounding set") \
	X(CAPS, LOOK, "caps.setuid", "EPERM", "it cannot become root") \
	X(CAPS, LOOK, "caps.setresuid", "EPERM", "it cannot become root by setresuid()") \
	X(CAPS, LOOK, "caps.setgid", "EPERM", "it cannot become of root's group") \
	X(CAPS, LOOK, "caps.setgroups", "EPERM", "it cannot take further groups") \
	X(CAPS, LOOK, "caps.chown", "EPERM", "it cannot give a file away") \
	X(CAPS, LOOK, "caps.nice", "EACCES|EPERM", "it cannot go first") \
	X(CAPS, LOOK, "caps.port", "EACCES", "it cannot take a port below 1024") \
	X(CAPS, LOOK, "caps.exec", "0000000000000000", "an exec gives no capability back") \
	X(NNP, LOOK, "nnp.status", "1", "the program says that no exec can give it privileges") \
	X(NNP, LOOK, "nnp.prctl", "1", "prctl() says that no exec can give it privileges") \
	X(NNP, HOST, "seen.NoNewPrivs", "1", "seen from outside, no exec can give it privileges") \
	X(NNP, LOOK, "nnp.exec", "1", "what it executes cannot gain privileges either") \
	X(NNP, LOOK, "nnp.off", "EINVAL|EPERM", "that cannot be switched off") \
	X(ROOT, FILES, "nosuid.top", "True", "set-user-ID files in / are void") \
	X(ROOT, FILES, "nosuid.usr.bin", "True", "set-user-ID files in /usr/bin are void") \
	X(ROOT, FILES, "nosuid.dev", "True", "set-user-ID files in /dev are void") \
	X(ROOT, FILES, "nosuid.workspace", "True", "set-user-ID files in /workspace are void") \
	X(ROOT, FILES, "nosuid.tmp", "True", "set-user-ID files in /tmp are void") \
	X(ROOT, FILES, "nosuid.dev.shm", "True", "set-user-ID files in /dev/shm are void") \
	X(SECCOMP, LOOK, "seccomp.status", "2", "the program says that a filter is on") \
	X(SECCOMP, HOST, "seen.Seccomp", "2", "seen from outside, a filter is on") \
	X(SECCOMP, FILES, "whiteout.workspace", "EPERM", "the filter refuses a whiteout in /workspace") \
	X(SECCOMP, FILES, "whiteout.tmp", "EPERM", "the filter refuses a whiteout in /tmp") \
	X(SECCOMP, FILES, "whiteout.dev.shm", "EPERM", "the filter refuses a whiteout in /dev/shm") \
	X(SECCOMP, LOOK, "seccomp.exec", "2", "the filter stays on over an exec") \
	X(RLIMITS, LOOK, "rlimit.CORE", "1", "core dumps are off, also where they would go to a pipe") \
	X(RLIMITS, LOOK, "rlimit.NOFILE", "<=256", "open files are bounded") \
	X(RLIMITS, LOOK, "rlimit.MEMLOCK", "<=65536", "locked memory is bounded") \
	X(RLIMITS, LOOK, "rlimit.MSGQUEUE", "0", "there are no message queues") \
	X(RLIMITS, LOOK, "rlimit.SIGPENDING", "<=256", "pending signals are bounded") \
	X(RLIMITS, LOOK, "rlimit.NICE", "0", "its priority cannot be raised") \
	X(RLIMITS, LOOK, "rlimit.RTPRIO", "0", "real-time priority is out of reach") \
	X(RLIMITS, LOOK, "rlimit.STACK", "<=8388608", "the stack is bounded") \
	X(RLIMITS, LOOK, "rlimit.FSIZE", "<=67108864", "a file is no larger than the memory limit") \
	X(RLIMITS, LOOK, "rlimit.CPU", "<=200", "CPU seconds have a second net") \
	X(RLIMITS, LOOK, "rlimit.NPROC", "<=64", "processes have a second net") \
	X(RLIMITS, LOOK, "raise.NOFILE", "EPERM", "the limit of open files cannot be raised") \
	X(RLIMITS, LOOK, "raise.NPROC", "EPERM", "the limit of processes cannot be raised") \
	X(RLIMITS, LOOK, "raise.FSIZE", "EPERM", "the limit of a file's size cannot be raised") \
	X(RLIMITS, LOOK, "raise.CORE", "EPERM", "the limit of core dumps cannot be raised") \
	X(RLIMITS, LOOK, "raise.MEMLOCK", "EPERM", "the limit of locked memory cannot be raised") \
	X(RLIMITS, LOOK, "rlimit.files", "EMFILE", "opening more files ends in an error") \
	X(RLIMITS, LOOK, "rlimit.lock", "ENOMEM|EPERM|EAGAIN", "locking more memory ends in an error") \
	X(RLIMITS, LOOK, "rlimit.far", "EFBIG", "writing far into a file ends in an error") \
	X(RLIMITS, LOOK, "rlimit.dump", "none", "a crash leaves no core") \
	X(RLIMITS, HOST, "seen.nofile", "<=256", "seen from outside, open files are bounded") \
	X(UIDS, LOOK, "uids.uid", "1000 1000 1000", "the program is user 1000 of its cell") \
	X(UIDS, LOOK, "uids.gid", "1000 1000 1000", "the program is of group 1000 of its cell") \
	X(UIDS, LOOK, "uids.groups", "0", "the program is of no further group") \
	X(UIDS, HOST, "seen.uid", "one, nobody's", "outside it is one user, whom no account of the host has") \
	X(UIDS, HOST, "seen.gid", "one, nobody's", "outside it is of one group, which no group of the host is") \
	X(UIDS, HOST, "seen.subuid", "nobody's", "no range of subordinate users has its number") \
	X(UIDS, HOST, "seen.subgid", "nobody's", "no range of subordinate groups has its number") \
	X(UIDS, HOST, "seen.range", "yes", "its number lies above all that people are given")

#define SELFTEST_PROMISES(X) \
	X(API, HOST, "hang.stdout", "kept", "what was written before the time was up is there") \
	X(API, HOST, "flood.stdout.kept", "<=65536", "of a flood, no more is kept of stdout than was set") \
	X(API, HOST, "flood.stdout.total", "4194304", "every byte of a flood on stdout is counted") \
	X(API, HOST, "flood.stdout.dropped", "exact", "what was dropped of a flood is what was not kept") \
	X(API, HOST, "flood.stderr.kept", "<=65536", "of a flood, no more is kept of stderr than was set") \
	X(API, HOST, "flood.stderr.total", "4194304", "every byte of a flood on stderr is counted") \
	X(API, HOST, "flood.verdict", "error exit 7", "the exit code is the program's own") \
	X(API, HOST, "forge.verdict", "error signal 137", "a program that kills itself is no program that was stopped") \
	X(API, LOOK, "api.environment", "HOME LANG MPLBACKEND MPLCONFIGDIR OPENBLAS_NUM_THREADS PATH PYTHONUNBUFFERED", "its environment has what the runtime lists and nothing of the host's") \
	X(API, LOOK, "api.directory", "/workspace", "it begins in /workspace") \
	X(API, LOOK, "api.files", "far main.py owned|main.py owned", "/workspace holds nothing but its own file and what it made") \
	X(API, LOOK, "api.descriptors", "none", "it has stdin, stdout and stderr and no other descriptor") \
	X(API, HOST, "seen.descriptors", "3", "seen from outside, it has three descriptors") \
	X(API, LOOK, "api.session", "True", "it leads a session of its own, without a terminal") \
	X(API, MARK, "mark.workspace", "not found", "the first program finds /workspace clean") \
	X(API, MARK_2, "mark.workspace", "not found", "the second program finds nothing of the first in /workspace") \
	X(API, MARK_2, "mark.tmp", "not found", "the second program finds nothing of the first in /tmp") \
	X(API, MARK_2, "mark.dev.shm", "not found", "the second program finds nothing of the first in /dev/shm") \
	X(API, MARK_2, "mark.var.tmp", "not found", "the second program finds nothing of the first in /var/tmp") \
	X(API, MARK_2, "mark.home", "not found", "the second program finds nothing of the first in /home") \
	X(API, MARK_2, "mark.run", "not found", "the second program finds nothing of the first in /run") \
	X(API, MARK_2, "mark.process", "2", "the second program's processes are numbered as the first one's were") \
	X(API, MARK_2, "mark.lock", "done", "a lock that the first one held is not felt") \
	X(API, HOST, "mark.left", "0", "a child that the first one left is gone") \
	X(API, HOST, "seen.start", "as meant", "seen from outside, its interpreter was started as these probes mean it") \
	X(API, HOST, "end.supervisor", "gone", "after all runs the process that made the cells has ended") \
	X(API, HOST, "end.groups", "gone|empty", "after all runs no process is left in their control groups")
/* clang-format on */
