"""What NVML clients ask of the host over the unix socket beside the state file: pure encoding and decoding.

A stream socket, one ASCII line per message, at most ``LINE_LIMIT`` bytes with its newline. A client sends
``mews-nvml 1 <verb> <arguments…>`` and reads one line ``<NVML return code> <text>`` per request, in order; several
requests may follow each other on one connection. What clients rely on:

- ``hold <pid> <bus id>…`` is sent by nvmlInit: the process has NVML open on these devices. **The connection is the
  hold**: it lasts until ``release`` or until the connection ends (the process exited or was killed). Sent again on the
  same connection it replaces the former set. The host must take the peer's pid from the socket (SO_PEERCRED) where pid
  namespaces differ. Init waits for the answer at most two seconds and goes on without it.
- ``drain``, ``remove``, ``reset`` and ``persistence`` are answered when done, with the codes of ``Return`` that host.md
  section 3 asks for (IN_USE with persistence mode on, IN_USE while a process is attached, …). The state file must have
  been rewritten before the answer.
- ``set`` is every other setter of NVML, by the names of ``mews.emulator.host.control``: with its numbers, or without
  them for the default. NOT_SUPPORTED where the model has no such setting, INVALID_ARGUMENT for a value out of range.
- ``mig`` is a change of MIG, by the names of ``mews.emulator.host.mig``: ``mode 1``, ``create-gpu PROFILE [START]``,
  ``destroy-gpu ID``, ``create-compute ID PROFILE [START]``, ``destroy-compute ID ID``. The text of the answer is the ID
  of what was created; of ``mode``, it is 1 if programs keep the mode from changing now.
- ``discover`` takes seconds; clients wait for it without limit.

Only hot-plug calls block on the socket; queries read the state file alone.
"""

from __future__ import annotations

import re
from enum import IntEnum
from pathlib import Path

from msgspec import Struct

LINE_LIMIT = 65536
MAGIC = "mews-nvml 1"
BUS_ID = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")


class ProtocolError(ValueError):
    """A line that is no request or no reply; the message says why."""


class Return(IntEnum):
    """nvmlReturn_t, as far as hosts and clients use it here (NVML API reference, "Enumerator")."""

    SUCCESS = 0
    UNINITIALIZED = 1
    INVALID_ARGUMENT = 2
    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    NOT_FOUND = 6
    INSUFFICIENT_SIZE = 7
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    OPERATING_SYSTEM = 17
    IN_USE = 19
    INSUFFICIENT_RESOURCES = 23
    INVALID_STATE = 29
    UNKNOWN = 999


class Hold(Struct, frozen=True):
    """This process holds these devices (bus ids ``dddd:bb:dd.f``, lower case) until the connection ends."""

    pid: int
    bus_ids: tuple[str, ...]


class Release(Struct, frozen=True):
    """This process has shut NVML down; its hold ends."""


class Drain(Struct, frozen=True):
    """The request of nvmlDeviceModifyDrainState."""

    bus_id: str
    draining: bool


class Remove(Struct, frozen=True):
    """nvmlDeviceRemoveGpu(_v2): ``detach`` = remove the PCI function (else keep it), ``shut_link`` = link down."""

    bus_id: str
    detach: bool
    shut_link: bool


class ResetGpu(Struct, frozen=True):
    """What ``nvidia-smi --gpu-reset`` asks: NVML has no call for it."""

    bus_id: str


class Discover(Struct, frozen=True):
    """nvmlDeviceDiscoverGpus: below this address, or everywhere when None."""

    bus_id: str | None


class Persistence(Struct, frozen=True):
    """The request of nvmlDeviceSetPersistenceMode."""

    bus_id: str
    enabled: bool


class SetGpu(Struct, frozen=True):
    """One of NVML's setters, with what its call was given; no numbers restore the default."""

    bus_id: str
    name: str
    numbers: tuple[int, ...] = ()


class ChangeMig(Struct, frozen=True):
    """A change of a GPU's MIG mode or instances, with what its call was given."""

    bus_id: str
    act: str
    numbers: tuple[int, ...] = ()


Request = Hold | Release | Drain | Remove | ResetGpu | Discover | Persistence | SetGpu | ChangeMig


