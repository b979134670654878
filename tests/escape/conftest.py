"""After every attack: the host and the next request are as they were."""
import os
import stat

import pytest

TRIVIAL = "import os, sys; print('fine', os.getcwd(), sorted(os.listdir('.')), sys.argv)"
SECRET = "canary-90ab-of-a-host-file"


@pytest.fixture(scope="session")
def canary(tmp_path_factory):
    """A host file that no program may read or change."""
    path = tmp_path_factory.mktemp("host") / "canary"
    path.write_text(SECRET)
    path.chmod(0o666)  # only the cage protects it
    for folder in (path.parent, path.parent.parent):
        folder.chmod(0o777)
    return path


@pytest.fixture(scope="module")
def warm(server):
    """The server after its first run, so that what it keeps for good is made."""
    server.run(TRIVIAL)
    server.idle = server.rest()
    return server


@pytest.fixture(autouse=True)
def unharmed(warm, canary):
    """The attack corpus's invariants, around every test of this folder."""
    server = warm
    expected = server.run(TRIVIAL)
    mark = os.stat(canary)
    seen = len(server.exchanges)
    yield
    server.must_live()
    assert server.health().status == 200
    after = server.run(TRIVIAL)
    assert (after.status, after.stdout, after.stderr) == \
        ("success", expected.stdout, expected.stderr)
    server.settles_to(server.idle)
    now = os.stat(canary)
    assert canary.read_text() == SECRET
    assert (now.st_mtime_ns, now.st_ino, stat.S_IMODE(now.st_mode)) == \
        (mark.st_mtime_ns, mark.st_ino, 0o666)
    for _method, _path, _body, answer in server.exchanges[seen:]:
        assert SECRET.encode() not in answer.body


@pytest.fixture
def healthy(warm):
    """healthy(attack): true answers of /health while the attack, a Background, goes on."""

    def watch(attack):
        slowest, answers = 0.0, 0
        while attack.is_alive():
            a = warm.health()
            assert a.status == 200, a
            slowest, answers = max(slowest, a.wall_s), answers + 1
            attack.join(0.05)
        assert answers > 0
        # 100 ms on an idle host; these are shared, and the test is about hanging.
        assert slowest < 5.0, f"/health took {slowest:.1f} s during the attack"
        return attack.result()

    return watch
