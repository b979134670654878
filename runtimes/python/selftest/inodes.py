"""As many files as there can be."""
n = 0
try:
    while n < 200_000:
        os.close(os.open("f%d" % n, os.O_CREAT | os.O_WRONLY))
        n += 1
except OSError as e:
    say("inodes.end", word(e))
else:
    say("inodes.end", n)