class NvmlReply(Struct, frozen=True):
    """``code`` is what the NVML call returns; ``text`` is for people."""

    code: int
    text: str = ""


def socket_path(state: Path) -> Path:
    """Return where the host serves the requests of a state file's clients: beside it, ``<name>.sock``."""
    return state.with_name(state.name + ".sock")


def encode_request(request: Request) -> bytes:
    """Return one line with its newline."""
    return f"{MAGIC} {' '.join(_words(request))}\n".encode("ascii")


def _words(request: Request) -> tuple[str, ...]:
    match request:
        case Hold(pid, bus_ids):
            return ("hold", str(pid), *bus_ids)
        case Release():
            return ("release",)
        case Drain(bus_id, draining):
            return ("drain", bus_id, _bit(draining))
        case Remove(bus_id, detach, shut_link):
            return ("remove", bus_id, _bit(detach), _bit(shut_link))
        case ResetGpu(bus_id):
            return ("reset", bus_id)
        case Discover(bus_id):
            return ("discover", bus_id or "all")
        case Persistence(bus_id, enabled):
            return ("persistence", bus_id, _bit(enabled))
        case SetGpu(bus_id, name, numbers):
            return ("set", bus_id, name, *map(str, numbers))
        case ChangeMig(bus_id, act, numbers):
            return ("mig", bus_id, act, *map(str, numbers))


# Complex: one case for each verb.
def decode_request(line: bytes) -> Request:  # noqa: C901
    """Return the request of one line, with or without its newline. Raises ProtocolError."""
    try:
        text = line.decode("ascii").rstrip("\n")
    except UnicodeDecodeError as error:
        raise ProtocolError(f"request {line[:80]!r}: not ASCII") from error
    if not text.startswith(MAGIC + " "):
        raise ProtocolError(f"request {text[:80]!r}: does not start with {MAGIC!r}")
    verb, *words = text[len(MAGIC) + 1 :].split(" ")
    match verb, words:
        case "hold", [pid, *bus_ids]:
            return Hold(_number(pid), tuple(_bus_id(one) for one in bus_ids if one))
        case "release", []:
            return Release()
        case "drain", [bus_id, bit]:
            return Drain(_bus_id(bus_id), _flag(bit))
        case "remove", [bus_id, detach, link]:
            return Remove(_bus_id(bus_id), _flag(detach), _flag(link))
        case "reset", [bus_id]:
            return ResetGpu(_bus_id(bus_id))
        case "discover", ["all"]:
            return Discover(None)
        case "discover", [bus_id]:
            return Discover(_bus_id(bus_id))
        case "persistence", [bus_id, bit]:
            return Persistence(_bus_id(bus_id), _flag(bit))
        case "set", [bus_id, name, *numbers]:
            return SetGpu(_bus_id(bus_id), name, tuple(map(_number, numbers)))
        case "mig", [bus_id, act, *numbers]:
            return ChangeMig(_bus_id(bus_id), act, tuple(map(_number, numbers)))
    raise ProtocolError(f"request {text[:80]!r}: unknown verb or wrong number of arguments")


def encode_reply(reply: NvmlReply) -> bytes:
    """Return one line with its newline; newlines of the text become spaces."""
    text = " ".join(reply.text.split())
    return f"{int(reply.code)} {text}".encode("ascii", "replace").rstrip() + b"\n"


def decode_reply(line: bytes) -> NvmlReply:
    """Return the reply of one line. Raises ProtocolError."""
    code, _, text = line.decode("ascii", "replace").rstrip("\n").partition(" ")
    return NvmlReply(_number(code), text)


def _bit(value: bool) -> str:
    return "1" if value else "0"


def _flag(word: str) -> bool:
    if word not in ("0", "1"):
        raise ProtocolError(f"flag {word!r}: must be 0 or 1")
    return word == "1"


def _number(word: str) -> int:
    if not word.isdecimal():
        raise ProtocolError(f"number {word!r}: must be decimal digits")
    return int(word)


def _bus_id(word: str) -> str:
    lowered = word.lower()
    if not BUS_ID.fullmatch(lowered):
        raise ProtocolError(f"bus id {word!r}: must look like 0000:44:00.0")
    domain, _, rest = lowered.partition(":")
    return f"{int(domain, 16):04x}:{rest}"
