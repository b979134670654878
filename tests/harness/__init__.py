"""What the end-to-end and escape tests share: a server of their own, a census of
what it holds on the host, raw HTTP, and the command line."""
