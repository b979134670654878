"""Threat: filling or misusing what can be written. Answer: three tmpfs of the run's own, bounded in bytes
and inodes, whose pages count for its memory."""
import re

import pytest

from corpus import OUT_OF_MEMORY, SUCCESS, Attack

PLACES = ("/workspace", "/tmp", "/dev/shm")
INODES = 4096
# A tmpfs may be as large as the memory limit: of the two bounds the second is usually met first.
FULL = {"verdict": (OUT_OF_MEMORY, SUCCESS), "memory": 64, "timeout": 30, "says": re.compile(r"(\d+ (27|28)\n)*")}

BYTES = [
    *[Attack(f"one file in {d}", f"import os\nf = os.open('{d}/big', os.O_CREAT | os.O_WRONLY); n = 0\ntry:\n"
             "  while 1: n += os.write(f, b'a' * 65536)\nexcept OSError as e: print(n >> 20, e.errno)", **FULL) for d in PLACES],
    Attack("many files in every place", "import os\nfor d in ('/workspace', '/tmp', '/dev/shm'):\n  n = 0\n  try:\n    while 1:\n"
           "      f = os.open(d + '/f%d' % n, os.O_CREAT | os.O_WRONLY); n += 1\n      for _ in range(32): os.write(f, b'a' * 65536)\n      os.close(f)\n"
           "  except OSError as e: print(n, e.errno)", **FULL),
    Attack("files without a name that are open", "import os\nfds = []\ntry:\n  while 1:\n    f = os.open('t', os.O_CREAT | os.O_RDWR); os.unlink('t')\n"
           "    os.write(f, b'a' * (1 << 20)); fds.append(f)\nexcept OSError as e: print(len(fds), e.errno)", **FULL),
    Attack("space asked for ahead", "import os\nf = os.open('f', os.O_CREAT | os.O_RDWR)\nfor n in (1 << 40, 1 << 27):\n"
           "  try: os.posix_fallocate(f, 0, n); print('GOT', n)\n  except OSError as e: print(0, e.errno)", **FULL),
    Attack("a sparse file, filled through a mapping", "import mmap, os\nf = os.open('f', os.O_CREAT | os.O_RDWR); os.truncate(f, 64 << 20)\n"
           "m = mmap.mmap(f, 64 << 20)\nfor i in range(0, 64 << 20, 4096): m[i] = 1", OUT_OF_MEMORY, memory=64, timeout=30),
    Attack("copies made by the kernel", "import os\nf = os.open('f', os.O_CREAT | os.O_RDWR); os.write(f, bytes(1 << 20))\nn = 0\ntry:\n  while 1:\n"
           "    g = os.open('g%d' % n, os.O_CREAT | os.O_RDWR); n += 1\n    os.lseek(f, 0, 0); os.copy_file_range(f, g, 1 << 20, 0, 0); os.close(g)\n"
           "except OSError as e: print(n, e.errno)", **FULL),
    Attack("attributes", "import os\nopen('x', 'w').close(); n = 0\ntry:\n  while 1: os.setxattr('x', 'user.k%d' % n, b'v' * 4000); n += 1\n"
           "except OSError as e: print(n <= 4096, e.errno)", (SUCCESS, OUT_OF_MEMORY), re.compile(r"(True (28|95)\n)?"), memory=64),
    Attack("a giant that holds nothing", "f = open('s', 'wb')\ntry: f.truncate(1 << 40); print('GOT')\nexcept OSError as e: print(e.errno)", says="27\n"),
    Attack("a file that nobody can name", "import os\nfds = []\nfor d in ('.', '/tmp', '/dev/shm'):\n  try: fds.append(os.open(d, os.O_TMPFILE | os.O_RDWR))\n"
           "  except OSError as e: print(e.errno)", says="95\n" * 3),
]

MAKES = {
    "files": "os.close(os.open('f%d' % n, os.O_CREAT))",
    "hard links": "os.link('main.py', 'l%d' % n)",
    "directories": "os.mkdir('d%d' % n)",
    "symbolic links": "os.symlink('x', 's%d' % n)",
    "long names": "os.close(os.open('%05d' % n + 'n' * 240, os.O_CREAT))",
    "pipes and sockets": "os.mkfifo('p%d' % n)",
    "directories in each other": "os.mkdir('d'); os.chdir('d')",
}

NUMBER = [Attack(name, f"import os\nn = 0\ntry:\n  while n < 10 ** 6: {make}; n += 1\n"
                 f"except OSError as e: print(e.errno, {INODES // 2} < n <= {INODES})", says="28 True\n", memory=256)
          for name, make in MAKES.items()]
NUMBER += [Attack(f"files in {d}", f"import os\nn = 0\nos.chdir('{d}')\ntry:\n  while n < 10 ** 6: {MAKES['files']}; n += 1\n"
                  f"except OSError as e: print(e.errno, {INODES // 2} < n <= {INODES})", says="28 True\n", memory=256)
           for d in PLACES[1:]]

HARD_TO_REMOVE = [
    Attack("odd names, loops and a deep tree", "import os\n"
           "os.makedirs('a/b/c'); os.mkfifo('p'); os.symlink('/', 'root'); os.symlink('.', 'loop')\n"
           "open('-rf', 'w').close(); open('new\\nline', 'w').close(); open(b'\\xff\\xfe', 'w').close()\n"
           "d = '.'\nfor _ in range(200):\n  d += '/' + 'd' * 10; os.mkdir(d)\n"
           "os.chmod('a', 0); os.chmod('.', 0); print('end')", says="end\n", times=3),
    Attack("open, mapped and locked by children", "import os, mmap, fcntl, time\nfor _ in range(5):\n  if os.fork() == 0:\n"
           "    for d in ('/workspace', '/tmp', '/dev/shm'):\n      f = os.open(d + '/f', os.O_CREAT | os.O_RDWR); os.truncate(f, 4096)\n"
           "      m = mmap.mmap(f, 4096); m[0] = 1; fcntl.lockf(f, fcntl.LOCK_SH); os.chdir(d)\n    os.write(1, b'x'); time.sleep(600)\n"
           "time.sleep(.5)", says=re.compile("x*"), timeout=30),
    Attack("a directory that is in use", "import os\nos.mkdir('/tmp/a'); os.chdir('/tmp/a'); os.rmdir('/tmp/a')\n"
           "try: os.open('f', os.O_CREAT)\nexcept OSError as e: print(e.errno)", says="2\n"),
]


@pytest.mark.parametrize("attack", BYTES, ids=str)
def test_writable_places_are_bounded_in_bytes(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", NUMBER, ids=str)
def test_the_workspace_is_bounded_in_inodes(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", HARD_TO_REMOVE, ids=str)
def test_whatever_lies_there_is_gone_afterwards(attack, arena):
    arena.withstand(attack)
