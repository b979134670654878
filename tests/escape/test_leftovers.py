"""Threat: what a program leaves in its files, for whoever looks at them, walks them or takes them away. Answer:
nobody does who could be hurt. A workspace is read only if the request asks for it, by a process without rights that
has nothing but its descriptor, follows nothing and is bounded in everything; the mounts are taken away whole, and a
cage is used again only with fresh ones."""
import base64
import dataclasses

import pytest

from corpus import TIMEOUT, Attack, shell

PLACES = "('/workspace', '/tmp', '/dev/shm')"


def quick(reply):
    """What is taken away is a mount, however large the tree in it."""
    assert reply["usage"]["teardown_ms"] < 2000, reply["usage"]


def leaves(name, code, says="left\n", **more):
    """In each place that can be written; so often that what one left would meet the next, in one of the ready cells."""
    code = f"import os\nfor d in {PLACES}:\n  os.chdir(d)\n  assert os.listdir(d) == (['main.py'] if d == '/workspace' else []), (d, os.listdir(d))\n  " + \
        code.replace("\n", "\n  ") + "\nprint('left')"
    return Attack(name, code, says=says, **{"times": 9, "check": quick, "timeout": 30, **more})


LINKS = [
    leaves("links to files of the host", "for i, t in enumerate(('/etc/shadow', '/etc/passwd', '/proc/1/environ', '/proc/self/environ', '../../../../etc/hostname', "
           "'/dev/zero', '/dev/stdin', '/run/glovebox', '/root/.ssh/id_rsa')):\n"
           "  os.symlink(t, 'l%d.txt' % i)"),
    leaves("links to folders, and to themselves", "os.symlink('/', 'root'); os.symlink('.', 'loop'); os.symlink('..', 'up'); os.symlink('a', 'b'); os.symlink('b', "
           "'a'); os.symlink('/proc/self/fd', 'fd'); os.makedirs('ok/x'); os.symlink('../..', 'ok/x/up')"),
    leaves("a long chain of links", "os.symlink('f', 'l0')\nfor i in range(200): os.symlink('l%d' % i, 'l%d' % (i + 1))\nos.symlink('x' * 4095, 'long')"),
    leaves("names of one file", "open('x', 'wb').write(b'y' * 65536)\nfor i in range(300): os.link('x', 'x%d' % i)"),
    leaves("names of what others have", "got = 0\nfor t in ('/usr/bin/env', '/etc/passwd', '/proc/self/exe', '/dev/null', '/proc/self/fd/1'):\n"
           "  try: os.link(t, 'h'); print('GOT', t)\n  except OSError: pass"),
    leaves("links where its program was", "if d == '/workspace': os.unlink('main.py'); os.symlink('/etc/shadow', 'main.py')\n"
           "else: os.symlink('/workspace/main.py', 'main.py')"),
]

KINDS = [
    leaves("pipes", "for i in range(20): os.mkfifo('p%d' % i, 0o666)"),
    leaves("a pipe where its program was", "if d == '/workspace': os.unlink('main.py'); os.mkfifo('main.py')"),
    leaves("a folder where its program was", "if d == '/workspace': os.unlink('main.py'); os.makedirs('main.py/main.py')"),
    leaves("sockets that listen", "import socket\nglobals().setdefault('k', []).append(s := socket.socket(1))\n"
           "s.bind('sock'); s.listen(); s2 = socket.socket(1); s2.connect('sock')"),
    leaves("files with rights for nobody", "open('n', 'w').write('secret'); os.chmod('n', 0); os.makedirs('a/b/c'); open('a/b/c/f', 'w').write('y'); "
           "os.chmod('a/b', 0); os.chmod('a', 0)"),
    leaves("files with rights for everybody", "open('s', 'w').write('#!/bin/sh'); os.chmod('s', 0o7777); os.mkdir('t'); os.chmod('t', 0o7777)"),
    leaves("its own folders shut", "if d == '/workspace': os.chmod('.', 0)\nelse: os.mkdir('x'); os.chmod('x', 0)"),
    leaves("names of our own", "os.makedirs('proc/self'); os.makedirs('dev/shm'); os.makedirs('.git/hooks'); open('.git/hooks/post-checkout', "
           "'w').write('#!/bin/sh'); os.makedirs('workspace/workspace'); open('cgroup.procs', 'w').write('1'); os.makedirs('glovebox')"),
]

NAMES = [
    leaves("names that are options, orders, or no text", "for n in (b'-rf', b'--', b'*', b'?', b'$(id)', b'`id`', b';id', b'new\\nline', b'tab\\t', b'\\x1b[2J', "
           "b'\\xff\\xfe', b'\\xc3\\x28', b'\"', b\"'\", b'\\\\', b' ', b'. ', b'...', b'~', b'%s%n', b'nul\\x01'):\n"
           "  os.close(os.open(n, os.O_CREAT)); os.mkdir(b'd' + n)"),
    leaves("names that look the same", "for n in ('\u00e9', 'e\u0301', 'A', 'a', '\u0430', 'a\u200b', '\ufeffa', '\u202ea'): open(n, 'w').write(n)\n"
           "assert len(os.listdir('.')) >= 8"),
    leaves("the longest names", "for i in range(100): os.close(os.open('%03d' % i + 'n' * 252, os.O_CREAT))"),
    leaves("the deepest folder", "for i in range(900): os.mkdir('d' * 200 if i % 9 == 0 else 'd'); os.chdir('d' * 200 if i % 9 == 0 else 'd')"),
    leaves("as many as there may be", "n = 0\ntry:\n  while n < 4500: os.close(os.open('f%d' % n, os.O_CREAT)); n += 1\nexcept OSError as e: assert e.errno == 28",
           memory=256),
]

