"""What the pages say is there: links, files, options, modules, and the format that they show."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer.main

from ci.reference import PAGES as PAGES_OF_REFERENCE
from mews.harness import cli
from mews.harness.commands.further import all_commands
from mews.harness.scenario.loader import parse_scenario

ROOT = Path(__file__).parent.parent
PAGES = sorted(
    path
    for path in (
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("docs/seeds/*.md"),
        *ROOT.glob("docs/tutorials/*.md"),
        ROOT / "scenarios" / "README.md",
    )
)
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
COMMANDS = typer.main.get_command(cli.app).commands  # type: ignore[attr-defined]


def prose(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_link_leads_somewhere(page: Path):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("http"):
            continue
        file, _, anchor = target.partition("#")
        found = (page.parent / file).resolve() if file else page
        if found.is_relative_to(ROOT / "docs" / "reference"):  # made when the site is built, which checks anchors
            assert str(found.relative_to(ROOT / "docs")) in PAGES_OF_REFERENCE, f"{page.name}: {target}"
            continue
        assert found.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(found), f"{page.name}: {target}"


def lines(page: Path) -> list[str]:
    """What the page lets one type, continued lines joined."""
    blocks = re.findall(r"```[a-z]*\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    return [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_commands_have_the_options_that_are_shown(page: Path):
    for line in lines(page):
        found = re.match(r"(?:\$ )?(?:\S+=\S+ )*mews ([a-z-]+)(.*)", line.partition("  #")[0])
        if found is None or found[1] == "nvidia-smi":  # takes those of the real one too
            continue
        if any(name.split()[0] == found[1] for name in all_commands()):  # it reads its own words
            continue
        assert found[1] in COMMANDS, line
        known = {name for option in COMMANDS[found[1]].params for name in option.opts}
        assert set(re.findall(r"--[a-z][a-z-]*", found[2])) <= known, line


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_modules_and_scenarios_that_are_named_exist(page: Path):
    text = page.read_text(encoding="utf-8")
    for module in set(re.findall(r"python -m ((?:mews|benchmarks|tests)[\w.]*)", text)):
        assert find_spec(module) is not None, module
    for path in set(
        re.findall(r"(?<!tests/)\b((?:scenarios|fixtures|benchmarks|ci)/[\w./-]+\.(?:yaml|py|json))", text)
    ):
        assert (ROOT / path).exists(), path


def test_the_format_that_the_scenarios_page_shows_is_valid():
    first = re.findall(r"```yaml\n(.*?)```", (ROOT / "scenarios" / "README.md").read_text(encoding="utf-8"), re.DOTALL)[
        0
    ]
    assert parse_scenario(first, ROOT / "scenarios" / "shown.yaml").name == "demo"
