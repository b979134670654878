"""What `glovebox image` says, leaves behind, and starts."""
import json
import lzma
import os
import pty
import subprocess
import threading

from harness.server import PROGRAM


def workers(parent):
    """{first word of its command line: pid} of the children of a process."""
    found = {}
    for pid in subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, check=False).stdout.split():
        try:
            with open(f"/proc/{int(pid)}/cmdline", "rb") as f:
                found[os.path.basename(f.read().split(b"\0")[0].decode())] = int(pid)
        except OSError:
            continue
    return found


def is_at_work(pid):
    """Not one that has ended, and that pid 1 has not heard of yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def refused(done, *parts):
    assert done.returncode == 1 and done.stdout == b"", done
    said = done.stderr.decode()
    assert said.startswith("glovebox: image import: ") and said.count("\n") == 1, said
    for part in parts:
        assert part in said, said


def on_a_terminal(store, *args):
    """What `glovebox image` writes to its standard error, if that is a terminal; and its exit status."""
    master, slave = pty.openpty()
    said = []

    def read():
        try:
            while data := os.read(master, 4096):
                said.append(data)
        except OSError:  # EIO: nobody has it open any more
            pass

    with subprocess.Popen([PROGRAM, "image", "--image-dir", store, *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=slave) as process:
        os.close(slave)
        reader = threading.Thread(target=read)
        reader.start()
        process.wait(timeout=120)
        reader.join()
    os.close(master)
    return b"".join(said).decode(), process.returncode


def listing(image):
    done = image("list", "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def nothing_is_left(store):
    """A refusal leaves neither an image nor a half of one."""
    assert sorted(os.listdir(store)) == []


def xz(data):
    return lzma.compress(data, preset=0)
