"""What simulated containers play."""

from __future__ import annotations

import math

import pytest

from mews.kube.emulated.kubelet.script import ScriptRun, play

ENV = {"NAME": "mews", "GPUS": "a,b"}


@pytest.mark.parametrize(
    ("command", "duration_s", "exit_code", "said"),
    [
        (["sleep", "300"], 300, 0, ""),
        (["sleep", "1m", "30s"], 90, 0, ""),
        (["/bin/sleep", "0.5"], 0.5, 0, ""),
        (["sleep", "infinity"], math.inf, 0, ""),
        (["sh", "-c", "sleep 2; exit 3"], 2, 3, ""),
        (["sh", "-c", "echo hi $NAME && sleep 1\nfalse"], 1, 1, "hi mews\n"),
        (["bash", "-c", "false || echo no; true && exit 4"], 0, 4, "no\n"),
        (["sh", "-c", "false && echo never; echo ${GPUS}"], 0, 0, "a,b\n"),
        (["printenv", "NAME"], 0, 0, "mews\n"),
        (["printenv", "MISSING"], 0, 1, ""),
        (["env"], 0, 0, "GPUS=a,b\nNAME=mews\n"),
        (["sh", "-c", "exec sleep 7; echo never"], 7, 0, ""),
        (["sh", "-c", "while true; do echo tick; sleep 1; done"], math.inf, 0, "tick\n"),
        (["true"], 0, 0, ""),
    ],
)
def test_a_command_is_played(command: list[str], duration_s: float, exit_code: int, said: str) -> None:
    scene = play(command, ENV)
    assert scene is not None
    assert (scene.duration_s, scene.exit_code) == (duration_s, exit_code)
    assert "".join(text for _, text in scene.outputs) == said


@pytest.mark.parametrize(
    "command",
    [
        [],
        ["python", "train.py"],
        ["sh", "-c", "echo $(date)"],
        ["sh", "-c", "sleep 5 & wait"],
        ["sh", "-c", "echo a | cat"],
        ["sh", "-c", "echo a > file"],
        ["sh", "-c", "if true; then sleep 1; fi"],
        ["sh", "-c", "unbalanced '"],
        ["sh", "-c", "while true; do true; done"],
        ["sleep", "soon"],
        ["sh"],
    ],
)
def test_what_it_does_not_know_it_never_guesses(command: list[str]) -> None:
    assert play(command, ENV) is None


def test_traps_decide_what_term_does() -> None:
    assert play(["sh", "-c", "trap 'sleep 1; exit 0' TERM; while true; do sleep 0.1; done"], {}) == ScriptRun(
        duration_s=math.inf, term_exit_code=0, term_delay_s=1.0
    )
    ignoring = play(["sh", "-c", "trap '' TERM; sleep 60"], {})
    assert ignoring is not None
    assert ignoring.term_exit_code is None
    plain = play(["sleep", "60"], {})
    assert plain is not None
    assert plain.term_exit_code == 143
