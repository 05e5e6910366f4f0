"""What the command line says of itself, and the options that stand before every command."""

from __future__ import annotations

import logging
import os
import re
import shlex

import pytest
import typer.main

from mews import __version__
from mews.harness import cli
from mews.harness.cli import exit_code
from mews.harness.commands import live
from mews.harness.commands.further import all_commands
from mews.harness.commands.help_layout import COMMAND_PANELS, EXAMPLES, OPTION_PANELS

COMMANDS = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]
EVERY = [*COMMANDS, *all_commands()]
OPTIONS = {name for command in COMMANDS.values() for option in command.params for name in option.opts}


@pytest.mark.parametrize("arguments", [[], ["--help"], ["-q"], ["--no-color"]], ids=" ".join)
def test_the_command_alone_shows_its_help(arguments, capsys):
    assert exit_code(arguments) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert shown.out.startswith("Usage: mews [OPTIONS] COMMAND")
    for panel in COMMAND_PANELS:
        assert f"\n{panel}:\n" in shown.out


@pytest.mark.parametrize("name", [name for name in EVERY if name != "nvidia-smi"])
def test_help_of_each_command_shows_examples_and_exits_0(name, capsys):
    assert exit_code([*name.split(), "--help"]) == 0
    shown = capsys.readouterr().out
    assert re.search(rf"^Examples:\n +mews {name}", shown, re.MULTILINE), shown


@pytest.mark.parametrize("group", sorted({name.split()[0] for name in all_commands() if " " in name} - set(COMMANDS)))
def test_help_of_a_group_is_that_of_all_its_commands(group, capsys):
    assert exit_code([group, "--help"]) == 0
    shown = capsys.readouterr().out
    for name in all_commands():
        if name.split()[0] == group:
            assert f"Usage: mews {name} " in shown


def test_options_are_grouped_and_no_group_names_what_is_not_there(capsys):
    exit_code(["run", "--help"])
    shown = capsys.readouterr().out
    assert re.search(r"^Results:\n(  .*\n)*  --junit", shown, re.MULTILINE)
    assert shown.index("Arguments:") < shown.index("Results:") < shown.index("Examples:")
    grouped = {option for options in OPTION_PANELS.values() for option in options}
    completion = {"--install-completion", "--show-completion"}
    assert grouped - OPTIONS - completion == set()
    named = {name for names in COMMAND_PANELS.values() for name in names}
    assert named <= {name.split()[0] for name in EVERY}


@pytest.mark.parametrize("line", [line for lines in EXAMPLES.values() for line in lines])
def test_an_example_has_a_command_and_options_that_are_there(line):
    words = shlex.split(line.partition(" > ")[0])
    assert words[0] == "mews"
    known = {name for option in COMMANDS[words[1]].params for name in option.opts}
    assert {word for word in words if word.startswith("--")} <= known


@pytest.mark.parametrize("name", [name for name, command in all_commands().items() if command.examples])
def test_an_example_of_a_command_that_is_looked_up_by_name_is_one_of_it(name):
    for line in all_commands()[name].examples:
        assert line.startswith(f"mews {name}")
        own = re.split(r" -- |(?<= --with-bug) ", line)[0]  # what follows is another command
        assert {word for word in shlex.split(own) if word.startswith("--")} <= set(
            re.findall(r"--[a-z-]+", all_commands()[name].usage)
        )


def test_the_version_is_shown_by_an_option_too(capsys):
    assert exit_code(["--version"]) == exit_code(["version"]) == 0
    assert capsys.readouterr().out == 2 * f"mews {__version__}\n"


def test_quiet_shows_nothing_of_what_passed_and_all_of_what_failed(capsys):
    assert exit_code(["-q", "run", "demo"]) == 0
    assert capsys.readouterr().out == ""
    assert exit_code(["-q", "run", "demo", "--set", "metrics={moved_gpus: 3}"]) == 1
    assert "moved_gpus is 1, not 3" in capsys.readouterr().out
    assert exit_code(["run", "demo"]) == 0
    assert "1 passed" in capsys.readouterr().out


def test_quiet_says_nothing_of_valid_files_and_all_of_others(capsys, tmp_path):
    assert exit_code(["-q", "validate", "scenarios/demo.yaml"]) == 0
    assert capsys.readouterr().out == ""
    (tmp_path / "bad.yaml").write_text("kind: Scenario\n")
    assert exit_code(["-q", "validate", str(tmp_path / "bad.yaml")]) == 2
    assert "bad.yaml" in capsys.readouterr().err


def test_verbose_shows_what_components_log_and_changes_nothing_else(capsys):
    before = logging.getLogger("mews").level, list(logging.getLogger("mews").handlers)
    assert exit_code(["-v", "run", "demo"]) == 0
    shown = capsys.readouterr()
    assert "1 passed" in shown.out
    assert re.search(r"INFO mews\.run\.device-manager/host-1: announced", shown.err)
    logger = logging.getLogger("mews")
    assert logger.level == before[0]
    assert [
        each for each in logger.handlers if each not in before[1] and not isinstance(each, logging.NullHandler)
    ] == []


def test_quiet_and_verbose_exclude_each_other(capsys):
    assert exit_code(["-q", "-v", "version"]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_no_color_holds_for_the_command_and_is_undone(monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    seen = []
    monkeypatch.setattr(
        "mews.harness.commands.validate.validate", lambda *_, **__: seen.append(os.environ["NO_COLOR"]) or 0
    )
    assert exit_code(["--no-color", "validate", "demo"]) == 0
    assert seen == ["1"]
    assert "NO_COLOR" not in os.environ


def test_a_line_that_is_not_finished_is_completed(monkeypatch, capsys):
    def completed(line: str) -> list[str]:
        words = line.split(" ")
        monkeypatch.setenv("_MEWS_COMPLETE", "complete_bash")
        monkeypatch.setenv("COMP_WORDS", line)
        monkeypatch.setenv("COMP_CWORD", str(len(words) - 1))
        with pytest.raises(SystemExit) as ended:
            exit_code([])
        assert ended.value.code == 0
        return capsys.readouterr().out.split()

    assert {"run", "record", "report"} <= set(completed("mews r"))
    assert completed("mews run --see") == ["--seed", "--seeds"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_of_a_shell_is_shown(shell, monkeypatch, capsys):
    monkeypatch.setenv("_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION", "1")
    with pytest.raises(SystemExit) as ended:
        exit_code(["--show-completion", shell])
    assert ended.value.code == 0
    assert "_MEWS_COMPLETE" in capsys.readouterr().out


def test_every_live_command_names_its_options():
    assert all("--name NAME" in command.options for command in live.LIVE)
