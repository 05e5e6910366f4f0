"""Discovery by SSDP: who searches for Redfish services is answered, whoever sends anything else is not."""

import logging
import socket
import threading

import pytest

from mews.emulator.ssdp import GROUP, PORT, REDFISH, Discoverable, SsdpResponder, answers
from mews.listening.datagrams import GroupListener

SEARCH = 'M-SEARCH * HTTP/1.1\r\nHost: {group}:{port}\r\nMan: "ssdp:discover"\r\nST: {target}\r\nMX: 1\r\n\r\n'
ONE = Discoverable("ca8ba1c8-e0ac-521d-baa3-75b8adb90dd7", lambda: "https://192.0.2.1/redfish/v1/")
OTHER = Discoverable("00000000-e0ac-521d-baa3-75b8adb90dd7", lambda: "https://192.0.2.2/redfish/v1/")


def search(target):
    return SEARCH.format(group=GROUP, port=PORT, target=target).encode()


@pytest.mark.parametrize("target", [REDFISH, f"{REDFISH}:9", "ssdp:all", "upnp:rootdevice"])
def test_each_service_that_is_sought_answers_by_itself(target):
    found = [reply.decode().split("\r\n") for reply in answers(search(target), (ONE, OTHER))]
    assert [lines[0] for lines in found] == ["HTTP/1.1 200 OK"] * 2
    assert f"USN: uuid:{ONE.uuid}::{REDFISH}:22" in found[0]
    assert "AL: https://192.0.2.2/redfish/v1/" in found[1]
    assert found[0][-2:] == ["", ""]


@pytest.mark.parametrize(
    "asked",
    [
        search("urn:schemas-upnp-org:device:Printer:1"),
        search(f"{REDFISH}0"),
        search(REDFISH).replace(b"M-SEARCH", b"NOTIFY"),
        search(REDFISH).replace(b"ssdp:discover", b"ssdp:alive"),
        b"",
        b"\xff\xfe\x00",
        b"M-SEARCH",
        b":" * 5000,
    ],
)
def test_anything_else_is_not_answered(asked):
    assert list(answers(asked, (ONE,))) == []


def test_a_service_that_does_not_want_to_be_found_is_not():
    hidden = Discoverable(ONE.uuid, ONE.root, is_enabled=False)
    assert len(list(answers(search(REDFISH), (hidden, OTHER)))) == 1


@pytest.mark.wall
def test_a_listener_goes_on_after_what_it_cannot_answer(caplog):
    heard = threading.Event()

    def answer(asked):
        if asked == b"bad":
            raise RuntimeError("no")
        heard.set()
        return [b"yes"]

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    try:
        listener = GroupListener(GROUP, port, answer)
    except OSError as error:
        pytest.skip(f"no multicast here: {error}")
    listener.start()
    try:
        with caplog.at_level(logging.WARNING), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asker:
            asker.settimeout(10)
            for sent in (b"bad", b"", b"good"):
                asker.sendto(sent, ("127.0.0.1", port))
            assert asker.recv(10) == b"yes"
        assert heard.is_set()
        assert "cannot be answered: RuntimeError('no')" in caplog.text
    finally:
        listener.stop()


def test_a_responder_that_was_never_started_stops():
    try:
        SsdpResponder((ONE,)).stop()
    except OSError as error:
        pytest.skip(f"no multicast here: {error}")
