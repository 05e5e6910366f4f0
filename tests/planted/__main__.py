"""``python -m tests.planted --seed N``: plant faults, one at a time, and say which are found and named.

The last lines are one JSON object a room: ``{"room","planted","found","named"}``, both halves together.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import pickle
import random
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from tests.planted.fault import Fault, LostFaultError
from tests.planted.kept import KeptFault, kept_faults
from tests.planted.mutate import faults_of
from tests.planted.processes import Say, said
from tests.planted.rooms import ROOMS, ROOT
from tests.planted.trial import Verdict, search, try_in, verdict_of
from tests.planted.worlds import Played, World, fixed_set, play

DRAWN = 75
FOUND, NAMED = 0.95, 0.85
"""The bars: which parts of a half must be found, and named."""
FAULT_S = 900.0
"""Wall-clock time for all worlds of one fault."""


def main() -> int:
    """Plant both halves; 1 where a half is below its bar."""
    parser = argparse.ArgumentParser(prog="python -m tests.planted")
    parser.add_argument("--seed", type=int, default=1, help="of the drawn half")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--half", choices=("kept", "drawn", "both"), default="both")
    parser.add_argument(
        "--drawn", type=int, default=DRAWN, metavar="N", help="so many that count; default: %(default)s"
    )
    parser.add_argument("--room", choices=sorted(ROOMS), help="this room alone")
    parser.add_argument("--sample", type=int, metavar="N", help="so many of those kept by hand, each in its own world")
    parser.add_argument("--seeds", type=int, default=3, metavar="N", help="seeds of the shipped scenarios: 1 to N")
    parser.add_argument("--worlds", type=int, default=10_000, metavar="N", help="at most so many worlds for each fault")
    parser.add_argument("--out", type=Path, help="a line of JSON for each fault")
    parser.add_argument("--clean", type=Path, help="clean runs, kept between runs while the sources stay as they are")
    parser.add_argument("--limit", type=float, default=FAULT_S, metavar="S", help="seconds for all worlds of one fault")
    chosen = parser.parse_args()
    try:
        kept = [each for each in kept_faults() if chosen.room in (None, each.fault.room)]
    except LostFaultError as error:
        sys.stdout.write(f"{error}\n")
        return 1
    sys.stdout.write(f"seed {chosen.seed}\n")
    if chosen.sample is not None:
        kept = [each for each in kept if each.finder.startswith(("found", "named by "))]
        return _sample(random.Random(f"{chosen.seed}/sample").sample(kept, min(chosen.sample, len(kept))), chosen.jobs)
    worlds = fixed_set(tuple(range(1, chosen.seeds + 1)))
    clean = _clean(worlds, chosen.jobs, chosen.clean)
    run = _Run(clean, chosen.jobs, chosen.out, chosen.limit, chosen.worlds)
    halves = {}
    if chosen.half != "drawn":
        halves["kept by hand"] = run.verdicts([each.fault for each in kept])
    if chosen.half != "kept":
        rooms = [chosen.room] if chosen.room else list(ROOMS)
        halves["drawn"] = [each for each in run.drawn(rooms, chosen.drawn, chosen.seed) if each.counts]
    is_below = [not account(name, verdicts) for name, verdicts in halves.items()]
    both = [verdict for verdicts in halves.values() for verdict in verdicts]
    for room in ROOMS:
        of = [verdict for verdict in both if verdict.fault.room == room]
        found, named = _counted(of)
        sys.stdout.write(json.dumps({"room": room, "planted": len(of), "found": found, "named": named}) + "\n")
    return 1 if any(is_below) else 0


class _Run:
    """Plants faults in worlds whose clean runs are known."""

    def __init__(self, clean: Mapping[World, Played], jobs: int, out: Path | None, limit_s: float, most: int) -> None:
        self._clean, self._jobs, self._out, self._limit_s, self._most = clean, jobs, out, limit_s, most
        self._worlds = list(clean)
        self._run_functions = {function for played in clean.values() for function in played.functions}

    def verdicts(self, faults: Sequence[Fault]) -> list[Verdict]:
        """Of all of them, in their order."""
        found: dict[int, Verdict] = {}
        works = [partial(search, fault, self._worlds, self._clean, self._most) for fault in faults]
        for number, sights in said(works, jobs=self._jobs, limit_s=self._limit_s):
            found[number] = verdict_of(faults[number], sights)
            self._say(found[number])
        return [found[number] for number in sorted(found)]

    def drawn(self, rooms: Sequence[str], count: int, seed: int) -> list[Verdict]:
        """So many that count, spread over the rooms; says how many were drawn and did not."""
        verdicts: list[Verdict] = []
        unreached = 0
        for place, room in enumerate(rooms):
            wanted = count // len(rooms) + (place < count % len(rooms))
            among = faults_of(room, random.Random(f"{seed}/{room}"))
            counting: list[Verdict] = []
            while len(counting) < wanted:
                batch, passed = self._reached(among, wanted - len(counting))
                unreached += passed
                if not batch:
                    break
                tried = self.verdicts(batch)
                counting += [each for each in tried if each.counts]
                verdicts += [each for each in tried if not each.counts]
            verdicts += counting
        idle = sum(not each.counts for each in verdicts)
        sys.stdout.write(
            f"drawn: {len(verdicts) + unreached}, of which {unreached} are in functions that no world runs and {idle} "
            f"change no journal\n"
        )
        return verdicts

    def _reached(self, among: Iterator[Fault], count: int) -> tuple[list[Fault], int]:
        """The next faults in functions that a world runs, and how many others came before them."""
        found: list[Fault] = []
        passed = 0
        for fault in among:
            if fault.function() in self._run_functions:
                found.append(fault)
            else:
                passed += 1
            if len(found) == count:
                break
        return found, passed

    def _say(self, verdict: Verdict) -> None:
        lives = "reorders" if verdict.reorders else "lives"
        word = "named" if verdict.named else "found" if verdict.found else lives if verdict.counts else "no change"
        sight = verdict.named or verdict.found or next(iter(verdict.sights), None)
        where = f" [{sight.world}, line {sight.first} {sight.kind}: {sight.named} {sight.alarm[:90]}]" if sight else ""
        sys.stdout.write(f"{word:9} {verdict.fault}{where}\n")
        sys.stdout.flush()
        if self._out is not None:
            with self._out.open("a", encoding="utf-8") as file:
                seen = {name: _plain(getattr(verdict, name)) for name in ("found", "named")}
                sights = [_plain(each) for each in verdict.sights]
                fault = {"name": verdict.fault.name, "room": verdict.fault.room, "fault": str(verdict.fault)}
                file.write(json.dumps({**fault, "word": word.strip(), **seen, "sights": sights}) + "\n")


def _plain(sight: object) -> dict[str, object] | None:
    if sight is None:
        return None
    return {name: getattr(sight, name) for name in ("world", "first", "kind", "alarm", "named")}


def account(name: str, verdicts: Sequence[Verdict]) -> bool:
    """Print what became of a half, room by room; whether it reaches both bars. One of the kept faults that changes no
    journal is not found either."""
    (found, named), total = _counted(verdicts), max(len(verdicts), 1)
    reached = found >= FOUND * len(verdicts) and named >= NAMED * len(verdicts)
    sys.stdout.write(
        f"{name}: {len(verdicts)} planted, {found} found ({100 * found / total:.0f} %), {named} named "
        f"({100 * named / total:.0f} %){'' if reached else f'; the bars are {FOUND:.0%} and {NAMED:.0%}'}\n"
    )
    reordering = sum(each.reorders for each in verdicts)
    if reordering:
        sys.stdout.write(f"  {reordering} of those that live only change the order of what happens at one moment\n")
    for room, of in _by_room(verdicts).items():
        found, named = _counted(of)
        sys.stdout.write(f"  {room:12} {len(of):3} planted {found:3} found {named:3} named\n")
    return reached


def _by_room(verdicts: Sequence[Verdict]) -> dict[str, list[Verdict]]:
    rooms: dict[str, list[Verdict]] = {}
    for each in verdicts:
        rooms.setdefault(each.fault.room, []).append(each)
    return rooms


def _counted(verdicts: Sequence[Verdict]) -> tuple[int, int]:
    """How many are found, and how many named."""
    return sum(each.found is not None for each in verdicts), sum(each.named is not None for each in verdicts)


def _clean(worlds: Sequence[World], jobs: int, keep: Path | None) -> dict[World, Played]:
    """The runs without a fault; worlds that are skipped, or alarmed by themselves, are left out."""
    key = _state_of_sources(worlds)
    if keep is not None and keep.is_file():
        known, clean = pickle.loads(keep.read_bytes())
        if known == key:
            return clean
    began_s = time.monotonic()
    _warm_up()
    parts = [list(worlds[at::16]) for at in range(16)]
    found: dict[World, Played] = {}
    for _, seen in said([partial(_play_all, part) for part in parts], jobs=jobs, limit_s=3600):
        found.update(dict(seen))
    wrong = [world for world in worlds if world in found and found[world].alarm]
    clean = {world: found[world] for world in worlds if world in found and not found[world].alarm}
    took_s = time.monotonic() - began_s
    sys.stdout.write(f"{len(clean)} worlds are clean ({took_s:.0f} s); {len(worlds) - len(found)} are skipped\n")
    for world in wrong:
        sys.stdout.write(f"  left out, alarmed by itself: {world}: {found[world].alarm}\n")
    if keep is not None:
        keep.write_bytes(pickle.dumps((key, clean)))
    return clean


def _play_all(worlds: Sequence[World], say: Say) -> None:
    for world in worlds:
        played = play(world, trace=True, limit_s=600)
        if played is not None:
            say((world, played))


def _state_of_sources(worlds: Sequence[World]) -> str:
    digest = hashlib.sha256(repr(worlds).encode())
    for folder in ("emulator", "fixtures", "harness", "kube", "scenarios", "src", "systems", "tests/oracle"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".yaml", ".json", ".csv") and "__pycache__" not in path.parts:
                digest.update(path.read_bytes())
    return digest.hexdigest()


def _warm_up() -> None:
    """Import here, once for all children, what worlds import beside mews and the tests."""
    for _, names in said([_imported], jobs=1, limit_s=120):
        for name in names[0] if names else ():
            with contextlib.suppress(ImportError):  # some exist only once another has made them
                importlib.import_module(name)


def _imported(say: Say) -> None:
    play(World("demo.yaml", 1))
    play(World("elastic/01-scale-in.yaml", 1))
    ours = ("mews", "tests", "_", "__main__")
    say([name for name in sys.modules if not name.startswith(ours) and "." not in name])


def _sample(kept: Sequence[KeptFault], jobs: int) -> int:
    """Each in the world that is recorded as its finder's; 1 where one is not found as it is recorded."""
    _warm_up()
    worlds = list(dict.fromkeys(each.world for each in kept))
    clean: dict[World, Played] = {}
    for number, seen in said([partial(_play_once, world) for world in worlds], jobs=jobs, limit_s=300):
        clean.update((worlds[number], played) for played in seen)
    bad = 0
    for number, sights in said([partial(_try_kept, each, clean) for each in kept], jobs=jobs, limit_s=300):
        each = kept[number]
        complaint = _complaint(each, verdict_of(each.fault, sights))
        bad += bool(complaint)
        sys.stdout.write(f"{complaint if complaint else 'ok'}: {each.fault}\n")
    sys.stdout.write(f"{len(kept)} planted, {len(kept) - bad} as they are recorded\n")
    return 1 if bad else 0


def _complaint(each: KeptFault, verdict: Verdict) -> str:
    if each.finder == "none":
        return "found, and recorded as living" if verdict.found else ""
    if verdict.found is None:
        return f"not found in {each.world}"
    if each.first and verdict.found.kind != each.first:
        return f"its first wrong line is {verdict.found.kind}, not {each.first}"
    if each.finder.startswith("named by ") and verdict.named is None:
        return f"nobody names its first wrong line, not even {each.finder.removeprefix('named by ')}"
    return ""


def _play_once(world: World, say: Say) -> None:
    say(play(world))


def _try_kept(each: KeptFault, clean: Mapping[World, Played], say: Say) -> None:
    """Its own world alone, whether or not the fault is reached there."""
    try_in(each.fault, each.world, clean[each.world], say)


if __name__ == "__main__":
    sys.exit(main())
