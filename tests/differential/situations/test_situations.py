"""What becomes of situations, and of pods with one field set: with the real control plane's programs, and with ours."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping, Sequence
from functools import cache

import pytest

from mews.harness.clock import run_virtual
from mews.harness.clusters.programs.finding import CONTROLLERS, SCHEDULER, find, needed
from mews.harness.errors import RequirementError
from mews.harness.options import RunOptions
from tests.differential.situations import pod_fields
from tests.differential.situations.known import KNOWN_FIELDS, KNOWN_SITUATIONS
from tests.differential.situations.playing import Situation, Verdict, play_all, situations

DAILY, FIELDS_DAILY = 16, 40
_NIGHT = bool(os.environ.get("MEWS_NIGHTLY"))


def _drawn(given: Sequence[Situation], count: int) -> list[Situation]:
    """The day's: others tomorrow would hide what broke today."""
    return random.Random(28).sample([each for each in given if not each.nightly], count)


SITUATIONS = {each.name: each for each in situations()}
FIELDS = {each.title: each for each in pod_fields.situations()}
TODAY = {each.name for each in _drawn(list(SITUATIONS.values()), DAILY)}
MIXED_TODAY = set(sorted(TODAY)[::2])
FIELDS_TODAY = {each.title for each in _drawn(list(FIELDS.values()), FIELDS_DAILY)}


def _lacking() -> str:
    try:
        needed()
    except RequirementError as error:
        return str(error)
    missing = [name for name in (SCHEDULER, CONTROLLERS) if find(name) is None]
    return f"{missing[0]} is not found" if missing else ""


@cache
def verdicts(kind: str) -> tuple[dict[str, Verdict], dict[str, Verdict]]:
    """Theirs and ours, of all that runs today: on one cluster each. What differs is played once more with the real
    programs, which a busy machine may keep from their heartbeats; what differs then is a difference."""
    if why := _lacking():
        pytest.skip(why)
    everything, daily = {"situations": (SITUATIONS, TODAY), "fields": (FIELDS, FIELDS_TODAY)}[kind]
    chosen = [each for name, each in everything.items() if _NIGHT or name in daily]
    real, ours = dict[str, Verdict](), dict[str, Verdict]()
    together = [each for each in chosen if not each.alone]
    for some in (together, *([each] for each in chosen if each.alone)):
        ours |= run_virtual(lambda some=some: play_all(some, RunOptions()))
        real |= _real(some, ours)
        again = [each for each in some if real[each.name] != ours[each.name]]
        real |= _real(again, ours) if again else {}
    return real, ours


def _real(chosen: Sequence[Situation], ours: Mapping[str, Verdict]) -> dict[str, Verdict]:
    return asyncio.run(play_all(chosen, RunOptions("control-plane", "wall"), expected=ours))


@cache
def mixed_verdicts() -> tuple[dict[str, Verdict], dict[str, Verdict]]:
    """Of the real scheduler and controllers on our API and kubelets, and of ours."""
    if why := _lacking():
        pytest.skip(why)
    chosen = [each for name, each in SITUATIONS.items() if not each.alone and (_NIGHT or name in MIXED_TODAY)]
    ours = run_virtual(lambda: play_all(chosen, RunOptions()))
    mixed = _mixed(chosen, ours)
    again = [each for each in chosen if mixed[each.name] != ours[each.name]]
    return mixed | (_mixed(again, ours) if again else {}), ours


def _mixed(chosen: Sequence[Situation], ours: Mapping[str, Verdict]) -> dict[str, Verdict]:
    wall = RunOptions("embedded", "wall")
    return asyncio.run(play_all(chosen, wall, expected=ours, scheduler="real", controllers="real"))


def _marked(names: Sequence[str], daily: set[str]) -> list[object]:
    return [name if name in daily else pytest.param(name, marks=pytest.mark.nightly) for name in names]


@pytest.mark.wall
@pytest.mark.parametrize("name", _marked(list(SITUATIONS), TODAY))
def test_a_situation_comes_to_the_same_with_the_real_controllers(name: str) -> None:
    real, ours = (told[name] for told in verdicts("situations"))
    if name in KNOWN_SITUATIONS:
        assert real != ours, f"{name} no longer differs: take it out of KNOWN_SITUATIONS"
        return
    assert real == ours


@pytest.mark.wall
@pytest.mark.parametrize("name", _marked([name for name in SITUATIONS if not SITUATIONS[name].alone], MIXED_TODAY))
def test_a_situation_comes_to_the_same_with_the_real_controllers_on_our_api(name: str) -> None:
    mixed, ours = (told[name] for told in mixed_verdicts())
    assert mixed == ours


@pytest.mark.wall
@pytest.mark.parametrize("title", _marked(list(FIELDS), FIELDS_TODAY))
def test_a_pod_with_one_field_set_has_the_same_verdict(title: str) -> None:
    real, ours = (told[FIELDS[title].name] for told in verdicts("fields"))
    if title in KNOWN_FIELDS:
        assert real != ours, f"{title} no longer differs: take it out of KNOWN_FIELDS"
        return
    assert real == ours


def test_there_are_forty_situations_and_each_has_a_name_of_its_own() -> None:
    assert len(SITUATIONS) == len(situations()) >= 40
    assert set(KNOWN_SITUATIONS) <= set(SITUATIONS)
    assert set(KNOWN_FIELDS) <= set(FIELDS)


def test_most_pods_of_one_field_are_taken() -> None:
    """Refusals alone would compare nothing but validation; the pods of one field must mostly come to run or wait."""
    ours = run_virtual(lambda: play_all(FIELDS.values(), RunOptions()))
    refused = [name for name, verdict in ours.items() if verdict[0].startswith("refused")]
    assert len(refused) < len(ours) / 10
    assert len({each.name for each in FIELDS.values()}) == len(FIELDS) > 300
