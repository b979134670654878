"""The zygote's memory lies in a file that its children map (src/box/zygote/share.h). What
programs and the C library do with memory works there as anywhere."""
import glob
import textwrap

FLAGS = ["--cold=false", "--pool-size", "2"]


def run(server, code):
    reply = server.run(textwrap.dedent(code), memory_limit_mb=256)
    assert (reply["status"], reply["stderr"]) == ("success", ""), reply
    return reply["stdout"]


def await_warm(server):
    from harness.poll import wait_for
    wait_for("ready warm cells", lambda: server.health().json()["warm"] == "on" and
             server.health().json()["ready_cells"] == 2)


def test_the_heap_of_a_warm_cell_lies_in_a_file_that_it_cannot_open(server):
    await_warm(server)
    out = run(server, """
        lines = [l.split() for l in open("/proc/self/maps")]
        shared = [l for l in lines if l[1] == "rw-p" and len(l) > 5 and l[5].startswith("/") and l[-1] == "(deleted)"]
        print(len(shared) > 0, len({l[4] for l in shared}))
        try:
            open("/proc/self/map_files/" + shared[0][0])
        except OSError as e:
            print(type(e).__name__)
    """).split()
    assert out[:2] == ["True", "1"]
    assert out[2] in ("PermissionError", "FileNotFoundError")


def test_memory_that_was_trimmed_away_comes_back_as_zeros_from_calloc(server):
    assert run(server, """
        import ctypes
        libc = ctypes.CDLL(None)
        libc.malloc.restype = libc.calloc.restype = ctypes.c_void_p
        libc.malloc.argtypes, libc.calloc.argtypes = [ctypes.c_size_t], [ctypes.c_size_t] * 2
        libc.free.argtypes = [ctypes.c_void_p]
        bad = 0
        for size in 24, 700, 5000, 40000, 100000, 300000:
            for again in range(3):
                blocks = [libc.malloc(size) for _ in range(60)]
                for b in blocks:
                    ctypes.memset(b, 0xa5, size)
                for b in blocks[::2] + blocks[1::2]:
                    libc.free(b)
                libc.malloc_trim(0)
                blocks = [libc.calloc(1, size) for _ in range(60)]
                bad += sum(ctypes.string_at(b, size) != bytes(size) for b in blocks)
                for b in blocks:
                    libc.free(b)
        print(bad)
    """) == "0\n"


def test_the_heap_grows_and_shrinks_beyond_what_the_zygote_had(server):
    assert run(server, """
        import ctypes, gc
        keep = []
        for turn in range(3):
            keep = [bytes([turn]) * 60_000 for _ in range(500)]
            assert all(b == bytes([turn]) * 60_000 for b in keep)
            keep = None
            gc.collect()
            ctypes.CDLL(None).malloc_trim(0)
        big = bytearray(1000)
        for n in range(1, 60):
            big += bytes([n]) * 100_000
        print(len(big), big[-1], sum(big[1000::100_000]))
    """) == f"{1000 + 59 * 100_000} 59 {sum(range(1, 60))}\n"


SHOW = "import decimal, json, string; print(string.ascii_lowercase, decimal.getcontext().prec, json.dumps([1]))"
OVERWRITE = """
    import ctypes, string
    ctypes.memset(id(string.ascii_lowercase) + 48, 0x58, 26)
    print(string.ascii_lowercase)
"""


def test_what_one_run_writes_into_its_memory_no_other_finds(server):
    before = run(server, SHOW)
    assert run(server, OVERWRITE) == "X" * 26 + "\n"
    assert [run(server, SHOW) for _ in range(4)] == [before] * 4


def test_a_ready_cell_costs_at_most_three_megabytes(serve):
    """Its init and its parked interpreter, rehearsed; of what cells share, its share of a pool
    of eight."""
    from harness import census
    from harness.poll import wait_for
    s = serve("--cold=false", "--pool-size", "8")
    top = sorted(s.groups)[0]

    def pss_kb(pid):
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("Pss:"))

    def of_full_pool():
        mains = [pid for leaf in glob.glob(f"{top}/c[0-9]*") for pid in census.populated([leaf])]
        health = s.health().json()
        if len(mains) != 8 or health["warm"] != "on" or health["ready_cells"] != 8:
            return None
        return mains + [pid for group in s.groups for pid in census.populated([f"{group}/inits"])]

    pids = wait_for("eight ready cells", of_full_pool)
    assert len(pids) == 16
    assert sum(map(pss_kb, pids)) / 8 <= 3 * 1024
