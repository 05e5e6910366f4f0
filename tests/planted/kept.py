"""The half kept by hand: ``kept/ROOM.yaml``, a list of faults a room.

``source`` is text that stands in ``file`` exactly once and ``planted`` what takes its place; ``rule`` is what the
fault breaks. ``world`` is where it is found (a scenario and its seed, or a case of ``tests.oracle``) and ``first`` the
kind of the first wrong line there (layer and event). ``finder`` is ``named by law N`` (or by a step, a crash) where
that line is cited, ``found`` where it is not, and ``none`` where no check finds it yet, which counts against the
number; without one it has not been recorded, and ``make planted`` alone tries it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.planted.fault import Fault, LostFaultError
from tests.planted.rooms import ROOMS, ROOT
from tests.planted.worlds import World

FOLDER = Path(__file__).with_name("kept")


@dataclass(frozen=True, slots=True)
class KeptFault:
    """A fault with what must find it, and where."""

    fault: Fault
    rule: str
    finder: str
    first: str
    world: World


def kept_faults() -> list[KeptFault]:
    """All of them, room by room.

    Raises LostFaultError for each that the source has lost, all in one message.
    """
    found, lost = [], []
    for room in ROOMS:
        for number, entry in enumerate(_entries(room), 1):
            try:
                found.append(_kept(room, number, entry))
            except LostFaultError as error:
                lost.append(str(error))
    if lost:
        raise LostFaultError("\n".join(lost))
    return found


def _entries(room: str) -> list[dict[str, Any]]:
    import yaml

    path = FOLDER / f"{room}.yaml"
    return yaml.safe_load(path.read_text(encoding="utf-8")) or [] if path.is_file() else []


def _kept(room: str, number: int, entry: dict[str, Any]) -> KeptFault:
    name = f"{room}-kept-{number}"
    before = entry["source"].strip("\n")
    times = (ROOT / entry["file"]).read_text(encoding="utf-8").count(before)
    if times != 1:
        raise LostFaultError(f"{name}: {entry['file']} has {before.strip()!r} {times} times; it must have it once")
    offset = (ROOT / entry["file"]).read_text(encoding="utf-8").index(before)
    fault = Fault(name, room, entry["file"], offset, before, entry["planted"].strip("\n"))
    scenario, _, seed = entry.get("world", "").partition(" seed ")
    return KeptFault(
        fault, entry["rule"], entry.get("finder", ""), entry.get("first", ""), World(scenario, int(seed or 1))
    )
