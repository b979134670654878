"""Run twice: what the first leaves, the second must not find."""
import time

await_outside()
PLACES = ("/workspace", "/tmp", "/dev/shm", "/var/tmp", "/home", "/run", "/")
for place in PLACES:
    say("mark." + (place.strip("/").replace("/", ".") or "top"),
        "found" if os.path.exists(os.path.join(place, "mark")) else "not found")
for place in PLACES:
    outcome(lambda: os.close(os.open(os.path.join(place, "mark"), os.O_CREAT | os.O_WRONLY)))
say("mark.process", os.getpid())
say("mark.lock", outcome(__import__("fcntl").flock, os.open("/usr/bin/env", os.O_RDONLY), 2 | 4))
if os.fork() == 0:
    time.sleep(60)
