"""Requests with inputs, by name, for tests/e2e/test_inputs.py: warm and cold starts must answer
them alike. No answer holds an address, a time or a process number."""
import base64
import io
import zipfile


def of(**files):
    return [{"path": path, "content": text} for path, text in files.items()]


def archive():
    """A program as an archive of modules."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as z:
        z.writestr("__main__.py", "import sys, part\nprint(sys.argv, part.name, __name__)\n")
        z.writestr("part.py", "name = 'in the archive'\n")
    return base64.b64encode(data.getvalue()).decode()


LOOK = """\
import os, sys
print(sys.argv, sys.orig_argv, sys.path[0], __file__, __name__, __loader__.path, __cached__)
print(list(os.environ.items()))
print(sorted(os.listdir(".")), __spec__, __package__, sorted(globals()))
"""
C_ENVIRONMENT = """\
import ctypes, subprocess
environ = ctypes.POINTER(ctypes.c_char_p).in_dll(ctypes.CDLL(None), "environ")
i = 0
while environ[i]:
    print(environ[i])
    i += 1
get = ctypes.CDLL(None).getenv
get.restype = ctypes.c_char_p
print(get(b"A"), get(b"EMPTY"), get(b"NONE"))
print(subprocess.run(["/usr/bin/env"], capture_output=True, text=True).stdout)
"""
STDIN = """\
import os, select, stat, sys
print(stat.S_ISFIFO(os.fstat(0).st_mode), os.isatty(0), sys.stdin.seekable(), sys.stdin.encoding)
print(bool(select.select([0], [], [], 10)[0]))
print(repr(input("? ")), repr(sys.stdin.readline()), [line for line in sys.stdin])
try:
    input()
except EOFError as e:
    print("end", e)
try:
    os.lseek(0, 0, os.SEEK_SET)
except OSError as e:
    print(e)
