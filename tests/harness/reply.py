"""The reply of POST /execute, and what must hold for every one of them."""
import base64

STATUSES = ("success", "timeout", "memory_exceeded", "error")
CAUSES = ("exit", "signal", "wall_timeout", "cpu_timeout", "oom_kill", "cancelled", "compile")
CONTRACT = ("status", "stdout", "stderr", "exit_code", "execution_time_ms", "memory_used_mb")
STATUS_OF = {"wall_timeout": "timeout", "cpu_timeout": "timeout",
             "oom_kill": "memory_exceeded", "signal": "error", "cancelled": "error",
             "compile": "error"}


def is_number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


class Reply(dict):
    """A parsed 200 reply. `wall_s` is what the caller waited."""

    def __init__(self, fields, wall_s=0.0):
        super().__init__(fields)
        self.wall_s = wall_s

    @property
    def memory_most(self):
        """The part of its limit that a run can be said to have used. On v2 the kernel charges the buffers of
        sockets rather than lose a packet, and kills then: 1.13 was seen."""
        return 1.25 if (self["isolation"]["cgroup"], self["cause"]) == ("v2", "oom_kill") else 1.001

    def __getattr__(self, name):
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the reply has no field {name!r}; it has {sorted(self)}") from None

    def raw(self, stream):
        """The exact bytes kept of "stdout" or "stderr"."""
        exact = self["output"][stream].get("base64")
        if exact is not None:
            return base64.b64decode(exact, validate=True)
        return self[stream].encode("utf-8")

    def written(self, stream):
        """Bytes that the program wrote."""
        return self["output"][stream]["bytes"]

    def dropped(self, stream):
        """Of these, bytes that were not kept."""
        return self["output"][stream]["dropped"]

    def check(self):
        """The agreement of fields that every reply owes, whatever the program did."""
        for name in CONTRACT:
            assert name in self, f"the reply lacks {name}: {sorted(self)}"
        assert self["status"] in STATUSES, self["status"]
        assert self["cause"] in CAUSES, self["cause"]
        assert isinstance(self["stdout"], str) and isinstance(self["stderr"], str)
        assert isinstance(self["exit_code"], int) and 0 <= self["exit_code"] <= 255
        assert is_number(self["execution_time_ms"]) and self["execution_time_ms"] >= 0
        assert is_number(self["memory_used_mb"]) and self["memory_used_mb"] >= 0
        assert not any(0xD800 <= ord(c) <= 0xDFFF for c in self["stdout"] + self["stderr"])
        self._check_verdict()
        return self

    def _check_verdict(self):
        status, cause, code = self["status"], self["cause"], self["exit_code"]
        if cause == "exit":
            assert status == ("success" if code == 0 else "error"), self
            assert self["signal"] is None, self
        else:
            assert status == STATUS_OF[cause], self
        if cause == "signal":
            assert self["signal"] is not None and code > 128, self
        if status == "timeout":
            assert code == 124, self
        if status == "memory_exceeded":
            assert code == 137, self
        limits = self["limits"]
        assert self["memory_used_mb"] <= limits["memory_limit_mb"] * self.memory_most, self
