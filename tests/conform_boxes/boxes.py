"""Sixty boxes by a seed: twenty of each dialect, right and wrong, quick and slow, plain and behind proxies."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from mews.emulator.hardware.chassis_profiles import parse_profile
from mews.emulator.hardware.emulation_context import EmulationContext
from mews.emulator.inventory_file import load_hardware
from mews.emulator.serve import ChassisServer
from mews.emulator.tls import made_for_a_while
from mews.emulator.wrongs.proxy import WrongProxy
from mews.emulator.wrongs.registry import WRONGS
from mews.harness.package import room
from tests.conform_boxes.front import MANNERS, Behind, in_front
from tests.harness.conformance.wire import box_handler, running
from tests.harness.conformance.wrong import Wrong as SmallBox

DIALECTS = ("h3api", "resource-pool", "redfish")
PASSWORD = "a-password-of-boxes"
IDLE = ("000100", "000200")
BRISK, LASTING, SLOW = "brisk", "lasting", "slow"
PROFILES: Mapping[str, tuple[object, float]] = {
    BRISK: ("instant", 10.0),
    LASTING: ({"attach": 3.0, "detach": 3.0}, 10.0),
    SLOW: ({"attach": 4.0, "detach": 3.0}, 1.0),
}
"""Pace -> latencies and speed of the chassis."""
OURS, SMALL = "ours", "small"
RIGHT, ODD, WRONG = 4, 4, 12
"""Boxes of each dialect."""


class Box(Struct, frozen=True):
    """One box. ``make``: the emulator, or a small server that shares no code with it; ``wrong``: the planted deviation,
    empty where it is right; ``odd``: what is unusual and legal."""

    name: str
    dialect: str
    make: str = OURS
    pace: str = BRISK
    wrong: str = ""
    odd: tuple[str, ...] = ()
    manners: tuple[str, ...] = ()

    def __str__(self) -> str:
        parts = [self.make, self.pace, *(f"odd {each}" for each in self.odd), *self.manners]
        return f"{self.name}: {self.dialect}, {self.wrong or 'right'}, {', '.join(parts)}"


class OpenBox(Struct, frozen=True):
    """A box that answers: where, by which CA, and where its devices are in truth."""

    url: str
    ca: Path | None
    places: Callable[[], Mapping[str, str | None]]


def drawn(seed: int) -> list[Box]:
    """All of them, by the seed."""
    rng = random.Random(f"boxes/{seed}")
    boxes: list[Box] = []
    for dialect in DIALECTS:
        names = sorted(name for name, wrong in WRONGS.items() if dialect in wrong.dialects)
        odd = [name for name in names if WRONGS[name].legal and not name.startswith("odd-slow")]
        planted = rng.sample([name for name in names if not WRONGS[name].legal], WRONG)
        makes = (OURS,) if dialect == "redfish" else (OURS, OURS, SMALL)
        for number in range(RIGHT + ODD + WRONG):
            wrong = planted[number - RIGHT - ODD] if number >= RIGHT + ODD else ""
            lasting = bool(wrong) and WRONGS[wrong].lasting
            make = OURS if lasting else rng.choice(makes)
            pace = LASTING if lasting else SLOW if make == OURS and number % 5 == 1 else BRISK
            oddities = 0 if number < RIGHT else rng.randint(1, 3) if not wrong else rng.choice((0, 0, 1))
            manners = rng.sample(MANNERS, rng.choice((1, 2, 3))) if number % 4 else []
            boxes.append(
                Box(
                    f"{dialect}-{number:02}",
                    dialect,
                    make,
                    pace,
                    wrong,
                    tuple(rng.sample(odd, oddities)),
                    tuple(sorted(manners)),
                )
            )
    return boxes


@contextmanager
def opened(box: Box, seed: int) -> Iterator[OpenBox]:
    """Serve it: the chassis, before it what is wrong or odd, before that the reverse proxy, each a server."""
    with ExitStack() as stack:
        behind, places = stack.enter_context(_chassis(box))
        wrongs = [WRONGS[name] for name in (*([box.wrong] if box.wrong else []), *box.odd)]
        if wrongs:
            context = None if behind.ca is None else _trusting(behind.ca)
            proxy = WrongProxy(behind.url, wrongs, context=context, seed=seed)
            proxy.start()
            stack.callback(proxy.stop)
            behind = Behind(proxy.url, proxy.ca)
        if not box.manners:
            yield OpenBox(behind.url, behind.ca, places)
            return
        identity = made_for_a_while()
        url = stack.enter_context(in_front(behind, box.manners, identity))
        yield OpenBox(url, identity.certificate if url.startswith("https:") else None, places)


def _trusting(ca: Path):
    from mews.harness.conformance.certificates import TlsArguments

    return TlsArguments(ca).context("https://box")


@contextmanager
def _chassis(box: Box) -> Iterator[tuple[Behind, Callable[[], Mapping[str, str | None]]]]:
    if box.make == SMALL:
        small = SmallBox()
        with running(box_handler(small)) as port:
            yield Behind(f"http://127.0.0.1:{port}"), lambda: {name: at or None for name, at in small.ports.items()}
        return
    loaded = load_hardware(room("fixtures") / "hardware" / "demo.yaml")
    profile, speed = PROFILES[box.pace]
    chassis = tuple(replace(spec, profile=parse_profile(profile, spec.name)) for spec in loaded.chassis)
    server = ChassisServer(
        replace(loaded, chassis=chassis),
        dialects=(box.dialect,),
        password=PASSWORD,
        context=EmulationContext(speed=speed),
    )
    server.start()
    try:
        with server.rack.box("A") as inside:
            for device in IDLE:
                inside.edits.edit(device, None, server.rack.clock.now())
        ready = server.ready()
        ca = Path(ready["ca"]) if box.dialect == "redfish" else None
        yield Behind(ready["chassis"]["A"][box.dialect], ca), lambda: _places(server)
    finally:
        server.stop()


def _places(server: ChassisServer) -> dict[str, str | None]:
    return {device: row["port"] for device, row in server.rack.table()["A"].items()}


def sample(boxes: Sequence[Box], count: int, seed: int) -> list[Box]:
    """So many of them."""
    return sorted(random.Random(f"sample/{seed}").sample(list(boxes), count), key=lambda box: box.name)
