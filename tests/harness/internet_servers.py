"""What answers in a namespace of internet.py, until stdin ends: TCP that sends back what it gets, on
ports 80 (IPv4) and 81 (IPv6), of every address that there is; UDP that does so on port 7; and in the
world a resolver of the names that internet.py knows, which says of what is larger than a datagram (512
bytes) that it was cut off, and all of it by TCP."""
import os
import socket
import struct
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness.internet import NAMES, PUBLIC4, PUBLIC6, RESOLVER

TYPES = {1: "A", 28: "AAAA"}


def forever(step):
    def loop():
        while True:
            step()
    threading.Thread(target=loop, daemon=True).start()


def echo(connection):
    with connection:
        while data := connection.recv(65536):
            connection.sendall(data)


def serve_tcp(family, port):
    s = socket.socket(family)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("", port))
    s.listen(256)
    forever(lambda: threading.Thread(target=echo, args=(s.accept()[0],), daemon=True).start())


def serve_udp(family, address):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.bind((address, 7))

    def step():
        data, to = s.recvfrom(65536)
        s.sendto(data, to)
    forever(step)


def answer(question):
    """Of one question: the addresses of its name, or that there is no such name."""
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1:at + 1 + question[at]].decode())
        at += 1 + question[at]
    kind = TYPES.get(struct.unpack_from("!H", question, at + 1)[0])
    name = ".".join(labels)
    records = b""
    addresses = NAMES.get((name, kind), [])
    for a in addresses:
        raw = socket.inet_pton(socket.AF_INET6 if ":" in a else socket.AF_INET, a)
        records += b"\xc0\x0c" + struct.pack("!HHIH", 28 if ":" in a else 1, 1, 300, len(raw)) + raw
    known = any(n == name for n, _ in NAMES)
    flags = 0x8180 | (0 if known else 3)
    return question[:2] + struct.pack("!HHHHH", flags, 1, len(addresses), 0, 0) + question[12:at + 5] + records


def cut(whole):
    if len(whole) <= 512:
        return whole
    end = whole.index(b"\xc0\x0c")
    return whole[:2] + bytes([whole[2] | 2]) + whole[3:6] + bytes(2) + whole[8:end]


def answer_by_tcp(connection):
    with connection:
        question = connection.recv(65536)
        whole = answer(question[2:])
        connection.sendall(struct.pack("!H", len(whole)) + whole)


def serve_names():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind((RESOLVER, 53))
    tcp = socket.create_server((RESOLVER, 53))

    def step():
        question, to = s.recvfrom(65536)
        s.sendto(cut(answer(question)), to)
    forever(step)
    forever(lambda: answer_by_tcp(tcp.accept()[0]))


def main():
    serve_tcp(socket.AF_INET, 80)
    serve_tcp(socket.AF_INET6, 81)
    if sys.argv[1] == "world":
        serve_udp(socket.AF_INET, PUBLIC4)
        serve_udp(socket.AF_INET6, PUBLIC6)
        serve_names()
    print("ready", flush=True)
    sys.stdin.read()


main()
