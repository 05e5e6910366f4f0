"""What the workflow does where no Linux is: here, too, and it complains of what is not as it must be."""

from __future__ import annotations

import pytest

from ci.elsewhere import CASES, complaints

pytestmark = pytest.mark.wall


def test_a_right_chassis_is_judged_by_the_installed_command(tmp_path):
    assert CASES[0] == ("", 0, "passed")
    assert list(complaints(*CASES[0], tmp_path)) == []


def test_a_verdict_and_an_exit_code_that_are_not_those_are_said(tmp_path):
    found = list(complaints("byte-order-mark", 0, "passed", tmp_path))
    assert [each[:40] for each in found] == ["exit code 1, must be 0: ", "the verdict is failed, must be passed"]
