"""What a run leaves in its working directory comes back: new and changed files with size, type,
digest and content; and whatever is left out is named with the reason."""
import base64
import hashlib
import io
import json
import os
import signal
import tarfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import census
from harness.cli import glovebox
from harness.life import servers_by
from harness.poll import wait_for

ROOMY = {"timeout_seconds": 30, "memory_limit_mb": 256, "cpu_limit": 1}
FLAGS_OF = {
    "cold": ["--cold", "--pool-size", "0"],
    "warm": ["--cold=false", "--pool-size", "4"],
}


@pytest.fixture(scope="module")
def servers():
    with servers_by(FLAGS_OF) as get:
        yield get


def run(server, code, artifacts="inline", **body):
    answer = server.post({**ROOMY, "code": code, "artifacts": artifacts, **body})
    assert answer.status == 200, answer
    return answer.json()


def content(file):
    if file["encoding"] == "utf8":
        return file["content"].encode("utf-8")
    assert file["encoding"] == "base64", file
    return base64.b64decode(file["content"], validate=True)


def exact(entry):
    """The path's own bytes."""
    if "path_base64" in entry:
        return base64.b64decode(entry["path_base64"])
    return entry["path"].encode("utf-8")


def files(reply):
    """What came back, by path, each held against its digest."""
    found = {}
    for f in reply["files"]:
        if f["content"] is not None:
            assert len(content(f)) == f["size"], f
            assert hashlib.sha256(content(f)).hexdigest() == f["sha256"], f
        found[exact(f)] = f
    return found


def skipped(reply):
    return {exact(s): s["reason"] for s in reply["skipped"]}


WAYS = pytest.mark.parametrize("way", FLAGS_OF)


@WAYS
def test_new_files_come_back_with_size_type_digest_and_content(servers, way):
    r = run(servers(way), "import os\n"
            "os.makedirs('out/deep')\n"
            "open('out/deep/a.txt', 'w').write('hello')\n"
            "open('b.bin', 'wb').write(bytes(range(256)))\n"
            "open('empty.csv', 'w')\n"
            "print('done')")
    assert (r["status"], r["stdout"], r["skipped"]) == ("success", "done\n", [])
    assert [f["path"] for f in r["files"]] == ["b.bin", "empty.csv", "out/deep/a.txt"]
    found = files(r)
    assert content(found[b"b.bin"]) == bytes(range(256))
    assert (found[b"b.bin"]["mime"], found[b"b.bin"]["encoding"]) == ("application/octet-stream", "base64")
    assert (found[b"empty.csv"]["mime"], found[b"empty.csv"]["content"]) == ("text/csv", "")
    assert (found[b"out/deep/a.txt"]["mime"], found[b"out/deep/a.txt"]["content"]) == ("text/plain", "hello")
    assert r["usage"]["collect_ms"] > 0


@WAYS
def test_a_list_has_everything_but_the_contents(servers, way):
    r = run(servers(way), "open('a.txt', 'w').write('hello')", "list")
    assert [(f["path"], f["size"], f["content"], f["encoding"], f["sha256"]) for f in r["files"]] == [
        ("a.txt", 5, None, None, hashlib.sha256(b"hello").hexdigest())]


@WAYS
@pytest.mark.parametrize("artifacts", ["none", None])
def test_without_being_asked_nothing_is_collected(servers, way, artifacts):
    body = {} if artifacts is None else {"artifacts": artifacts}
    answer = servers(way).post({**ROOMY, "code": "open('a.txt', 'w').write('hello')", **body})
    r = answer.json()
    assert (r["files"], r["skipped"], r["usage"]["collect_ms"], r["warnings"]) == ([], [], 0, [])


