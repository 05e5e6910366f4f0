"""What becomes of one fault in the worlds that it can change."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from tests.planted.fault import Fault
from tests.planted.planting import plant
from tests.planted.processes import Say
from tests.planted.worlds import Citation, Hangs, Played, World, play

NEAR = 10
"""A line of the same object so many lines later counts as the first wrong one."""
LOOKED_ON = 6
"""In so many more worlds that it changes a found fault may be named."""


@dataclass(frozen=True, slots=True)
class Sight:
    """A world that the fault changes. ``first``: the number of the first wrong line, and ``kind`` what it is; ``alarm``
    as in ``Played``; ``named``: by which law or check it is cited, "" where by none; ``reorders``: all is as in the
    clean run but for the order of what happens at one moment, and for what is drawn or counted."""

    world: str
    first: int
    kind: str
    alarm: str
    named: str
    reorders: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Of one fault: whether it counts (it changes a journal), is found and named, and by what."""

    fault: Fault
    counts: bool
    found: Sight | None
    named: Sight | None
    sights: tuple[Sight, ...] = ()

    @property
    def reorders(self) -> bool:
        """Whether it lives and changes nothing in any world but the order of what happens at one moment."""
        return self.counts and self.found is None and all(sight.reorders for sight in self.sights)


def search(fault: Fault, worlds: Sequence[World], clean: Mapping[World, Played], most: int, say: Say) -> None:
    """Play at most so many worlds with the fault, until one names it; says a Sight for each world that it changes."""
    _be_quiet()
    plant(fault)
    left, hung = LOOKED_ON, 0
    for world in in_order(fault, worlds, clean)[:most]:
        try:
            seen = play(world)
        except Hangs:
            hung += 1
            say(Sight(str(world), 0, "hangs", "", ""))
            if hung > 1:
                return
            continue
        sight = compared(world, clean[world], seen)
        if sight is None:
            continue
        say(sight)
        left -= bool(sight.alarm)
        if sight.named or left == 0:
            return


def try_in(fault: Fault, world: World, clean: Played, say: Say) -> None:
    """Play one world with the fault; says its Sight where the fault changes it."""
    _be_quiet()
    plant(fault)
    with contextlib.suppress(Hangs):
        sight = compared(world, clean, play(world))
        if sight is not None:
            say(sight)


def _be_quiet() -> None:
    null = os.open(os.devnull, os.O_WRONLY)
    if not os.environ.get("PLANTED_DEBUG"):
        os.dup2(null, 2)
    sys.dont_write_bytecode = True


def in_order(fault: Fault, worlds: Sequence[World], clean: Mapping[World, Played]) -> list[World]:
    """Those that run its function: in turn a scenario of the room, a random world and another scenario, cheap ones
    first and the first seed first."""
    function = fault.function()
    reached = [world for world in worlds if function is None or function in clean[world].functions]
    reached.sort(key=lambda world: (world.seed, clean[world].took_s, str(world)))
    folder = {"kod2": "elastic"}.get(fault.room, fault.room)
    own = [world for world in reached if not world.is_random and world.scenario.startswith(f"{folder}/")]
    random = [world for world in reached if world.is_random]
    others = [world for world in reached if not world.is_random and world not in own]
    return [each for turn in zip_longest(own, random, others) for each in turn if each is not None]


def compared(world: World, clean: Played, seen: Played | None) -> Sight | None:
    """Where that run departs from the clean one, and who says so; None where it does not."""
    if seen is None:
        return Sight(str(world), 0, "skipped", "", "")
    first = departure(with_drawn_names(clean.lines), with_drawn_names(seen.lines))
    if first is None:
        return None
    about = _at(seen.objects, first) | _at(clean.objects, first)
    named = naming(seen, first, about) if seen.alarm else ""
    reorders = Counter(map(_bare, clean.lines)) == Counter(map(_bare, seen.lines))
    return Sight(str(world), first, kind_of(seen, first), seen.alarm, named, reorders)


_DRAWN = re.compile(r',"(?:uid|operation|step)":(?:"[^"]*"|\d+)')
"""Fields that say nothing of what happens: drawn by chance, or counted."""


def _bare(line: str) -> str:
    """The line with its time, and without what is drawn or counted."""
    return _DRAWN.sub("", line)


_DRAWN_NAME = re.compile(r'"(?:uid|request)":"([^"]+)"')
_LIKE_ONE = re.compile(r"\b(?:[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9a-f]{11}-[0-9a-f]{8})\b")


def with_drawn_names(lines: Sequence[str]) -> list[str]:
    """The lines with UIDs, and the names of requests, by their turn. They are drawn one after the other: where a fault
    changes how many there are, all later ones are others, which is no difference in what happens. One in another's
    place shows."""
    turns: dict[str, str] = {}
    named = []
    for line in lines:
        for name in _DRAWN_NAME.findall(line):
            turns.setdefault(name, f"#{len(turns)}")
        named.append(_LIKE_ONE.sub(lambda found: turns.get(found[0], found[0]), line))
    return named


def departure(clean: Sequence[str], seen: Sequence[str]) -> int | None:
    """The number of the first line that is not as in the clean run."""
    for number, (one, other) in enumerate(zip(clean, seen, strict=False)):
        if one != other:
            return number
    return None if len(clean) == len(seen) else min(len(clean), len(seen))


def naming(seen: Played, first: int, about: frozenset[str]) -> str:
    """By what the first wrong line is cited, or one of the same object soon after it."""
    return next((one.by for one in seen.citations if _is_cited(one, seen, first, about)), "")


def _is_cited(citation: Citation, seen: Played, first: int, about: frozenset[str]) -> bool:
    # A run that ends too early has no first wrong line: its last one can be cited.
    if citation.line == min(first, len(seen.lines) - 1):
        return True
    return first < citation.line <= first + NEAR and bool(about & _at(seen.objects, citation.line))


def _at(objects: Sequence[frozenset[str]], number: int) -> frozenset[str]:
    return objects[number] if number < len(objects) else frozenset()


def kind_of(seen: Played, number: int) -> str:
    """Layer and event of a line, as ``api bound``; "the end" beyond the last one."""
    if number >= len(seen.lines):
        return "the end"
    import json

    line = json.loads(seen.lines[number])
    return f"{line['layer']} {line['event']}"


def verdict_of(fault: Fault, sights: Sequence[Sight]) -> Verdict:
    """What its sights come to."""
    found = next((sight for sight in sights if sight.alarm), None)
    named = next((sight for sight in sights if sight.named), None)
    return Verdict(fault, bool(sights), found, named, tuple(sights))
