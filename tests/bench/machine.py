"""Where the numbers were made."""
import datetime
import os
import platform
import re


def _read(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


def _hypervisor():
    """What the machine says about being one of several: a hint, not proof."""
    hints = []
    if re.search(r"^flags\s*:.*\bhypervisor\b", _read("/proc/cpuinfo"), re.M):
        hints.append("hypervisor flag")
    for path in ("/sys/hypervisor/type", "/sys/class/dmi/id/sys_vendor", "/sys/class/dmi/id/product_name"):
        if text := _read(path).strip():
            hints.append(text)
    return ", ".join(hints) or "none seen"


def _paging():
    flags = re.search(r"^flags\s*:(.*)", _read("/proc/cpuinfo"), re.M)
    return sorted({"ept", "npt", "pcid", "pti"} & set(flags[1].split())) if flags else []


def describe():
    cpu = re.search(r"^model name\s*:\s*(.*)", _read("/proc/cpuinfo"), re.M)
    memory = re.search(r"^MemTotal:\s*(\d+)", _read("/proc/meminfo"), re.M)
    return {
        "cpu": cpu[1] if cpu else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_mb": int(memory[1]) // 1024 if memory else None,
        "kernel": platform.release(),
        "virtualization": _hypervisor(),
        "cpu_flags": _paging(),
        "cgroup": "v2" if os.path.exists("/sys/fs/cgroup/cgroup.controllers") else "v1",
        "python": platform.python_version(),
        "load_before": os.getloadavg()[0],
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
    }


def sentence(m):
    return (f"{m['cpu']}, {m['cores']} CPUs, {m['memory_mb']} MB; Linux {m['kernel']}; virtualization: "
            f"{m['virtualization']}; cgroup {m['cgroup']}; Python {m['python']}; load before "
            f"{m['load_before']:.2f}; {m['date']}")
