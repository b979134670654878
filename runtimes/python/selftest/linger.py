"""Children of every kind that mean to stay when the time is up."""
import signal
import time


def stay(stopped=False):
    os.setsid()
    if os.fork():
        os._exit(0)
    for n in range(1, 65):
        try:
            signal.signal(n, signal.SIG_IGN)
        except (OSError, ValueError):
            pass
    if stopped:
        os.kill(os.getpid(), signal.SIGSTOP)
    while True:
        time.sleep(60)


for how in ((), (), (True,)):
    if os.fork() == 0:
        stay(*how)
for _ in range(3):
    os.wait()
say("linger.began", "yes")
if given["leave"]:
    await_outside()
    os._exit(0)
while True:
    time.sleep(60)