"""

REQUESTS = {
    "nothing": {"code": LOOK},
    "empty_lists": {"code": LOOK, "args": [], "env": {}, "files": [], "stdin": ""},
    "args": {"code": LOOK, "args": ["a", "", "b c", "--x=1", "-", "ünï", "\n", "'\"$(ls)"]},
    "args_like_options": {"code": LOOK, "args": ["-c", "print(1)", "-m", "pip", "--version"]},
    "argparse": {"code": "import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int)\n"
                         "p.add_argument('f')\nprint(p.parse_args())\n", "args": ["--n", "5", "x.csv"]},
    "argparse_fails": {"code": "import argparse\nargparse.ArgumentParser().parse_args()\n", "args": ["x"]},
    "env": {"code": LOOK, "env": {"A": "1", "EMPTY": "", "_b": "ü = \n", "MPLCONFIGDIR": "/tmp/x"}},
    "env_in_c": {"code": C_ENVIRONMENT, "env": {"A": "1", "EMPTY": "", "OPENBLAS_NUM_THREADS": "2"}},
    "time_zone": {"code": "import time, datetime\nprint(time.tzname, time.timezone, time.localtime(0)[:6],"
                          " datetime.datetime.fromtimestamp(0))\n", "env": {"TZ": "Europe/Berlin"}},
    "tmpdir": {"code": "import tempfile, os\nos.mkdir('t')\nprint(tempfile.gettempdir())\n",
               "env": {"TMPDIR": "/workspace/t"}},
    "stdin": {"code": STDIN, "stdin": "first\nsecond\nthird\nfourth without an end"},
    "stdin_bytes": {"code": "import sys\nprint(sys.stdin.buffer.read())\n",
                    "stdin": base64.b64encode(bytes(range(256))).decode(), "stdin_encoding": "base64"},
    "stdin_not_text": {"code": "import sys\nprint(sys.stdin.read())\n", "stdin": "/w==", "stdin_encoding": "base64"},
    "stdin_large": {"code": "import sys, hashlib\nprint(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())\n",
                    "stdin": "0123456789abcde\n" * 60000},
    "stdin_left": {"code": "print('not read')\n", "stdin": "x" * 1000000},
    "stdin_of_a_child": {"code": "import subprocess\nprint(subprocess.run(['/bin/cat'], capture_output=True).stdout)\n",
                         "stdin": "for the child"},
    "files": {"code": "import os\nfor d, _, names in sorted(os.walk('.')):\n    for n in sorted(names):\n"
                      "        p = os.path.join(d, n)\n        s = os.stat(p)\n"
                      "        print(p, oct(s.st_mode), s.st_uid, s.st_gid, s.st_size, s.st_nlink)\n"
                      "    print(d, oct(os.stat(d).st_mode), os.stat(d).st_uid)\n",
              "files": [{"path": "a/b/c.txt", "content": "x"}, {"path": "a/d", "content": "", "mode": "0777"},
                        {"path": "e", "content": "AAEC", "encoding": "base64", "mode": "600"},
                        {"path": "a/b/ü ö", "content": "ü"}, {"path": "a.b", "content": ""},
                        {"path": "...", "content": "dots"}, {"path": "-rf", "content": ""}]},
    "files_are_writable": {"code": "open('a', 'a').write('more')\nprint(open('a').read())\nimport os\nos.remove('a')\n"
                                   "print(os.listdir('.'))\n", "files": of(a="text ")},
    "module": {"code": "import helper\nprint(helper.__file__, helper.f(2), helper.__spec__.origin)\nhelper.f(None)\n",
               "files": [{"path": "helper.py", "content": "def f(x):\n    return x + 1\n"}]},
    "package": {"code": "from p.q import r\nimport p, sys\nprint(r.x, p.__path__, [m for m in sys.modules if m[0] == 'p' and '.' in m and m[1] == '.'])\n",
                "files": [{"path": "p/__init__.py", "content": ""}, {"path": "p/q/__init__.py", "content": ""},
                          {"path": "p/q/r.py", "content": "from .. import s\nx = s.y\n"},
                          {"path": "p/s.py", "content": "y = 5\n"}]},
    "hides_a_module": {"code": "import random, json\nprint(random.__file__, random.x, json.__file__)\n",
                       "files": [{"path": "random.py", "content": "x = 'mine'\n"}]},
    "hides_what_others_import": {"code": "import json\nprint(json.dumps(1))\n",
                                 "files": [{"path": "re.py", "content": "raise SystemExit('my own re')\n"}]},
    "hides_a_package": {"code": "import json\nprint(json.x)\n",
                        "files": [{"path": "json/__init__.py", "content": "x = 'mine'\n"}]},
    "folder_without_package": {"code": "import math, json\nprint(json.dumps(2), open('json/data.json').read())\n",
                               "files": [{"path": "json/data.json", "content": "{}"}]},
    "cannot_hide_what_is_always_there": {"code": "import os\nprint(os.__file__)\n",
                                         "files": [{"path": "os.py", "content": "x"}]},
    "data_named_like_a_module": {"code": "import csv\nprint(csv.__file__, open('csv.txt').read())\n",
                                 "files": [{"path": "csv.txt", "content": "1,2"}]},
    "entry_point": {"entry_point": "app/run.py", "args": ["x"],
                    "files": [{"path": "app/run.py", "content": LOOK + "import near\nnear.fail()\n"},
                              {"path": "app/near.py", "content": "def fail():\n    raise ValueError('near')\n"}]},
    "entry_point_main": {"entry_point": "main.py", "files": [{"path": "main.py", "content": LOOK}]},
    "entry_point_hides": {"entry_point": "app/run.py",
                          "files": [{"path": "app/run.py", "content": "import queue\nprint(queue.x)\n"},
                                    {"path": "app/queue.py", "content": "x = 'mine'\n"}]},
    "entry_point_besides": {"entry_point": "app/run.py",
                            "files": [{"path": "app/run.py", "content": "import queue\nprint(queue.__file__)\n"},
                                      {"path": "queue.py", "content": "x = 'not looked for'\n"}]},
    "entry_point_wrong": {"entry_point": "x.py", "files": [{"path": "x.py", "content": "print(1\n"}]},
    "entry_point_empty": {"entry_point": "x.py", "files": [{"path": "x.py", "content": ""}]},
    "entry_point_not_py": {"entry_point": "bin/tool", "args": ["1"], "files": [{"path": "bin/tool", "content": LOOK}]},
    "entry_point_archive": {"entry_point": "tool.py", "args": ["1"],
                            "files": [{"path": "tool.py", "content": archive(), "encoding": "base64"}]},
    "entry_point_bytes": {"entry_point": "x.py", "files": [{"path": "x.py", "content": "pw0NCgAAAAA=", "encoding": "base64"}]},
    "entry_point_unicode": {"entry_point": "ü/ö.py", "files": [{"path": "ü/ö.py", "content": LOOK + "1/0\n"}]},
    "exit_and_threads": {"code": "import sys, threading, atexit, os\natexit.register(print, os.environ['A'], sys.argv)\n"
                                 "t = threading.Thread(target=lambda: print(sys.stdin.read()))\nt.start()\nsys.exit(len(sys.argv))\n",
                         "args": ["1", "2"], "env": {"A": "b"}, "stdin": "for a thread"},
    "multiprocessing": {"code": "import multiprocessing, os, sys\n\ndef f(x):\n    return x, os.environ['A'], len(sys.argv)\n\n"
                                "if __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as p:\n"
                                "        print(p.map(f, [1, 2]))\n", "args": ["1"], "env": {"A": "b"}},
}
