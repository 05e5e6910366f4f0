"""The limits that every listener has, in one place. SECURITY.md states them."""

from __future__ import annotations

LONGEST_HEADER = 1 << 20
"""Bytes of a request's line and of a header; net/http's default."""
HEAD_S = 10.0
"""Real seconds in which a handshake is done, and in which a request's head has come."""
BODY_S = 30.0
"""Real seconds in which a request's body has come."""
IDLE_S = 90.0
"""Real seconds for which a connection is kept between two requests, as kube-apiserver keeps one."""
BODY_BYTES = 3 * 1024 * 1024
"""Bytes of a body where a face names no other limit; etcd's limit for kube-apiserver."""
BODIES_IN_FLIGHT = 256 * 1024 * 1024
"""Bytes of the bodies that one listener holds at once, of all its requests together."""
MOST_THREADS = 1000
"""Connections at once, of a listener that spends a thread on each."""
LINGER_S = 2.0
"""Real seconds for which what is left of a refused body is read, so that its sender sees the answer."""
HOP_BY_HOP = frozenset(
    {
        "connection",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
"""Headers that end with a connection, so that no proxy hands them on (RFC 9110 section 7.6.1)."""