@WAYS
@pytest.mark.parametrize("code", [
    "print('hello')",
    "",
    "import json, tempfile; f = tempfile.TemporaryFile(dir='/tmp'); f.write(b'x'); open('/tmp/y', 'w').write('y')",
    "print(open('main.py').read())",
    "import sys; sys.exit(3)",
])
def test_a_run_that_leaves_its_directory_as_it_was_has_no_collector(servers, way, code):
    r = run(servers(way), code)
    assert (r["files"], r["skipped"], r["usage"]["collect_ms"]) == ([], [], 0), r


@WAYS
@pytest.mark.parametrize("code, path, text", [
    # As long as it was, and nothing else is touched.
    ("f = open('main.py', 'r+'); f.write('#'); f.close()\n", "main.py",
     "# = open('main.py', 'r+'); f.write('#'); f.close()\n"),
    ("import mmap; f = open('main.py', 'r+b'); m = mmap.mmap(f.fileno(), 0); m[0:1] = b'#'; m.flush()\n",
     "main.py", None),
    ("import os; os.remove('main.py'); open('main.py', 'w').write('x')\n", "main.py", "x"),
    ("import os; os.rename('main.py', 'other.py')\n", "other.py", None),
    ("import os; os.link('main.py', 'other.py')\n", "other.py", None),
])
def test_whatever_becomes_of_the_programs_own_file_is_seen(servers, way, code, path, text):
    r = run(servers(way), code)
    assert [f["path"] for f in r["files"]] == [path], r
    expected = text if text is not None else ("#" + code[1:] if path == "main.py" else code)
    assert r["files"][0]["content"] == expected


@WAYS
def test_files_that_came_with_the_run_come_back_only_if_they_changed(servers, way):
    r = run(servers(way),
            "open('same.txt').read()\n"
            "open('changed.txt', 'w').write('2')\n"
            "f = open('alike.txt', 'w'); f.write('1'); f.close()\n"
            "import os; os.rename('moved.txt', 'data/moved.txt'); os.remove('gone.txt')\n",
            files=[{"path": p, "content": "1"} for p in
                   ("same.txt", "changed.txt", "alike.txt", "moved.txt", "gone.txt", "data/in.txt")])
    assert [(f["path"], f["content"]) for f in r["files"]] == [("changed.txt", "2"), ("data/moved.txt", "1")]
    assert r["skipped"] == []


@WAYS
def test_files_that_came_with_the_run_and_cannot_be_compared_are_named(servers, way):
    deep = "/".join(["d"] * 102)
    r = run(servers(way), "pass", files=[{"path": "closed", "content": "x", "mode": "000"},
                                         {"path": "write_only", "content": "x", "mode": "222"},
                                         {"path": deep, "content": "x"}, {"path": "plain", "content": "x"}])
    assert r["files"] == [] and skipped(r) == {
        b"closed": "unreadable", b"write_only": "unreadable", deep[:-2].encode(): "too_deep"}, r


@WAYS
def test_a_program_that_is_a_file_of_its_own_is_known_like_the_others(servers, way):
    answer = servers(way).post({**ROOMY, "artifacts": "inline", "entry_point": "app/run.py",
                                "files": [{"path": "app/run.py",
                                           "content": "open('main.py', 'w').write('')"}]})
    assert [f["path"] for f in answer.json()["files"]] == ["main.py"]


@WAYS
@pytest.mark.parametrize("end, status", [
    ("import sys; sys.exit(3)", "error"),
    ("import os; os.kill(os.getpid(), 9)", "error"),
    ("while True: pass", "timeout"),
    ("b = []\nwhile True: b.append(bytearray(b'x' * 1000000))", "memory_exceeded"),
    ("import os\nif os.fork() == 0:\n import time; time.sleep(60)", "success"),
])
def test_files_come_back_however_the_run_ended(servers, way, end, status):
    r = run(servers(way), "f = open('kept.txt', 'w'); f.write('so far'); f.close()\n" + end,
            timeout_seconds=2, memory_limit_mb=64)
    assert r["status"] == status
    assert [(f["path"], f["content"]) for f in r["files"]] == [("kept.txt", "so far")], r


