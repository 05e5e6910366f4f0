"""A pool of 40 chassis with 256 devices each: every kind of resource is rendered by a bounded number of looks."""

from __future__ import annotations

import re
import sys
from functools import partial

import pytest

from benchmarks.hardware import hardware
from mews.emulator.clock import EmulatedClock
from mews.emulator.dialects.registry import face_of
from mews.emulator.dialects.wire import Request
from mews.emulator.inventory_file import load_hardware
from mews.emulator.rack import Rack

ROOT = "/redfish/v1"
CALLS_PER_DEVICE = 150
"""Function calls of ours for a device that a resource shows; a collection that looks through all devices for each of
them makes 256 times as many."""


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """How to GET a path of the first chassis, without a wire."""
    file = tmp_path_factory.mktemp("big") / "big.yaml"
    file.write_text(hardware(hosts=40, chassis=40, gpus_per_host=256))
    rack = Rack(load_hardware(file), clock=EmulatedClock())
    rack.start()
    dialect = rack.speak("C0", partial(face_of("redfish").make, settings=None))
    login = b'{"UserName":"admin","Password":"%s"}' % dialect.password.encode()
    sent = {"content-type": "application/json"}
    path = f"{ROOT}/SessionService/Sessions"
    token = rack.answer("C0", dialect, Request("POST", path, {}, sent, login)).headers["X-Auth-Token"]

    def get(path):
        reply = rack.answer("C0", dialect, Request("GET", path, {}, {"x-auth-token": token}, b""))
        assert reply.status == 200, (path, reply)
        return reply.body

    yield get
    rack.stop()


def calls_of(function, *arguments):
    """How many functions a call enters."""
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        function(*arguments)
    finally:
        sys.setprofile(None)
    return count


def one_of_each_kind(get):
    """A path of each kind of resource that can be reached from the root."""
    seen, ahead = {}, [f"{ROOT}/"]
    while ahead:
        path = ahead.pop()
        kind = re.sub(r"[0-9A-F]{6}|\d+", "N", path)
        if kind in seen or "#" in path:
            continue
        seen[kind] = path
        ahead += re.findall(r'"@odata\.id":"([^"]+)"', get(path).decode())
    return seen


def test_no_resource_looks_through_all_devices_for_each_of_them(asked):
    found = {kind: calls_of(asked, path) for kind, path in one_of_each_kind(asked).items()}
    assert len(found) > 80
    slow = {kind: calls for kind, calls in found.items() if calls > 256 * CALLS_PER_DEVICE}
    assert slow == {}
