"""The walks of test_failing_calls.py with requests that ask for more than a text: files in and out, the value of the
last expression, another language, a compiler, an image. What is lost of these beside a right verdict is said.

Most of a cell's calls are the same whatever is asked for, and fail one by one there. So what has many is sampled here:
a walk of stride 7 fails calls 0, 7, 14… (each walk's calls and stride are below), then those of its names that it
has stepped over. That takes a minute of two CPUs; GLOVEBOX_TEST_EVERY_CALL=1 in front fails each call, in ten."""
import os
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.cli import glovebox
from harness.images import busybox, docker_save
from harness.walk import (COLD, NEW_CAGES, POINTS_OF_NO_RETURN, USED_CAGES, Walk, a_server, ask, bash, compiled, files,
                          in_image, networked)

EVERY_CALL = os.environ.get("GLOVEBOX_TEST_EVERY_CALL") == "1"
NETWORK = ["--network"]
SUPERVISOR_SPARES = [*POINTS_OF_NO_RETURN, "recvmsg", "epoll_wait"]

# Whose call, in which server, with what, for which request; how many processes make theirs before one fails, the
# stride, how many must fail at least, and which among others.
BOX = {
    "a collector": ("collect", NEW_CAGES, "EIO", files, 0, 1, 60,                          # of 66
                    {"openat", "fchmod", "getdents64", "fstatat", "pread", "read", "write", "seccomp"}),
    "a collector in another language": ("collect", COLD, "EMFILE", bash, 0, 3, 15, {"openat", "getdents64"}),  # of 58
    "a collector's start": ("spawn", NEW_CAGES, "EIO", files, 0, 1, 15, {"execveat", "dup3"}),  # of 18
    "the zygote's child with files": ("child", NEW_CAGES, "EIO", files, 0, 3, 20, {"mkdirat", "openat", "write"}),  # of 67
    "enter with files": ("enter", COLD, "EIO", files, 0, 3, 20,                            # of 76
                         {"mkdirat", "openat", "write", "memfd_create", "pread", "execveat"}),
    "enter of another language": ("enter", NEW_CAGES, "ENOMEM", bash, 0, 3, 18, {"execveat", "write"}),  # of 64
    "enter of a compiler": ("enter", COLD, "EIO", compiled, 0, 7, 8, {"execveat", "move_mount"}),  # of 65
    "enter of what it has made": ("enter", COLD, "ENOMEM", compiled, 1, 5, 11, {"execveat", "move_mount"}),  # of 64
    "init in an image": ("init", COLD, "EIO", in_image, 0, 3, 24, {"move_mount", "pivot_root"}),  # of 84
    "init with a network": ("init", [*COLD, *NETWORK], "EIO", networked, 0, 3, 24, {"ioctl", "socket", "move_mount"}),
    "the start of a gate": ("spawn", [*COLD, *NETWORK], "EMFILE", networked, 2, 1, 15, {"execveat", "dup3"}),
    "enter in an image": ("enter", COLD, "ENOMEM", in_image, 0, 3, 18, {"execveat", "openat"}),  # of 62
}
# The same of the supervisor's.
SUPERVISOR = {
    "files": (NEW_CAGES, "EIO", files, 7, 35, {"clone3", "waitid", "fchown", "sendmsg"}),  # of 400
    "files in used cages": (USED_CAGES, "ENOMEM", files, 11, 20, {"clone3", "waitid", "fstatfs"}),  # of 400
    "another language": (NEW_CAGES, "ENOMEM", bash, 5, 40, {"clone3", "fstatat", "unlinkat"}),  # of 300
    "a compiler": (COLD, "EMFILE", compiled, 11, 35, {"open_tree", "move_mount", "mkdirat", "umount2"}),  # of 600
    "a network": ([*NEW_CAGES, *NETWORK], "EMFILE", networked, 5, 40, {"clone3", "openat", "sendmsg"}),
    "an image": (COLD, "EIO", in_image, 3, 50, {"clone3", "fsmount", "sendmsg"}),          # of 230
}
# What is made when it is asked for first, then kept: the request, the stride, how far (behind it the cell is made),
# how many at least, which.
FIRST = {
    "another language": (bash, "EIO", 3, 700, 150, {"mkdirat", "symlinkat"}),
    "an image": (in_image, "ENOMEM", 1, 60, 50, {"ioctl", "fsconfig", "fsmount", "mkdirat"}),
}


@pytest.fixture(name="store", scope="module")
def _store(tmp_path_factory):
    """The flags of a server that has an image."""
    folder = tmp_path_factory.mktemp("images")
    (folder / "busybox.tar").write_bytes(docker_save(busybox()))
    done = glovebox("image", "--image-dir", folder / "store", "import", folder / "busybox.tar", "busybox")
    assert done.returncode == 0, done
    return ["--image-dir", str(folder / "store")]


def walk_through_box(store, role, flags, code, what, passes, stride, least, names):
    # Most of these drop capabilities, one by one.
    with a_server(*flags, *store, spare=["prctl"]) as (kernel, s):
        walk = Walk(kernel, s, role, code, what, passes)
        return walk.all(least, 1 if EVERY_CALL else stride).reach(names).failed


def walk_through_supervisor(store, flags, code, what, stride, least, names):
    with a_server(*flags, *store, spare=SUPERVISOR_SPARES) as (kernel, s):
        walk = Walk(kernel, s, "supervisor", code, what)
        return walk.all(least, 1 if EVERY_CALL else stride).reach(names).failed


def walk_through_first(store, what, code, stride, most, least, names):
    """Until one is right in spite of the call that failed, the next one is the first again; then the next server's."""
    with a_server(*COLD, *store) as (_, s):
        assert ask(s, "first", what) == (200, "")
        made = s.rest()
    n, failed, met, reached = 0, 0, set(), True
    while reached and n < most:
        with a_server(*COLD, *store, spare=SUPERVISOR_SPARES) as (kernel, s):
            walk = Walk(kernel, s, "supervisor", code, what)
            status = 0
            while status != 200 and n < most:
                before = walk.failed
                status, _ = walk.fail(n)
                reached = walk.failed > before
                n += 1 if EVERY_CALL else stride
            assert ask(s, "after", what) == (200, "")
            s.settles_to(made)
            failed, met = failed + walk.failed, met | walk.names
    assert failed >= least and names <= met, (failed, met)
    return failed


@pytest.fixture(name="walks", scope="module")
def _walks(store):
    with ThreadPoolExecutor(4) as pool:
        begun = {name: pool.submit(walk_through_supervisor, store, *SUPERVISOR[name]) for name in SUPERVISOR}
        begun |= {f"first {name}": pool.submit(walk_through_first, store, *FIRST[name]) for name in FIRST}
        begun |= {name: pool.submit(walk_through_box, store, *BOX[name]) for name in BOX}
        yield begun
        for future in begun.values():
            future.cancel()


@pytest.mark.parametrize("who", BOX)
def test_whichever_call_in_a_box_fails_the_verdict_is_right_and_what_is_lost_is_said(walks, who):
    assert walks[who].result() > 0


@pytest.mark.parametrize("what", SUPERVISOR)
def test_whichever_call_of_the_supervisor_fails_the_verdict_is_right_and_what_is_lost_is_said(walks, what):
    assert walks[what].result() > 0


@pytest.mark.parametrize("what", FIRST)
def test_what_could_not_be_made_for_the_first_request_is_made_for_the_next(walks, what):
    assert walks[f"first {what}"].result() > 0
