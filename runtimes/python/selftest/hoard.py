"""Takes memory until it is stopped."""
await_outside()
say("hoard.began", "yes")
kept = []
while len(kept) < given["mib"]:
    kept.append(bytearray(b"x") * (1 << 20))
say("hoard.ended", "all of it")
