"""A server called in process holds SIGTERM and SIGINT back while it serves, and no longer."""

import signal
import threading

from mews.emulator.hostd.serve import main
from mews.emulator.serve import ENDINGS, endings_held_back


def held_back():
    return signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_the_endings_are_held_back_within_and_what_came_is_forgotten():
    before = held_back()
    with endings_held_back():
        assert set(ENDINGS) <= held_back()
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
    assert held_back() == before


def test_a_command_that_is_refused_leaves_them_as_they_were(tmp_path, capsys):
    before = held_back()
    words = ["--hardware", str(tmp_path / "none.yaml"), "--chassis", str(tmp_path / "c"), "--root", str(tmp_path)]
    assert main(words) == 2
    assert "none.yaml" in capsys.readouterr().err
    assert held_back() == before
