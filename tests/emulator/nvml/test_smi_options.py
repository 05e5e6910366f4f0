"""Every option of nvidia-smi and of its commands: answered, or refused in one line that says which it is."""

from pathlib import Path

import pytest
import yaml

from ci.reference.nvml import command_options, options
from tests.emulator.nvml.hosts import gpu
from tests.emulator.nvml.test_hotplug import Driver

SWITCHES, PRINTED = options(), command_options()
OPTIONS = yaml.safe_load(Path(__file__).with_name("smi_options.yaml").read_text(encoding="utf-8"))
CASES = [
    (tuple(map(str, entry["command"])), brief, name, str(value[0]) if value else None)
    for entry in OPTIONS
    for brief, name, *value in entry["options"]
]
NEVER_HERE = {"daemon", "replay", "clocks", "power-smoothing", "power-hint", "base-clocks", "rusd", "prm", "soc"}
"""Commands that are refused as a whole."""


def told_of(host, folder, command, option, value):
    """(code, text) of the command with the option: as two words, and where its name is long, as one."""
    words = [word.format(file=folder / "out", bus="0000:10:00.0") for word in (*command, *option, *value)]
    return host.smi(*words)


def printed(command, brief, name):
    """What the reference page says of an option; None where it says nothing, as of -h and of commands refused whole."""
    both = f"{name}, {brief}" if brief else name
    if name == "--help" or name.startswith("--help-query") or (command and command[0] in NEVER_HERE):
        return None
    if command and command[0] not in ("dmon", "pmon") and not command[0].startswith("-"):
        return PRINTED[f"{command[0]} {both}"]
    return None if command and command[0] in ("dmon", "pmon") else SWITCHES[both]


@pytest.mark.parametrize(("command", "brief", "name", "value"), CASES, ids=lambda case: str(case))
def test_an_option_is_parsed_in_each_of_its_forms(host, tmp_path, command, brief, name, value):
    host.show(gpu(0, "H100-SXM"), gpu(1, "H100-SXM"), switched=True, driver_version="595.80.01")
    forms = [(name,), (brief,)] if brief else [(name,)]
    values = () if value is None else (value,)
    with Driver(host):
        told = [told_of(host, tmp_path, command, form, values) for form in forms]
        if value is not None:
            told.append(told_of(host, tmp_path, command, (f"{name}={value}",), ()))
    for code, text in told:
        assert "not recognized" not in text and "Usage:" not in text and "takes one" not in text, text
        refused = [line for line in text.splitlines() if "is not emulated" in line]
        if command and command[0] in NEVER_HERE:
            assert refused == [f'"{command[0]}" is not emulated: nothing was shown or changed.']
        assert (code, len(text.splitlines())) == (3, 1) if refused else code != 2, text
    [state] = {"refused" if "is not emulated" in text else "emulated" for _, text in told}
    assert len({code for code, _ in told}) == 1, told
    assert printed(command, brief, name) in (None, state)


def test_what_is_not_in_the_list_is_refused(host):
    host.show(gpu(0))
    commands = [("topo",), ("nvlink",), ("drain",), ("dmon", "-c", "1"), ("pmon", "-c", "1"), ("mig",), ()]
    for command in commands:
        code, text = host.smi(*command, "--no-such-option")
        assert (code, len(text.splitlines())) == (2, 1), (command, text)


def test_the_list_has_all_that_was_captured(captured):
    """Loops never end, and what queries need is in each of their commands."""
    named = {name for _, _, name, _ in CASES} | {"--loop", "--loop-ms", "--format"}
    lines = [line.split("\t") for line in captured["options (short, long, takes a value)"] if line]
    assert {name for _, name, _ in lines} <= named
    briefs = {name: brief for _, brief, name, _ in CASES}
    assert [(brief, name) for brief, name, _ in lines if brief and briefs.get(name, brief) != brief] == []
    assert {line for line in captured["subcommands"] if line} <= {command[0] for command, *_ in CASES if command}
