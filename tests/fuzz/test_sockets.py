"""What listens beside HTTP: a seeded sample of calls and bytes of chance, slow clients, and requests that once made a
server fail, each as it was found. ``make fuzz`` sends 100,000 to each."""

from contextlib import ExitStack

import pytest

from tests.fuzz.calls import Call, bytes_on_the_wire
from tests.fuzz.groups import SOCKETS
from tests.fuzz.judge import tracebacks
from tests.fuzz.socket_judge import (
    RpcFace,
    answered_soon,
    begun,
    channel_to,
    connected,
    fuzz_socket,
    slow_clients,
    sound,
)

pytestmark = pytest.mark.wall

REQUESTS = 400
SLOW = 150
NAMES = [name for names in SOCKETS.values() for name in names]
RPC = [name for name in NAMES if name not in ("NVML of a host", "parameter server")]


@pytest.fixture(scope="module")
def faces():
    """Every socket by its name."""
    with ExitStack() as served:
        found = {group: served.enter_context(group()) for group in SOCKETS}
        assert {group: tuple(face.name for face in listening) for group, listening in found.items()} == SOCKETS
        yield {face.name: face for listening in found.values() for face in listening}


@pytest.fixture(autouse=True)
def nothing_logged():
    """Nothing leaves a traceback."""
    with tracebacks() as logged:
        yield
    assert logged == []


def asked(face, call):
    with channel_to(face) as channel:
        answer = begun(channel, face, call)
        return answer.code().name, answer.details() or ""


@pytest.mark.parametrize("name", NAMES)
def test_no_bytes_make_a_socket_fail(faces, name):
    account = fuzz_socket(faces[name], REQUESTS, seed=13)
    assert account.findings == []
    assert account.statuses["OK"] or account.statuses["bytes answered"], "nothing got through"


@pytest.mark.parametrize("name", [name for name in RPC if name != "runtime proxy"])
@pytest.mark.parametrize("message", [b"\xff" * 11, b"\x0a\x05a", b"\x0a\x02\xff\xfe", b"\x0b" * 200])
def test_what_is_no_message_is_refused_as_grpc_go_refuses_it(faces, name, message):
    face = faces[name]
    status, details = asked(face, Call(face.calls[-1].method, message))
    if status != "OK":  # a message without that field reads nothing of it
        assert (status, details[:34]) == ("INTERNAL", "grpc: error unmarshalling request:")
    assert status == "INTERNAL" or message in (b"\x0a\x05a", b"\x0a\x02\xff\xfe")


def test_a_container_that_is_none_does_not_pass_the_runtimes_proxy(faces):
    face = faces["runtime proxy"]
    create = face.calls[1]
    assert asked(face, Call(create.method, b"\xff" * 11))[0] == "INTERNAL"
    assert asked(face, create)[0] == "OK"


def test_what_is_larger_than_a_message_may_be_is_refused_also_once_it_is_unpacked(faces):
    face = faces["pod resources"]
    for packed in (False, True):
        assert asked(face, Call(face.calls[0].method, bytes(5 << 20), packed=packed))[0] == "RESOURCE_EXHAUSTED"


def test_a_device_plugin_is_asked_for_so_many_containers_at_once_and_no_more(faces):
    face = faces["device plugin"]
    [allocate] = [call for call in face.calls if call.method.endswith("/Allocate")]
    assert asked(face, Call(allocate.method, b"\x0a\x00" * 101))[0] == "INVALID_ARGUMENT"


@pytest.mark.parametrize("name", RPC)
def test_a_method_whose_name_is_no_text_leaves_its_server_answering(faces, name):
    face = faces[name]
    call = face.calls[0]
    wire = bytes_on_the_wire(call).replace(call.method[:4].encode(), call.method[:3].encode() + b"\xf8")
    for _ in range(3):
        with connected(face.path) as connection:
            connection.sendall(wire)
            connection.recv(4096)
        assert answered_soon(face, call) == "OK"


@pytest.mark.parametrize("name", NAMES)
def test_slow_clients_keep_nobody_from_being_answered(faces, name):
    face = faces[name]
    if isinstance(face, RpcFace):
        where, wire = face.path, bytes_on_the_wire(face.calls[0])[:-3]
    else:
        where, wire = face.where, face.seeds[0][:-3]
    slow = list(slow_clients(where, wire, SLOW))
    try:
        assert answered_soon(face, face.calls[0]) == "OK" if isinstance(face, RpcFace) else sound(face)
    finally:
        for connection in slow:
            connection.close()


def test_one_client_does_not_take_all_calls(faces):
    face = faces["device plugin"]
    watch = Call(next(iter(face.streams)), b"")
    with channel_to(face) as channel:
        streams = [channel.unary_stream(watch.method)(b"", timeout=20) for _ in range(1200)]
        try:
            next(streams[0])
            assert answered_soon(face, face.calls[0]) == "OK"
        finally:
            for stream in streams:
                stream.cancel()
