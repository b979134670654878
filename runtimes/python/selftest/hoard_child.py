"""A child takes the memory."""
pid = os.fork()
if pid == 0:
    kept = []
    while len(kept) < given["mib"]:
        kept.append(bytearray(b"x") * (1 << 20))
    os._exit(0)
status = os.waitpid(pid, 0)[1]
say("hoard.child", "got it" if status == 0 else "stopped")
