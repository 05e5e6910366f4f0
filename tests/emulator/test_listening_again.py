"""A server's port, once chosen by the system, can be listened on again at once, whatever connections it had."""

import socket

import pytest
from flask import Flask

from mews.emulator.http_server import HttpServer


@pytest.mark.wall
def test_a_port_chosen_by_the_system_can_be_had_again_after_its_server_left_connections_behind():
    first = HttpServer(Flask("first"), "127.0.0.1", 0)
    port = first.port
    first.start()
    with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
        client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        while client.recv(4096):
            pass  # The server closes first: its end of the connection lingers.
    first.stop()
    again = HttpServer(Flask("again"), "127.0.0.1", port)
    again.start()
    assert again.port == port
    again.stop()
