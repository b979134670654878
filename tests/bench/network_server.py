"""What network.py measures against, on the port that it is told, until stdin ends. The first 16 bytes of a
connection say what is wanted: D and a size, that many bytes; U and a size, to take that many and say so;
P, each byte back."""
import socket
import sys
import threading


def answer(connection):
    with connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        head = connection.recv(16, socket.MSG_WAITALL)
        left, piece = int(head[1:] or 0), bytes(1 << 18)
        if head[:1] == b"D":
            while left > 0:
                connection.sendall(piece[:left])
                left -= len(piece)
        elif head[:1] == b"U":
            while left > 0:
                left -= len(connection.recv(1 << 18)) or left + 1
            connection.sendall(b"!")
        else:
            while data := connection.recv(1):
                connection.sendall(data)


def main():
    s = socket.create_server(("", int(sys.argv[1])), backlog=256)

    def accept():
        while True:
            threading.Thread(target=answer, args=(s.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()
    print("ready", flush=True)
    sys.stdin.read()


main()
