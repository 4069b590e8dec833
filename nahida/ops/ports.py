"""A port to listen on, or the reason why not."""

import errno
import socket


class PortError(Exception):
    """The port cannot be listened on; the text says why and what to do."""


def bound_socket(host: str, port: int, *, way_out: str) -> socket.socket:
    """Return a socket bound to the address. Raises PortError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((host, port))
        bound.listen(1)  # Linux lets two sockets with SO_REUSEADDR bind, but only one listen
    except (OSError, OverflowError) as error:  # a port beyond 65535 overflows
        bound.close()
        taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        why = "is taken" if taken else f"cannot be listened on ({error})"
        fix = f"free it, or choose another with {way_out}"
        raise PortError(f"port {port} of {host} {why}: {fix}") from error
    return bound
