"""CoHDI's own programs, unchanged, attach a GPU for a claim and give it back (``tests.programs``).

Two faults of the fabric manager they do not bear, and runs with those must fail, and say so. The operator asks for
one more GPU of a model and names none: where the answer is lost it asks again, and a second one comes
(``scenarios/cohdi/02-answer-lost.yaml``). The driver keeps a token that has ended until the time that is written in it,
and its pool stays as it was (``03-token-ends.yaml``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from mews.harness.scenario.loader import find_scenarios
from tests.systems.cohdi.playing import FOLDER, SCENARIO, drawn, play, play_file, programs

pytestmark = pytest.mark.wall

CDIM = FOLDER / "04-cdim.yaml"
LOST = ("refused though done", "dropped after")
"""Faults of an attach that took effect: the operator does not learn of it."""
KEPT = ("refused", "not applied", "dropped before", "token ends before")
"""Faults by which a request takes no effect, whatever else strikes it: all faults of a run strike its first request."""
ENDED = ("token ends before", "token ends after")
"""Faults after which the driver can no longer count free devices."""
SEEDS = range(1, 21)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder with the three programs."""
    yield programs(tmp_path_factory.mktemp("cohdi"))


def test_the_programs_attach_a_gpu_for_a_claim_and_give_it_back(folder: Path) -> None:
    ended = play(folder, ())
    assert ended.result.verdict == "passed", ended.result.reason


def test_the_operator_does_so_by_layouts_of_cdim(folder: Path) -> None:
    """It takes the first free GPU in order of its ID there, which the fabric manager would not give."""
    ended = play_file(CDIM, folder)
    assert ended.result.verdict == "passed", ended.result.reason


@pytest.mark.nightly
def test_they_do_so_before_the_real_control_plane(folder: Path) -> None:
    ended = play(folder, (), cluster="control-plane")
    if ended.result.verdict == "skipped":
        pytest.skip(str(ended.result.reason))
    assert ended.result.verdict == "passed", ended.result.reason


@pytest.mark.nightly
@pytest.mark.parametrize("seed", SEEDS)
def test_faults_of_the_fabric_manager_cost_a_retry_or_are_found_out(folder: Path, tmp_path: Path, seed: int) -> None:
    faults = drawn(seed)
    kept = tmp_path / "scenario.yaml"
    wrong = goes_wrong(faults)
    ended = play(folder, faults, keep=kept, patience="50s" if wrong else None)
    assert ended.result.verdict == ("failed" if wrong else "passed"), f"{faults}: {ended.result.reason}: {kept}"
    if is_lost(faults):
        assert sum(line.layer == "chassis" and line.event == "attached" for line in ended.lines) > 1
    elif wrong:
        assert "gpu-v100-fabric0" in str(ended.result.reason)


@pytest.mark.nightly
@pytest.mark.parametrize(
    "path", [path for path in find_scenarios([FOLDER]) if path not in (SCENARIO, CDIM)], ids=lambda path: path.stem
)
def test_what_goes_wrong_in_them_goes_wrong_again(folder: Path, path: Path) -> None:
    ended = play_file(path, folder)
    assert ended.result.verdict == "passed", ended.result.reason


def goes_wrong(faults: Sequence[tuple[str, str]]) -> bool:
    """Whether they have one that the programs do not bear."""
    return is_lost(faults) or any(name in ENDED for name, _ in faults)


def is_lost(faults: Sequence[tuple[str, str]]) -> bool:
    """Whether an attach takes effect, and the operator does not learn of it."""
    attach = {name for name, on in faults if on == "attach"}
    return bool(attach & set(LOST)) and not attach & set(KEPT)


def test_the_seeds_draw_every_outcome() -> None:
    found = [drawn(seed) for seed in SEEDS]
    assert any(not faults for faults in found)
    assert len([faults for faults in found if is_lost(faults)]) >= 2
    assert any(name in LOST and on == "detach" for faults in found for name, on in faults)
    assert not is_lost([("refused", "attach"), ("dropped after", "attach")])
    assert is_lost([("refused", "detach"), ("dropped after", "attach")])
    assert len([faults for faults in found if faults and not goes_wrong(faults)]) >= 5
    assert any(on == "detach" for faults in found for _, on in faults)
    assert len({name for faults in found for name, _ in faults}) >= 6
