"""TLS for cheroot whose handshake is the worker's business: a client that is slow with it, or mute, deafens nobody."""

from __future__ import annotations

import io
import socket
import ssl
from typing import Any

from cheroot.errors import FatalSSLAlert
from cheroot.makefile import MakeFile
from cheroot.ssl import Adapter

from mews.emulator.tls import Identity

PLAIN = b"Client sent an HTTP request to an HTTPS server.\n"
"""Go's net/http says it so."""
_REFUSAL = b"HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%b" % (len(PLAIN), PLAIN)


class WorkerTls(Adapter):
    """Wraps an accepted connection at once; ``shake_hands`` follows, on the thread that reads its request. cheroot's
    own adapters shake hands on the one thread that accepts."""

    def __init__(self, identity: Identity) -> None:
        super().__init__(str(identity.certificate), str(identity.key))
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(identity.certificate, identity.key)
        # Whose request does not come is ended by ``shut_reading``: without this OpenSSL answers the end that it reads
        # then by an alert of its own, and no 408 can be written any more. Framing tells a cut request from a whole one.
        self.context.options |= ssl.OP_IGNORE_UNEXPECTED_EOF

    def bind(self, sock: socket.socket) -> socket.socket:
        """The listening socket stays as it is."""
        return sock

    def wrap(self, sock: socket.socket) -> tuple[ssl.SSLSocket, dict[str, str]]:
        """Return the connection under TLS, and what its requests' environment says of it."""
        try:
            wrapped = self.context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
        except OSError as error:  # it has gone already
            raise FatalSSLAlert(*error.args) from error
        return wrapped, self.get_environ()

    def get_environ(self) -> dict[str, str]:
        """Return the same for all connections."""
        return {"wsgi.url_scheme": "https", "HTTPS": "on"}

    def makefile(self, sock: socket.socket, mode: str = "r", bufsize: int = io.DEFAULT_BUFFER_SIZE) -> Any:
        """Reads or writes the connection."""
        return MakeFile(sock, mode, bufsize)


def shake_hands(connection: socket.socket) -> bool:
    """Return whether a connection can be read: it is a plain one, or its handshake is done, now or before. A client
    that speaks plain HTTP is answered in kind."""
    if not isinstance(connection, ssl.SSLSocket) or connection.version() is not None:
        return True
    try:
        connection.do_handshake()
    except ssl.SSLError as error:
        if error.reason == "HTTP_REQUEST":
            _refuse_plain(connection)
        return False
    except OSError:  # gone, or silent for too long
        return False
    return True


def _refuse_plain(connection: ssl.SSLSocket) -> None:
    try:
        socket.socket.sendall(connection, _REFUSAL)
    except (OSError, ValueError):
        return


def shut_reading(connection: socket.socket) -> None:
    """End what the peer sends; what is said to it goes on, under TLS where it was so. (``SSLSocket.shutdown`` would go
    on in plain text.)"""
    socket.socket.shutdown(connection, socket.SHUT_RD)
