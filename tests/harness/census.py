"""What one server holds on this host, counted from outside: processes, control
groups, mounts and descriptors.

Every test server has a range of host uids to itself (--uid-base), so its cells and
its front are recognised by uid, whoever their parent is by now, and other servers on
the same host do not disturb the count."""
import os
import re
from pathlib import Path

UID_RANGE = 65536
CGROUP_ROOT = Path("/sys/fs/cgroup")


def _status(pid):
    fields = {}
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as f:
            for line in f:
                key, _, value = line.partition(":")
                fields[key] = value.strip()
    except OSError:  # it ended while we looked
        return None
    return fields


def _snapshot():
    """{pid: status fields} of every process that is not a zombie."""
    found = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            fields = _status(int(entry))
            if fields and not fields.get("State", "Z").startswith("Z"):
                found[int(entry)] = fields
    return found


def cmdline(pid):
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [a.decode("utf-8", "replace") for a in raw.split(b"\0")[:-1]]


def processes(uid_base, root_pid):
    """{pid: name} of the server's processes: root_pid, all that descend from it, and
    all that carry a uid of its range."""
    snap = _snapshot()
    mine = {root_pid} & snap.keys()
    grew = True
    while grew:
        grew = False
        for pid, fields in snap.items():
            if pid not in mine and int(fields.get("PPid", 0)) in mine:
                mine.add(pid)
                grew = True
    for pid, fields in snap.items():
        uids = [int(u) for u in fields.get("Uid", "").split()]
        if any(uid_base <= u < uid_base + UID_RANGE for u in uids):
            mine.add(pid)
    return {pid: snap[pid].get("Name", "?") for pid in mine}


def _is_parked(pid, fields):
    """Whether this is the first process of a ready cell, which waits for a program: until one
    comes its file is empty, and descriptor 3 leads to the supervisor."""
    if fields.get("NSpid", "").split()[-1:] != ["2"]:
        return False
    try:
        return all(e.stat().st_size == 0 for e in os.scandir(f"/proc/{pid}/root/workspace")) and \
            os.readlink(f"/proc/{pid}/fd/3").startswith("socket:")
    except OSError:  # it ends, or its program has begun in this moment
        return False


def program_processes(uid_base, name="python3"):
    """Pids of the untrusted programs: a uid of the range, an interpreter's name, and a program
    to run."""
    found = []
    for pid, fields in _snapshot().items():
        uids = [int(u) for u in fields.get("Uid", "").split()]
        if uids and all(uid_base <= u < uid_base + UID_RANGE for u in uids) and \
                fields.get("Name", "").startswith(name) and not _is_parked(pid, fields):
            found.append(pid)
    return found


def zygotes(root_pid):
    """Pids of the warm interpreters: children of the supervisor in its own pid namespace."""
    return [pid for pid, fields in _snapshot().items()
            if int(fields.get("PPid", 0)) == root_pid and fields.get("Name") == "python3"
            and len(fields.get("NSpid", "").split()) == 1]


def cpu_seconds(pid):
    """What this process, without its children, has used of the CPU."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cell_inits(uid_base, root_pid):
    """Pids of the processes that are process 1 of a cell."""
    snap = _snapshot()
    return [pid for pid in processes(uid_base, root_pid)
            if pid in snap and len(snap[pid].get("NSpid", "").split()) > 1
            and snap[pid]["NSpid"].split()[-1] == "1"]


def role_pids(root_pid, role):
    """Children of root_pid that were started as `@role`."""
    return [pid for pid, fields in _snapshot().items()
            if int(fields.get("PPid", 0)) == root_pid and f"@{role}" in cmdline(pid)]


def instance_groups(root_pid):
    """{path: inode} of the instance's groups, read off the supervisor's descriptors."""
    groups = {}
    try:
        fds = os.listdir(f"/proc/{root_pid}/fd")
    except OSError:
        return groups
    for fd in fds:
        try:
            target = os.readlink(f"/proc/{root_pid}/fd/{fd}")
        except OSError:
            continue
        m = re.match(r"(/sys/fs/cgroup/.*?/?glovebox\.\d+)(/|$)", target)
        if m:
            try:
                groups[m.group(1)] = os.stat(m.group(1)).st_ino
            except OSError:
                pass
    return groups


def instance_bases():
    """Roots of the hierarchies in which instances make groups."""
    names = ("unified", "memory", "cpu", "cpuacct", "pids")
    roots = {os.path.realpath(CGROUP_ROOT / name) for name in names if (CGROUP_ROOT / name).is_dir()}
    return sorted(roots) or [str(CGROUP_ROOT)]


def living_groups(groups):
    """Those of `groups` that still exist (the same inode: a name can be used again)."""
    alive = []
    for path, inode in groups.items():
        try:
            if os.stat(path).st_ino == inode:
                alive.append(path)
        except OSError:
            pass
    return alive


def leaves(groups):
    """Groups below the instance's groups."""
    found = []
    for top in groups:
        for path, dirs, _files in os.walk(top):
            found += [os.path.join(path, d) for d in dirs]
    return sorted(found)


def populated(groups):
    """Pids in any of the groups or below, as the kernel lists them."""
    pids = []
    for top in groups:
        for path, _dirs, _files in os.walk(top):
            try:
                pids += Path(path, "cgroup.procs").read_text().split()
            except OSError:
                pass
    return pids


# (counter, its limit, by how much it may be above that) in a leaf: v2's names, then v1's. The
# kernel charges some pages past memory.max, and a task is charged before it is refused.
LEAF_LIMITS = (("memory.current", "memory.max", 1 << 20), ("memory.usage_in_bytes", "memory.limit_in_bytes", 1 << 20),
               ("pids.current", "pids.max", 1))


def number(leaf, name):
    """What a group's file says; None: there is no such file (any more), or no limit in it."""
    try:
        return int(Path(leaf, name).read_text())
    except (OSError, ValueError):
        return None


def namespaces(pids):
    """Namespaces of these processes, each counted once."""
    found = set()
    for pid in pids:
        for name in ("mnt", "pid", "net", "user", "uts", "ipc", "cgroup"):
            try:
                found.add(os.readlink(f"/proc/{pid}/ns/{name}"))
            except OSError:
                pass  # it ended while we looked
    return found


def ipc_objects():
    """System V segments, queues and sets of the host's own namespace."""
    return sum(len(Path("/proc/sysvipc", name).read_text().splitlines()) - 1 for name in ("shm", "msg", "sem"))


def mounts(pid="self"):
    """Mount points of that process's mount namespace that name glovebox."""
    try:
        lines = Path(f"/proc/{pid}/mountinfo").read_text().splitlines()
    except OSError:
        return []
    return [line.split()[4] for line in lines if "glovebox" in line]


def mount_count(pid):
    return len(Path(f"/proc/{pid}/mountinfo").read_text().splitlines())


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def opened(pid):
    """{descriptor: what it leads to}, to be shown."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            found[int(fd)] = os.readlink(f"/proc/{pid}/fd/{fd}")
        except OSError:
            pass  # it has gone since
    return dict(sorted(found.items()))


def resident_kb(pid, which="VmRSS"):
    """Now; or, "VmHWM", at most until now."""
    return int((_status(pid) or {}).get(which, "0 kB").split()[0])


def private_kb(pid):
    """Memory that is this process's own: what a leak would add to."""
    return int((_status(pid) or {}).get("RssAnon", "0 kB").split()[0])