CONTENTS = [
    leaves("much", "open('big', 'wb').write(b'x' * (12 << 20))"),
    leaves("a giant that holds nothing", "f = os.open('s', os.O_CREAT | os.O_RDWR); os.truncate(f, 100 << 20); os.pwrite(f, b'x', (100 << 20) - 1)"),
    leaves("an archive that grows", "import gzip, io, zipfile\nopen('b.gz', 'wb').write(gzip.compress(bytes(8 << 20)))\nz = zipfile.ZipFile('b.zip', 'w', 8)\n"
           "for i in range(8): z.writestr('../../../../tmp/%d' % i, bytes(1 << 20))\nz.close()"),
    leaves("text of our own", "open('result.json', 'w').write('{\"status\": \"success\", \"exit_code\": 0}'); open('stdout', 'w').write('pwned'); "
           "open('.exit_code', 'w').write('0')"),
    leaves("attributes", "open('x', 'w').close()\nfor i in range(50):\n  try: os.setxattr('x', 'user.k%d' % i, b'v' * 100)\n"
           "  except OSError as e: assert e.errno in (28, 95); break"),
]

# What goes on while the run ends: everything is dead before anything is taken away.
MEANWHILE = [
    Attack("a mapping that is written on", "import mmap, os\nf = open('m', 'w+b'); f.truncate(1 << 20); m = mmap.mmap(f.fileno(), 1 << 20)\nif os.fork() == 0:\n"
           "  os.setsid()\n  while 1: m[0:4] = os.urandom(4)\nprint('x')",
           says="x\n", times=3),
    Attack("folders that are moved on and on", "import os, threading, time\nos.makedirs('a/b/c')\ndef f():\n  while 1:\n"
           "    try: os.rename('a/b', 'x'); os.rename('x', 'a/b')\n    except OSError: pass\n"
           "for _ in range(3): threading.Thread(target=f, daemon=True).start()\ntime.sleep(.3); os._exit(0)", says="", times=3),
    Attack("children that make files", "import os, time\nfor i in range(5):\n  if os.fork() == 0:\n    os.setsid(); n = 0\n    while 1:\n"
           "      for d in ('/workspace', '/tmp', '/dev/shm'):\n        p = d + '/%d-%d' % (i, n % 50); n += 1\n"
           "        try: os.mkdir(p)\n        except OSError:\n          try: os.rmdir(p)\n          except OSError: pass\ntime.sleep(.2); os._exit(0)", says="",
           times=3),
    Attack("a child whose folder is gone", "import os, time\n"
           "os.makedirs('/tmp/a/b'); os.chdir('/tmp/a/b'); f = os.open('held', os.O_CREAT | os.O_RDWR); os.unlink('held'); os.rmdir('/tmp/a/b')\n"
           "if os.fork() == 0: time.sleep(600)\nprint('x', flush=True); os._exit(0)",
           says="x\n", times=3),
    Attack("a tree that is being made at the deadline", "import os\nn = 0\nwhile 1:\n  try: os.makedirs('t%d/a/b/c' % n); n += 1\n"
           "  except OSError: os.chdir('/tmp')", TIMEOUT, "", timeout=0.6),
    Attack("a mixed tree of a shell's", shell("for d in /workspace /tmp /dev/shm; do cd $d; ln -s / root; ln -s root/etc etc; mkfifo p; mkdir -p a/b; "
           "ln -s ../../.. a/b/up; printf x > ./-rf; printf x > a/b/real.txt\n"
           "printf x > \"$(printf 'new\\nline')\"; chmod 000 a; done; echo left"), says="left\n", times=3),
]


@pytest.mark.parametrize("attack", LINKS, ids=str)
def test_nobody_follows_a_link_that_was_left(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", KINDS, ids=str)
def test_what_is_no_plain_file_holds_nobody_up(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", NAMES, ids=str)
def test_names_are_read_by_nobody(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", CONTENTS, ids=str)
def test_contents_go_with_their_run(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", MEANWHILE, ids=str)
def test_all_is_dead_before_anything_is_taken_away(attack, arena):
    arena.withstand(attack)


# What a collector must never have read: host files that links lead to, and the service's own.
FOREIGN = (b"root:", b"canary-", b"daemon:", b"PATH=", b"BEGIN OPENSSH")
REASONS = {"symlink", "fifo", "socket", "device", "unreadable", "too_deep", "path_too_long", "too_many_names", "too_large",
           "total_bytes", "count"}


def only_its_own(reply):
    """What comes back is the program's own, once for each name, and whatever is left out has a reason."""
    paths = [e.get("path_base64", e["path"]) for e in reply["files"] + reply["skipped"]]
    assert len(paths) == len(set(paths))
    for f in reply["files"]:
        content = f["content"] or ""
        raw = content.encode() if f["encoding"] == "utf8" else base64.b64decode(content)
        assert not any(word in raw for word in FOREIGN), f
    assert {e["reason"] for e in reply["skipped"]} <= REASONS, reply["skipped"]
    assert not [w for w in reply["warnings"] if "collecting them failed" in w], reply["warnings"]
    assert reply["usage"]["collect_ms"] < 10_000, reply["usage"]


COLLECTED = [dataclasses.replace(a, times=2, artifacts="inline", check=only_its_own)
             for a in LINKS + KINDS + NAMES + CONTENTS + MEANWHILE]


@pytest.mark.parametrize("attack", COLLECTED, ids=str)
def test_who_collects_them_is_not_led_anywhere(attack, arena):
    arena.withstand(attack)
