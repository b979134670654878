"""Processes and threads until no more are given."""
import threading
import time

children = []
try:
    while len(children) < 400:
        pid = os.fork()
        if pid == 0:
            time.sleep(60)
            os._exit(0)
        children.append(pid)
except OSError as e:
    say("fork.end", word(e))
else:
    say("fork.end", "none refused")
say("fork.count", len(children))
for pid in children:
    os.kill(pid, 9)
    os.waitpid(pid, 0)
stop = threading.Event()
threads = []
try:
    while len(threads) < 400:
        t = threading.Thread(target=stop.wait)
        t.start()
        threads.append(t)
except RuntimeError:
    say("thread.end", "refused")
else:
    say("thread.end", "none refused")
say("thread.count", len(threads))
stop.set()