@WAYS
def test_files_that_fill_the_runs_memory_come_back(servers, way):
    r = run(servers(way), "import os\n"
            "for i in range(4):\n"
            "    with open(f'f{i}', 'wb') as f:\n"
            "        for _ in range(13):\n"
            "            f.write(bytes([65 + i]) * (1 << 20))\n"
            "b = bytearray(64 << 20)\n", "list", memory_limit_mb=64)
    assert r["status"] in ("memory_exceeded", "error")
    assert len(r["files"]) == 4 and r["skipped"] == [], r
    assert [f["sha256"] for f in r["files"]] == [
        hashlib.sha256(bytes([65 + i]) * (13 << 20)).hexdigest() for i in range(4)]


ODD = """
import os, socket
os.makedirs('ok/x'); open('ok/x/f', 'w').write('1')
os.symlink('/etc/shadow', 'link'); os.symlink('/etc', 'linkdir'); os.symlink('.', 'loop')
os.symlink('../../../../etc/hostname', 'up'); os.symlink('/proc/1/environ', 'proc')
os.mkfifo('fifo'); os.mkdir('dir.txt')
s = socket.socket(socket.AF_UNIX); s.bind('sock')
open('noread', 'w').write('secret'); os.chmod('noread', 0)
os.mkdir('nodir'); open('nodir/f', 'w').write('y'); os.chmod('nodir', 0)
os.mkdir('nolook'); open('nolook/f', 'w').write('y'); os.chmod('nolook', 0o600)
open('-rf', 'w').write('a'); open('new\\nline', 'w').write('b'); open('\\u202e.txt', 'w').write('c')
open('\\u00e9', 'w').write('1'); open('e\\u0301', 'w').write('2'); open('A', 'w'); open('a', 'w')
open(b'\\xff\\xfe', 'w').write('d')
open('n' * 255, 'w').write('e')
open('setuid', 'w').write('f'); os.chmod('setuid', 0o4777)
os.makedirs('proc.d/self'); os.makedirs('.git/hooks'); open('.git/hooks/post-checkout', 'w').write('#!')
f = os.open('sparse', os.O_CREAT | os.O_WRONLY); os.ftruncate(f, 200 << 20)
os.chmod('.', 0)
"""


@WAYS
def test_odd_files_are_named_and_nothing_is_followed(servers, way):
    r = run(servers(way), ODD)
    assert r["status"] == "success", r
    assert skipped(r) == {
        b"link": "symlink", b"linkdir": "symlink", b"loop": "symlink", b"up": "symlink", b"proc": "symlink",
        b"fifo": "fifo", b"sock": "socket", b"noread": "unreadable", b"nodir": "unreadable",
        b"nolook/f": "unreadable", b"sparse": "too_large"}
    found = files(r)
    assert set(found) == {
        b"ok/x/f", b"-rf", b"new\nline", "\u202e.txt".encode(), "\u00e9".encode(), "e\u0301".encode(), b"A",
        b"a", b"\xff\xfe", b"n" * 255, b"setuid", b".git/hooks/post-checkout"}
    assert found[b"\xff\xfe"]["path"] == "\ufffd\ufffd"
    assert {s["path"]: s["size"] for s in r["skipped"]}["sparse"] == 200 << 20
    order = [exact(f).replace(b"/", b"\0") for f in r["files"]]
    assert order == sorted(order)


@WAYS
def test_a_sparse_file_is_bounded_while_it_is_made_and_named_when_it_is_too_large(servers, way):
    """No program can make one of 2^63 bytes; what the walk makes of one is in tests/unit/test_collect.c."""
    r = run(servers(way), """
import errno, os, resource
f = os.open('sparse', os.O_CREAT | os.O_WRONLY)
for size in (2 ** 63 - 1, 2 ** 62, 2 ** 40):
    try:
        os.ftruncate(f, size)
        print('made', size)
    except OSError as e:
        print(errno.errorcode[e.errno])
most = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
os.ftruncate(f, most)
print(most)
""")
    *refused, most = r["stdout"].split()
    assert refused == ["EFBIG"] * 3, r
    assert [(s["path"], s["size"], s["reason"]) for s in r["skipped"]] == [("sparse", int(most), "too_large")], r


