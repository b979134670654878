"""After every attack: the host and the next request are as they were."""
import pytest

from harness.life import need_program
from invariants import Arenas, SECRET


@pytest.fixture(scope="session")
def canary(tmp_path_factory):
    """A host file that no program may read or change."""
    path = tmp_path_factory.mktemp("host") / "canary"
    path.write_text(SECRET)
    path.chmod(0o666)  # only the cage protects it
    for folder in (path.parent, path.parent.parent):
        folder.chmod(0o777)
    return path


@pytest.fixture(scope="session")
def arenas(canary):
    """Servers to attack, one at a time; most sessions need one only."""
    need_program()
    made = Arenas(canary)
    yield made
    made.close()


@pytest.fixture
def arena(arenas):
    """A server under attack. When the test has ended, everything must be as it was before."""
    with arenas.ready().unharmed() as ready:
        yield ready
