"""A server whose kernel calls fail when the test says so (tests/lib/flaky_page.h)."""
import ctypes
import errno
import mmap
import os
import tempfile

from harness.server import ROOT, Server

BUILD = os.environ.get("GLOVEBOX_BUILD") or str(ROOT / "build")
MAGIC = b"flaky box 1\n\xf5\xa1\x0c\0"
OFF, NTH, RANDOM = 0, 1, 2
ROLES = ["supervisor", "spawn", "init", "enter", "zygote", "python", "child", "collect"]
NAMES = 64


class Page(ctypes.Structure):
    """struct flaky_page."""
    _fields_ = [(name, ctypes.c_uint32) for name in
                ("mode", "roles", "nth", "code", "odds", "shots", "epoch", "calls", "hits")] + \
               [("only_spared", ctypes.c_uint32), ("processes", ctypes.c_uint32), ("passes", ctypes.c_uint32),
                ("unused", ctypes.c_uint32 * 4), ("spared", ctypes.c_char * 64),
                ("hidden", (ctypes.c_char * 32) * 4), ("names", (ctypes.c_char * 24) * NAMES),
                ("by", ctypes.c_uint32 * NAMES)]


class Kernel:
    """What all processes of one server, or of several in turn, look at."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="gbx-flaky-", dir="/var/tmp")
        os.chmod(self.folder.name, 0o755)  # a cell's init looks at it as its own user
        path = f"{self.folder.name}/page"
        with open(path, "w+b") as f:
            f.truncate(mmap.PAGESIZE)
            self._map = mmap.mmap(f.fileno(), mmap.PAGESIZE)
        os.chmod(path, 0o666)
        self.page = Page.from_buffer(self._map)
        with open(f"{BUILD}/tests/torture/glovebox-flaky", "rb") as f:
            image = f.read()
        at = len(MAGIC) + 12
        parts = image.split(MAGIC)
        assert len(parts) == 4, "the program, its box and its zygote's module"
        name = path.encode()
        assert len(name) < 68
        image = parts[0] + b"".join(
            MAGIC + p[:at - len(MAGIC)] + name + p[at - len(MAGIC) + len(name):] for p in parts[1:])
        self.program = f"{self.folder.name}/glovebox"
        with open(self.program, "wb") as f:
            f.write(image)
        os.chmod(self.program, 0o755)

    def server(self, *flags, **kw):
        return Server(*flags, program=self.program, **kw)

    def hide(self, *rules):
        for i in range(4):
            self.page.hidden[i].value = rules[i].encode() if i < len(rules) else b""

    def spare(self, *names, only=False):
        """These calls never fail; with `only`, no others do."""
        self.page.mode = OFF
        self.page.only_spared = only
        self.page.spared = f" {' '.join(names)} ".encode()

    def _arm(self, mode, roles, code, shots, passes=0):
        p = self.page
        p.mode = OFF
        p.roles = sum(1 << ROLES.index(r) for r in roles)
        p.code = getattr(errno, code)
        p.calls = p.hits = 0
        p.shots = shots
        p.passes = passes
        p.epoch += 1
        p.mode = mode

    def fail_nth(self, role, nth, code="EIO", shots=1, passes=0):
        """Call number nth (from 0) of this role, counted from now or from a process's begin; of the
        first processes that come to it so many make it."""
        self.page.mode = OFF
        self.page.nth = nth
        self._arm(NTH, [role], code, shots, passes)

    def fail_at_random(self, roles, odds, code="EIO", shots=1 << 30):
        self.page.mode = OFF
        self.page.odds = int(odds * 65536)
        self._arm(RANDOM, roles, code, shots)

    def heal(self):
        self.page.mode = OFF

    def hits(self):
        """(role, call) of those that failed: the last NAMES of them."""
        p = self.page
        return [(ROLES[p.by[i].bit_length() - 1], p.names[i].value.decode())
                for i in range(min(p.hits, NAMES))]
