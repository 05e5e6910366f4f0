"""The tutorials, typed as they stand into an empty directory: files by their titles, commands in their order."""

from __future__ import annotations

import re
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tests.package.conftest import ROOT, Distributions, installed_as
from tests.package.environment import Environment

PAGES = sorted(page for page in (ROOT / "docs" / "tutorials").glob("*.md") if page.stem not in ("vendor", "fabric"))
"""Not the vendor's: test_documented_commands.py types that, and its server has a port that is written there. Not that
of fabric managers, whose programs its reader builds: tests/systems/cohdi plays its scenario."""
BLOCK = re.compile(
    r"(?:^<!-- needs: [a-z, -]+ -->\n```.*?^```$)|^```(\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
"""Language, title and content; a block that is marked with what it needs has none of them, and is not typed here."""
SHOWN = re.compile(r"^(\d+ (?:passed|failed)|went wrong: .*)$", re.MULTILINE)
"""What a page shows that a command prints word for word."""
INSTALLS = re.compile(r"pip install ('?falcon-mews(\[cluster\])?'?)( grpcio-tools| kubernetes)?")
"""What a page may install: the environment of the test has it, from the wheel and without an index."""


@pytest.fixture(scope="session")
def tutorial_environment(shared: Path, distributions: Distributions) -> Environment:
    """One for all pages: the wheel with what they install."""
    environment = installed_as(shared, "tutorials", distributions, "cluster", beside=("dev", "kubeconfig"))
    # What is lent has no programs, and pip would have made this one
    program = environment.bin / "pytest"
    program.write_text(f"#!{environment.bin / 'python'}\nimport sys, pytest\nsys.exit(pytest.console_main())\n")
    program.chmod(0o755)
    return environment


def test_there_is_one_for_each_of_the_five():
    assert [page.stem for page in PAGES] == ["ci", "developer", "lab-bug", "own-device-plugin", "own-scheduler"]


@pytest.mark.parametrize("name", ["scheduler.py", "device_plugin.py", "deviceplugin.proto"])
def test_a_program_is_the_same_in_its_tutorial_and_among_the_examples(name):
    [text] = [text for page in PAGES for _, title, text in BLOCK.findall(page.read_text()) if title == name]
    assert text == (ROOT / "docs" / "examples" / name).read_text()


@pytest.mark.wall
@pytest.mark.parametrize("page", PAGES, ids=[page.stem for page in PAGES])
def test_its_commands_alone_lead_to_the_end(page: Path, tutorial_environment: Environment, tmp_path: Path, capsys):
    begun_s = time.monotonic()
    environment = Environment(tutorial_environment.root, tmp_path)
    typed = 0
    with tempfile.TemporaryDirectory(prefix="mews-tut-") as runtime:  # short: sockets lie below it
        for language, title, text in BLOCK.findall(page.read_text()):
            if title:
                (tmp_path / title).write_text(text)
            if language != "console":
                continue
            commands = [line.removeprefix("$ ") for line in text.splitlines() if line.startswith("$ ")]
            for command in [each for each in commands if not INSTALLS.fullmatch(each)]:
                done = environment.run("sh", "-c", command, timeout_s=300, XDG_RUNTIME_DIR=runtime)
                wanted = SHOWN.findall(text) if command == commands[-1] else []
                allowed = int(any(line.endswith(" failed") for line in wanted))
                assert done.returncode == allowed, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
                assert [line for line in wanted if line not in done.stdout] == [], done.stdout
                typed += 1
    assert typed
    with capsys.disabled():  # whoever runs it sees how long a reader needs
        sys.stdout.write(f"\ntutorial {page.stem}: {typed} commands in {time.monotonic() - begun_s:.1f} s\n")