def test_who_collects_has_no_rights(servers):
    server = servers("warm", "--artifact-bytes", "1G", "--artifact-store", "2G", "--cage-runs", "2")
    seen = {}

    def look(pid):
        seen.update(line.split(":\t") for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        seen["fds"] = sorted(census.opened(pid).values())
        seen["root"] = os.listdir(f"/proc/{pid}/root")

    with ThreadPoolExecutor(1) as pool:
        looked = pool.submit(in_the_middle, server, look)
        r = run(server, MANY_TO_READ, "list")
        looked.result()
    assert len(r["files"]) == 60 and r["warnings"] == [], r
    assert {seen[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}, seen
    assert (seen["NoNewPrivs"], seen["Seccomp"], seen["Groups"].strip()) == ("1", "2", ""), seen
    uids = {int(uid) for uid in seen["Uid"].split() + seen["Gid"].split()}
    assert len(uids) == 1 and server.uid_base <= uids.pop() < server.uid_base + 65536, seen
    assert seen["root"] == [], seen


@WAYS
def test_depth_and_length_of_paths_are_bounded_and_what_is_beyond_is_named(servers, way):
    r = run(servers(way, "--artifact-files", "200"), """
import os
for i in range(150):
    os.mkdir('d'); os.chdir('d'); open('f', 'w').write(str(i))
os.chdir('/workspace'); os.mkdir('long'); os.chdir('long')
for i in range(20):
    os.mkdir('x' * 250); os.chdir('x' * 250); open('f', 'w').write(str(i))
""", "list")
    assert (r["status"], r["warnings"]) == ("success", []), r["stderr"]
    assert skipped(r) == {b"d/" * 100 + b"d": "too_deep",
                          b"long/" + b"/".join([b"x" * 250] * 16): "path_too_long"}
    assert len(r["files"]) == 115, len(r["files"])


@WAYS
def test_caps_on_count_size_and_total_name_what_they_leave_out(servers, way):
    server = servers(way, "--artifact-files", "10", "--artifact-file-bytes", "1000",
                     "--artifact-bytes", "5000", "--artifact-inline-bytes", "1500")
    r = run(server, "for i in range(20): open('f%02d' % i, 'w').write(str(i))")
    assert [f["path"] for f in r["files"]] == [f"f{i:02}" for i in range(10)]
    assert skipped(r) == {b"f%02d" % i: "count" for i in range(10, 20)}

    r = run(server, "open('a', 'wb').write(b'x' * 1001); open('b', 'wb').write(b'x' * 1000)")
    assert [(f["path"], f["size"]) for f in r["files"]] == [("b", 1000)]
    assert [(s["path"], s["size"], s["reason"]) for s in r["skipped"]] == [("a", 1001, "too_large")]

    # The linked file counts for each of its names: what is sent is what counts.
    r = run(server, "import os; open('x', 'wb').write(b'y' * 900)\n"
            "for i in range(7): os.link('x', f'x{i}')\n"
            "open('z', 'w').write('small')", "list")
    assert [f["path"] for f in r["files"]] == ["x", "x0", "x1", "x2", "x3", "z"]
    assert skipped(r) == {b"x4": "total_bytes", b"x5": "total_bytes", b"x6": "total_bytes"}


@WAYS
def test_ten_thousand_files_are_all_named(servers, way):
    server = servers(way, "--workspace-inodes", "20000")
    r = run(server, "for i in range(10000): open('f%05d' % i, 'w').close()", "list")
    assert r["status"] == "success", r["cause"]
    assert len(r["files"]) == 100 and len(r["skipped"]) == 9900 and r["warnings"] == [], r["stderr"]
    assert {s["reason"] for s in r["skipped"]} == {"count"}
    assert sorted(e["path"] for e in r["files"] + r["skipped"]) == [f"f{i:05}" for i in range(10000)]


@WAYS
def test_more_names_than_a_reply_should_hold_are_counted(servers, way):
    server = servers(way, "--workspace-inodes", "20000")
    r = run(server, "for i in range(10000): open('%05d' % i + 'n' * 200, 'w').close()", "list")
    more = 10000 - len(r["files"]) - len(r["skipped"])
    assert more > 0
    assert any(f"files: {more} more were left out" in w for w in r["warnings"]), r["warnings"]


@WAYS
def test_a_cage_serves_again_after_its_files_were_collected(servers, way):
    server = servers(way)
    for i in range(5):
        r = run(server, f"open('f', 'w').write('{i}')")
        assert r["files"][0]["content"] == str(i)
        assert run(server, "import os; print(os.listdir('.'))")["stdout"] == "['main.py']\n"


# To read them takes a second or more; being sparse they take no memory.
MANY_TO_READ = "import os\nfor i in range(60):\n    with open(f'f{i:02}', 'wb') as f:\n" \
    "        os.truncate(f.fileno(), 16 << 20)\nprint('done')"
READ_BEFORE_ITS_END = 50 << 20


def in_the_middle(server, act):
    """Do act(pid) to the next collector when it has read some files; its pid."""
    def halfway():
        for pid in map(int, Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text().split()):
            if census.cmdline(pid)[1:2] == ["collect"] and \
                    int(Path(f"/proc/{pid}/io").read_text().split()[1]) > READ_BEFORE_ITS_END:
                return pid
        return None

    pid = wait_for("a collector in the middle of its walk", halfway, pause_s=0.001)
    act(pid)
    return pid


@pytest.mark.parametrize("mode", ["list", "inline"])
@WAYS
def test_a_collector_that_is_killed_costs_the_files_that_it_had_not_sent(servers, way, mode):
    server = servers(way, "--artifact-bytes", "1G", "--artifact-store", "2G", "--cage-runs", "2")
    assert run(server, "open('f', 'w').write('before')")["files"][0]["content"] == "before"
    before = server.rest()
    with ThreadPoolExecutor(1) as pool:
        killed = pool.submit(in_the_middle, server, lambda pid: os.kill(pid, signal.SIGKILL))
        r = run(server, MANY_TO_READ, mode)
        pid = killed.result()
    assert (r["status"], r["cause"], r["stdout"], r["exit_code"]) == ("success", "exit", "done\n", 0), r
    assert r["warnings"] == ["files: collecting them failed; what came before that is in files and skipped, and there may be more"]
    told = [f["path"] for f in r["files"]] + [s["path"] for s in r["skipped"]]
    assert sorted(told) == [f"f{i:02}" for i in range(60)][:len(told)] and 1 <= len(r["files"]) < 60, told
    assert len(r["skipped"]) <= 1 and all(s["reason"] == "failed" for s in r["skipped"]), r["skipped"]
    assert all(f["sha256"] == hashlib.sha256(bytes(16 << 20)).hexdigest() for f in r["files"]), r
    assert f'why="signal {int(signal.SIGKILL)} ended it"' in server.log()
    assert not os.path.exists(f"/proc/{pid}")
    again = run(server, "import os\nprint(os.listdir('.'))\nopen('f', 'w').write('after')")
    assert (again["stdout"], again["warnings"]) == ("['main.py']\n", []), again
    assert [(f["path"], f["content"]) for f in again["files"]] == [("f", "after")], again
    server.settles_to(before)


def test_a_wrong_word_is_refused_with_the_field(servers):
    for value in ("all", "", "inline\0", "INLINE", 1, ["list"], {}, True):
        answer = servers("cold").post({"code": "1", "artifacts": value})
        assert answer.status == 422, value
        (item,) = answer.json()["detail"]
        assert item["loc"] == ["body", "artifacts"], item
        assert item["msg"] == "Input should be 'none', 'list' or 'inline'", item


# Later, by GET ----------------------------------------------------------------------

def kept(servers, way="warm", *flags):
    """A run with files of every sort of name, and its server."""
    server = servers(way, *flags)
    r = run(server, "import os; os.makedirs('out')\n"
            "open('out/a b.txt', 'w').write('hello')\n"
            "open(b'out/\\xff', 'wb').write(b'raw')\n"
            "open('big.bin', 'wb').write(os.urandom(1 << 20) * 5)\n"
            "open('page.html', 'w').write('<script>alert(1)</script>')\n"
            "open('empty', 'w')\n"
            "open('x' * 200 + '.csv', 'w').write('1,2')", "inline")
    assert r["skipped"] == [], r
    return server, r


def test_every_file_can_be_fetched_by_its_href(servers):
    server, r = kept(servers)
    for f in r["files"]:
        answer = server.request("GET", f["href"])
        assert answer.status == 200, answer
        assert hashlib.sha256(answer.body).hexdigest() == f["sha256"]
        assert answer.headers["Content-Type"] == f["mime"]
        assert int(answer.headers["Content-Length"]) == f["size"]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Content-Disposition"].startswith("attachment; filename*=UTF-8''")
        assert "sandbox" in answer.headers["Content-Security-Policy"]
        head = server.request("HEAD", f["href"])
        assert (head.status, head.body, int(head.headers["Content-Length"])) == (200, b"", f["size"])
    big = next(f for f in r["files"] if f["path"] == "big.bin")
    assert big["content"] is None and big["encoding"] is None


def test_all_files_come_as_one_tar(servers):
    server, r = kept(servers)
    answer = server.request("GET", f"/executions/{r['id']}/files.tar")
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/x-tar", answer
    with tarfile.open(fileobj=io.BytesIO(answer.body), errors="surrogateescape") as tar:
        members = tar.getmembers()
        assert [m.name.encode("utf-8", "surrogateescape") for m in members] == [exact(f) for f in r["files"]]
        for m, f in zip(members, r["files"]):
            assert m.isreg() and m.mode == 0o644 and m.uid == 0, m
            assert hashlib.sha256(tar.extractfile(m).read()).hexdigest() == f["sha256"]


@pytest.mark.parametrize("path", [
    "/executions/{id}/files/nothing", "/executions/{id}/files/out", "/executions/{id}/files/../main.py",
    "/executions/{id}/files/out/../out/a%20b.txt", "/executions/{id}/files//etc/passwd",
    "/executions/{id}/files/%2e%2e/x", "/executions/{id}/files/out%00", "/executions/{id}/files/",
    "/executions/{id}/files", "/executions/{id}", "/executions/", "/executions/x/files.tar",
    "/executions/{other}/files.tar", "/executions/{other}/files/out", "/executions/{id}/files.tar/x",
])
def test_what_is_not_kept_is_404(servers, path):
    server, r = kept(servers)
    answer = server.request("GET", path.format(id=r["id"], other="0" * 32))
    assert answer.status == 404 and answer.json()["detail"], answer


def test_a_path_that_is_not_escaped_is_400_and_another_method_405(servers):
    server, r = kept(servers)
    for bad in ("%", "%4", "%zz", "a%f"):
        assert server.request("GET", f"/executions/{r['id']}/files/{bad}").status == 400, bad
    answer = server.request("POST", f"/executions/{r['id']}/files.tar", b"{}")
    assert answer.status == 405 and answer.headers["Allow"] == "GET, HEAD", answer


def test_files_are_kept_for_as_long_as_the_setting_says(servers):
    server, r = kept(servers, "warm", "--artifact-keep", "1s")
    href = f"/executions/{r['id']}/files.tar"
    gone = wait_for("the end of it", lambda: (a := server.request("GET", href)).status == 410 and a)
    assert "no longer" in gone.json()["detail"]


def deleted_files_below(folder, pid):
    return [path for path in census.opened(pid).values() if path.startswith(f"{folder}/") and path.endswith(" (deleted)")]


@pytest.mark.parametrize("who", ["front", "server"])
def test_files_are_on_disk_without_a_name_and_gone_after_a_restart(serve, tmp_path, who):
    flags = ["--artifact-dir", str(tmp_path)]
    tmp_path.chmod(0o755)
    server = serve(*flags)
    r = run(server, "open('a', 'wb').write(b'x' * 100000)", "list")
    href = r["files"][0]["href"]
    assert server.request("GET", href).body == b"x" * 100000
    front = server.front
    assert len(deleted_files_below(tmp_path, front)) == 1 and os.listdir(tmp_path) == []
    if who == "front":
        os.kill(front, signal.SIGKILL)
        wait_for("the next one", lambda: "ev=front_restarted" in server.log() and server.is_ready())
    else:
        assert server.stop() == 0
        server = serve(*flags)
    assert server.request("GET", href).status == 404 and os.listdir(tmp_path) == []
    assert len(deleted_files_below(tmp_path, server.front)) == 1


def test_a_full_store_is_named_and_gets_room_again(servers):
    server = servers("warm", "--artifact-store", "100K", "--artifact-inline-bytes", "10K", "--artifact-keep", "1s")
    code = "for n in 'abc': open(n, 'wb').write(b'x' * 60000)\nopen('d', 'wb').write(b'y' * 5000)"
    r = run(server, code)
    assert [(f["path"], f["href"] is not None) for f in r["files"]] == [("a", True), ("d", True)]
    assert skipped(r) == {b"b": "no_room", b"c": "no_room"}
    wait_for("room", lambda: server.request("GET", r["files"][0]["href"]).status == 410)
    for _ in range(5):
        r = run(server, code)
        assert [f["path"] for f in r["files"]] == ["a", "d"], r
        assert server.request("GET", r["files"][0]["href"]).body == b"x" * 60000
        wait_for("room", lambda: server.request("GET", r["files"][0]["href"]).status == 410)


def test_without_a_store_what_is_not_in_the_reply_is_left_out(servers):
    server = servers("warm", "--artifact-store", "0", "--artifact-inline-bytes", "10")
    r = run(server, "open('a', 'w').write('123'); open('b', 'w').write('4' * 20)")
    assert [(f["path"], f["content"], f["href"]) for f in r["files"]] == [("a", "123", None)]
    assert skipped(r) == {b"b": "no_room"}
    r = run(server, "open('a', 'w').write('123')", "list")
    assert [(f["path"], f["href"]) for f in r["files"]] == [("a", None)]
    assert server.request("GET", f"/executions/{r['id']}/files.tar").status == 404


# In other languages -----------------------------------------------------------------

WRITES_C = """
#include <stdio.h>
int main(void) { return fputs("hello", fopen("out.txt", "w")) < 0; }
"""


def test_the_file_of_a_program_is_that_of_its_language(servers):
    server = servers("warm")
    r = run(server, "echo hello", language="bash")
    assert (r["stdout"], r["files"], r["skipped"], r["usage"]["collect_ms"]) == ("hello\n", [], [], 0), r
    r = run(server, "echo hello >out.txt; echo x >main.py", language="bash")
    assert [f["path"] for f in r["files"]] == ["main.py", "out.txt"], r
    r = run(server, "echo '#' >>main.sh", language="bash")
    assert [(f["path"], f["content"]) for f in r["files"]] == [("main.sh", "echo '#' >>main.sh#\n")], r


def test_of_a_compiled_run_the_programs_files_come_back(servers):
    server = servers("warm")
    r = run(server, "int main(void) { return 0; }", language="c")
    assert (r["status"], r["files"], r["skipped"], r["usage"]["collect_ms"]) == ("success", [], [], 0), r
    r = run(server, WRITES_C, language="c")
    assert [(f["path"], f["content"]) for f in r["files"]] == [("out.txt", "hello")] and r["skipped"] == [], r
    assert r["compile"]["status"] == "success", r
    r = run(server, WRITES_C, language="c", files=[{"path": "out.txt", "content": "hello"}])
    assert (r["files"], r["skipped"]) == ([], []) and r["usage"]["collect_ms"] > 0, r
    r = run(server, "int main(void) { return x; }", language="c")
    assert (r["cause"], r["files"], r["skipped"], r["warnings"]) == ("compile", [], [], []), r


# On the command line ----------------------------------------------------------------

def out(tmp_path, code, *args):
    (tmp_path / "p.py").write_text(code)
    return glovebox("run", "--timeout", "30", "--out", str(tmp_path / "out"), *args, str(tmp_path / "p.py"))


def test_run_out_writes_the_files_and_names_what_it_leaves_out(tmp_path):
    done = out(tmp_path, "import os; os.makedirs('a/b'); open('a/b/c.txt', 'w').write('hello')\n"
               "open(b'\\xff', 'w').write('x'); os.symlink('/etc/passwd', 'link'); open('big', 'wb').truncate(20 << 20)\n"
               "open('suid', 'w').write('s'); os.chmod('suid', 0o4777); print('done')", "--memory", "128")
    assert (done.returncode, done.stdout) == (0, b"done\n"), done
    folder = tmp_path / "out"
    assert sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()) == sorted(
        ["a/b/c.txt", os.fsdecode(b"\xff"), "suid"])
    assert (folder / "a/b/c.txt").read_text() == "hello"
    assert (folder / "suid").stat().st_mode & 0o7111 == 0
    assert b'--out: "link" is left out: symlink' in done.stderr and b'"big" is left out: too_large (artifact-file-bytes)' in done.stderr


def test_run_out_follows_nothing_that_is_there_already(tmp_path):
    folder = tmp_path / "out"
    folder.mkdir()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "precious").write_text("mine")
    (folder / "d").symlink_to(tmp_path / "elsewhere")
    (folder / "f").symlink_to(tmp_path / "precious")
    (folder / "g").hardlink_to(tmp_path / "precious")
    done = out(tmp_path, "import os; os.mkdir('d'); open('d/x', 'w').write('1')\n"
               "open('f', 'w').write('2'); open('g', 'w').write('3'); open('h', 'w').write('4')")
    assert done.returncode == 125 and b'--out: "d/x"' in done.stderr, done
    assert list((tmp_path / "elsewhere").iterdir()) == [] and (tmp_path / "precious").read_text() == "mine"
    assert [(folder / n).read_text() for n in "fgh"] == ["2", "3", "4"] and not (folder / "f").is_symlink()


def test_run_out_and_json_go_together(tmp_path):
    done = out(tmp_path, "open('a', 'w').write('1'); import os; os.mkfifo('p')", "--json")
    reply = json.loads(done.stdout)
    assert [f["path"] for f in reply["files"]] == ["a"] and skipped(reply) == {b"p": "fifo"}
    assert done.stderr == b"" and (tmp_path / "out/a").read_text() == "1"


def test_run_out_has_what_a_compiled_program_leaves(tmp_path):
    done = out(tmp_path, WRITES_C, "--language", "c")
    assert done.returncode == 0, done
    assert [(p.name, p.read_text()) for p in (tmp_path / "out").iterdir()] == [("out.txt", "hello")]
    (tmp_path / "out/out.txt").unlink()
    done = out(tmp_path, "int main(void) { return x; }", "--language", "c", "--json")
    assert json.loads(done.stdout)["cause"] == "compile" and list((tmp_path / "out").iterdir()) == [], done


def test_run_out_into_what_is_no_directory_runs_nothing(tmp_path):
    (tmp_path / "out").write_text("")
    done = out(tmp_path, "print('ran')")
    assert done.returncode == 125 and done.stdout == b"" and b"Not a directory" in done.stderr
