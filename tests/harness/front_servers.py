"""A front of many sites in a namespace of internet.py, until stdin ends: it serves whatever name it is asked
for, at every address of the namespace, and answers with that name. TLS on port 443, and on port 444 with a
group that makes clients begin anew (a HelloRetryRequest); HTTP on port 8000, as lenient as a server can be,
which takes an end of the stream for the end of a head. Each name that it was asked for is a line of stdout;
a line of stdin is answered there with "that is all".

usage: front_servers.py CERTIFICATE KEY
"""
import hashlib
import socket
import ssl
import sys
import threading


def note(name):
    sys.stdout.write(f"{name}\n")
    sys.stdout.flush()


def serve(port, talk):
    s = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=64)

    def one(connection):
        with connection:
            try:
                talk(connection)
            except OSError:
                pass # the client has gone, or was cut off

    def accept():
        while True:
            threading.Thread(target=one, args=(s.accept()[0],), daemon=True).start()
    threading.Thread(target=accept, daemon=True).start()


def tls(group=None):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    if group:
        context.set_ecdh_curve(group)
    names = {}

    def on_name(connection, name, _):
        names[connection] = name
        note(f"tls {name}")
    context.sni_callback = on_name

    def talk(connection):
        with context.wrap_socket(connection, server_side=True) as c:
            c.sendall(f"{c.version()} {names.pop(c, None)}\n".encode())
            while data := c.recv(65536):
                c.sendall(data)
    return talk


def http(connection):
    stream = connection.makefile("rb")
    while line := stream.readline():
        fields = {}
        while (field := stream.readline()).strip():
            name, _, value = field.decode("latin-1").partition(":")
            fields[name.strip().lower()] = value.strip()
        note(f"http {fields.get('host')}")
        body = stream.read(int(fields.get("content-length", 0)))
        answer = f"{line.split()[0].decode()} {fields.get('host')} {hashlib.sha256(body).hexdigest()[:8]}\n"
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(answer)}\r\n\r\n{answer}".encode())


def main():
    serve(443, tls())
    serve(444, tls("secp521r1"))
    serve(8000, http)
    note("ready")
    for _ in sys.stdin:
        note("that is all")


main()
