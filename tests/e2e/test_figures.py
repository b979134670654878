"""Figures that matplotlib has open at the end of a program are in the answer, drawn by nobody's code
but matplotlib's and with none for it in the program."""
import base64
import struct

import pytest

from harness.life import servers_by
from harness.poll import wait_for

ROOMY = {"timeout_seconds": 60, "memory_limit_mb": 512, "cpu_limit": 2}
FLAGS_OF = {"warm": ["--cold=false", "--pool-size", "2"], "cold": ["--cold"],
            "preloaded": ["--cold=false", "--pool-size", "2", "--preload", "numpy"]}
PLOT = "import matplotlib.pyplot as plt\nplt.plot([1, 3, 2])\n"


@pytest.fixture(scope="module", params=FLAGS_OF)
def started(request):
    """A server of each way of starting interpreters."""
    with servers_by(FLAGS_OF) as get:
        yield get(request.param)


def run(server, code, **fields):
    reply = server.execute(code, **{**ROOMY, **fields})
    assert reply["warnings"] == [], reply
    return reply


def png_size(figure):
    assert (figure["mime_type"], figure["omitted"]) == ("image/png", None), figure
    png = base64.b64decode(figure["base64"], validate=True)
    assert len(png) == figure["bytes"] and png[:8] == b"\x89PNG\r\n\x1a\n" and png[-8:-4] == b"IEND"
    return struct.unpack(">II", png[16:24])


def test_a_figure_that_is_open_at_the_end_comes_back_as_png(started):
    r = run(started, PLOT + "plt.show()\nprint('shown')")
    assert (r["status"], r["stdout"], r["stderr"]) == ("success", "shown\n", "")
    [figure] = r["figures"]
    assert (figure["number"], figure["label"]) == (1, "") and png_size(figure) == (640, 480)


def test_each_figure_comes_by_its_number_and_closed_ones_do_not(started):
    r = run(started, "import matplotlib.pyplot as plt\nplt.figure(3, figsize=(2, 1), dpi=50)\nplt.figure('named', figsize=(1, 1))\n"
                     "plt.close(plt.figure(7))")
    assert [(f["number"], f["label"], png_size(f)) for f in r["figures"]] == [(3, "", (100, 50)), (4, "named", (100, 100))]
    assert run(started, PLOT + "plt.close('all')")["figures"] == []


@pytest.mark.parametrize("asked, types", [
    ("svg", ["image/svg+xml"]), ("both", ["image/png", "image/svg+xml"]), ("none", [])])
def test_a_figure_comes_in_the_format_that_is_asked_for(started, asked, types):
    r = run(started, PLOT, figures=asked)
    assert [f["mime_type"] for f in r["figures"]] == types
    for f in r["figures"]:
        if f["mime_type"] == "image/svg+xml":
            assert f["text"].startswith("<?xml") and f["text"].rstrip().endswith("</svg>") and "base64" not in f
            assert len(f["text"].encode()) == f["bytes"]
        else:
            png_size(f)


@pytest.mark.parametrize("end", ["1 / 0", "import sys; sys.exit(3)", "import atexit; atexit.register(plt.close, 'all')",
                                 "import threading; threading.Timer(0.3, lambda: plt.figure(2)).start(); plt.close(1)"])
def test_a_figure_comes_back_however_the_interpreter_ends(started, end):
    r = run(started, PLOT + end)
    assert len(r["figures"]) == 1, r


def test_a_program_that_ends_without_its_interpreter_has_no_figures(started):
    for end in "import os; os._exit(0)", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)":
        assert run(started, PLOT + end)["figures"] == []


def test_a_child_of_the_program_tells_no_figures(started):
    r = run(started, PLOT + "import os, sys\npid = os.fork()\nif pid == 0:\n    plt.figure(5)\n    sys.exit(0)\nos.waitpid(pid, 0)")
    assert [f["number"] for f in r["figures"]] == [1]


def test_a_figure_that_cannot_be_drawn_is_said_and_the_others_come(started):
    r = run(started, PLOT + "plt.title('$\\\\nonsense{$')\nplt.figure(2)")
    bad, good = r["figures"]
    assert bad["base64"] is None and bad["bytes"] == 0 and bad["omitted"].startswith("ValueError: ")
    assert png_size(good) == (640, 480) and r["status"] == "success" and r["stderr"] == ""


def test_figures_over_the_room_are_said_to_be_omitted(started):
    noise = "import numpy as np, matplotlib.pyplot as plt\nfor i in range(4):\n    plt.figure(figsize=(10, 10))\n" \
            "    plt.imshow(np.random.rand(1000, 1000, 3))\n"
    r = run(started, noise)
    assert len(r["figures"]) == 4
    there = [f for f in r["figures"] if f["omitted"] is None]
    gone = [f for f in r["figures"] if f["omitted"] is not None]
    assert there and gone, [f["bytes"] for f in r["figures"]]
    assert all("more than there is room for" in f["omitted"] and f["base64"] is None for f in gone)


MANY = "import warnings\nwarnings.simplefilter('ignore')\nimport matplotlib.pyplot as plt\n" \
       "for i in range(%d): plt.figure(figsize=(0.5, 0.5))\n"


@pytest.mark.parametrize("count, asked, formats", [(32, "png", 1), (35, "png", 1), (70, "png", 1), (40, "both", 2)])
def test_of_many_figures_the_first_come_and_the_others_are_counted(started, count, asked, formats):
    r = run(started, MANY % count, figures=asked)
    more = [f"at most 32 figures are taken; there are {count - 32} more"] if count > 32 else []
    assert [f["omitted"] for f in r["figures"]] == [None] * 32 * formats + more
    assert [f["number"] for f in r["figures"]] == [n for n in range(1, 33) for _ in range(formats)] + [33][:len(more)]


def test_the_longest_labels_leave_room_for_all_that_has_to_be_said(started):
    # Noise, which takes nearly all of it, and labels of six bytes a character for the rest.
    code = MANY % 40 + "import numpy as np\nfor i in range(1, 7):\n    n = 250 if i > 1 else 1000\n    plt.figure(i).set_size_inches(n / 100, n / 100)\n" \
        "    plt.figimage(np.random.rand(n, n, 3))\nfor i in range(1, 41): plt.figure(i).set_label('\\1' * 2000)"
    r = run(started, code, figures="both")
    assert len(r["figures"]) == 65 and r["figures"][-1]["omitted"] == "at most 32 figures are taken; there are 8 more"
    assert len({f["number"] for f in r["figures"]}) == 33
    without = [f for f in r["figures"][:-1] if f["omitted"]]
    assert len(without) > 10 and all("more than there is room for" in f["omitted"] for f in without)


def test_the_deadline_ends_also_the_drawing(started):
    r = run(started, PLOT + "plt.gcf().savefig = lambda *a, **k: exec('while 1: pass')", timeout_seconds=8)
    assert r["status"] == "timeout" and r["figures"] == []


def test_a_program_without_figures_does_not_pay_for_them(started):
    r = run(started, "import sys\nprint([m for m in sys.modules if 'matplotlib' in m])")
    assert (r["stdout"], r["figures"]) == ("[]\n", [])


def test_without_a_display_nothing_complains(started):
    r = run(started, "import matplotlib\nprint(matplotlib.get_backend())")
    assert (r["stdout"].strip().lower(), r["stderr"]) == ("agg", "")
