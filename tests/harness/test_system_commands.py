"""Sub-commands that systems bring, on a toy."""

import pytest

from mews.harness.cli import exit_code
from mews.kube.system.command import Command


def show(arguments, context):
    if len(arguments) > 1:
        raise ValueError(f"{arguments[1]!r}: must be one node")
    if arguments == ["missing"]:
        context.kubeconfig("nobody-has-this-name")
    context.write(f"shown {list(arguments)}\n")
    return len(arguments)


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    command = Command("look at-toy", "Show the toy.", show, "[NODE]")
    monkeypatch.setattr("mews.harness.systems.all_commands", lambda: {command.name: command})


def test_a_command_of_several_words_gets_the_words_after_its_name_and_gives_the_exit_code(capsys):
    assert exit_code(["look", "at-toy"]) == 0
    assert exit_code(["look", "at-toy", "-d"]) == 1
    assert capsys.readouterr().out == "shown []\nshown ['-d']\n"


def test_bad_arguments_are_one_line_and_code_two(capsys):
    assert exit_code(["look", "at-toy", "a", "b"]) == 2
    assert capsys.readouterr().err == "mews look at-toy: 'b': must be one node\n"
    assert exit_code(["look", "elsewhere"]) == 2
    assert capsys.readouterr().err == "mews look elsewhere: must be one of mews look at-toy\n"


def test_a_cluster_that_does_not_run_is_lacking(capsys):
    assert exit_code(["look", "at-toy", "missing"]) == 2
    assert "--name nobody-has-this-name: no `mews up` of that name runs" in capsys.readouterr().err


def test_it_is_listed_and_explains_itself(capsys):
    assert exit_code(["--help"]) == 0
    assert "Show the toy." in capsys.readouterr().out
    assert exit_code(["look", "at-toy", "--help"]) == 0
    assert "Usage: mews look at-toy [NODE]" in capsys.readouterr().out


def test_no_command_of_ours_can_be_taken(capsys, monkeypatch):
    stolen = Command("version", "Not ours.", lambda arguments, context: 9)
    monkeypatch.setattr("mews.harness.systems.all_commands", lambda: {"version": stolen})
    assert exit_code(["version"]) == 0
