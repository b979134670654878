"""Something that goes on while the test looks elsewhere."""
import threading

from harness.poll import PATIENCE


class Background(threading.Thread):
    """Runs fn(*args, **kw) in a thread; result() awaits it and gives its value or
    raises what it raised."""

    def __init__(self, fn, *args, **kw):
        super().__init__(daemon=True)
        self._call = (fn, args, kw)
        self._value = self._error = None
        self.start()

    def run(self):
        fn, args, kw = self._call
        try:
            self._value = fn(*args, **kw)
        except BaseException as e:  # handed to the waiting test
            self._error = e

    def result(self, timeout=180.0 * PATIENCE):
        self.join(timeout)
        assert not self.is_alive(), "it did not come to an end"
        if self._error is not None:
            raise self._error
        return self._value
