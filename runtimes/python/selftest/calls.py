def argument(text, kept):
    if text[0] == "&":
        kept.append(ctypes.create_string_buffer(int(text[1:])))
    elif text[0] == "$":
        kept.append(ctypes.c_char_p(text[1:].encode()))
    else:
        return ctypes.c_long(int(text, 0))
    return kept[-1]


def make(number, args):
    kept = []
    L.alarm(2)  # one that waits for ever says nothing, and the next one is asked
    r = L.syscall(ctypes.c_long(number), *[argument(a, kept) for a in args])
    if r == 0 and number in given["clones"]:  # this is the child
        os._exit(0)
    return "done" if r >= 0 else errno.errorcode.get(ctypes.get_errno(), "?")


for name, number, args in given["calls"]:
    say(name, in_child(make, number, args.split()))


def old_gate():
    """getpid() as a 32-bit program would ask for it."""
    import mmap
    m = mmap.mmap(-1, 4096, prot=7)
    m.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")
    f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))
    return "a number" if f() > 0 else "refused"


if given["machine"] == "x86_64":
    say("gate.int80", in_child(old_gate))
