"""Will not end by itself, nor by any signal that it can refuse."""
import signal
import time

for n in range(1, 65):
    try:
        signal.signal(n, signal.SIG_IGN)
    except (OSError, ValueError):
        pass
say("hang.began", "yes")
if given["stopped"]:
    os.kill(os.getpid(), signal.SIGSTOP)
while True:
    time.sleep(60)
