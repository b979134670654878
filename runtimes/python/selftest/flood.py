"""More output than is kept."""
for fd in (1, 2):
    for _ in range(given["mib"]):
        at, chunk = 0, b"0123456789abcdef" * 65536
        while at < len(chunk):
            at += os.write(fd, chunk[at:])
sys.exit(7)
