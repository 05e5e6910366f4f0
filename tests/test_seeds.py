"""docs/seeds/ is whole: each section of each text has rows, each row a status, and what shows it exists."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest
import typer.main

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "seeds"
HEAD = ["where", "what it says", "here", "shown by"]


def steps(prefix: str, last: int) -> tuple[str, ...]:
    return tuple(f"{prefix} step {number}" for number in range(1, last + 1))


def figures(last: int) -> tuple[str, ...]:
    return tuple(f"Fig. {number}" for number in range(1, last + 1))


SECTIONS: Mapping[str, tuple[str, ...]] = {
    "kubecomp": (
        *("abstract", "I", "II", "II-A", "II-A.1", "II-A.2", "II-B", "III-A", "III-B", "IV", "IV-A", "IV-B", "IV-C"),
        *("IV-D", "IV-E", "IV-F", "V-A.1", "V-A.2", "V-B", "V-C", "VI-A.1", "VI-A.2", "VI-A.3", "VI-B", "VI-C", "VI-D"),
        *("VI-E", "VI-E.1", "VI-E.2", "VI-F", "VII-A", "VII-B", "VIII"),
    ),
    "gpushare": (
        *("introduction", "motivation", "story", "goal", "non-goal", "principle", "component", "resources"),
        *("1", "2", "2.1", "2.2", "3", "3.1", "3.2", "3.3"),
    ),
    "koordinator": (
        *("summary", "motivation", "goal", "non-goal", "dimensions", "scenario", "scheduling", "allocation", "plugin"),
        *("reporter", "CRD", "example", "checkpoint", "proxy", "Kubernetes", "upgrade", "unsolved", "alternatives"),
    ),
    "kod2": ("abstract", "1", "2.1", "2.2", "2.3", "3", "3.1", "3.2", "3.3", "4.1", "4.2", "5.1", "5.2", "6"),
}
"""Page -> the sections of its text, as a row's first cell names them. Headings without a statement have no row."""

PLACES: Mapping[str, tuple[str, ...]] = {
    "kubecomp": (
        *figures(13),
        *("Table I", "Table II", "Table III", "equation 1", "Algorithm 1"),
        *steps("Fig. 3", 10),
        *steps("Fig. 4", 8),
        *steps("Fig. 5", 3),
        *(f"{name} {number}" for name in ("contribution",) for number in range(1, 7)),
        *(f"{name} {number}" for name in ("goal", "challenge", "condition") for number in range(1, 4)),
        *("non-goal 1", "non-goal 2", "reason 1", "reason 2"),
        *("II-A.1", "II-A.2", "V-A.1", "V-A.2", "VI-A.1", "VI-A.2", "VI-A.3", "VI-E.1", "VI-E.2", "VII-A", "VII-B"),
        *("node selection", "availability update", "allocation retrieval", "detection and binding"),
        *("target identification", "source selection", "reallocation"),
    ),
    "gpushare": (
        *("story 1", "story 2", "non-goal 1", "non-goal 2", "resources", "component, extender"),
        *("component, device plugin", "2.1", "2.2", "3.1", "3.2", "3.3", "1, example", "2.2, example"),
        *(f"principle {number}" for number in range(1, 5)),
        *(f"example N{number}" for number in range(1, 4)),
    ),
    "koordinator": (
        *(f"goal {number}" for number in range(1, 5)),
        *("non-goal 1", "gpu-core", "gpu-memory", "gpu-memory-ratio", "dimensions, gpu", "rdma and fpga"),
        *(f"scenario {name}" for name in ("nvidia.com/gpu", "gpu", "core and ratio", "core and memory", "RDMA")),
        *("scheduling 1", "scheduling 2", "scheduling 3", "Filter", "Reserve and Unreserve", "PreBind", "Init"),
        *(
            f"CRD, {name}"
            for name in ("DeviceType", "DeviceSpec", "DeviceInfo", "DeviceStatus", "Device and DeviceList")
        ),
        *("PodDevicesEntry", "proxy 1", "proxy 2", "protocol", "gpu-hook", "UpdateRequest", "hot update"),
        *steps("upgrade", 7),
        "alternatives 1",
    ),
    "kod2": (
        *figures(8),
        *("Table 1", "Table 2", "Table 3", "equation 1", "Algorithm 1", "Algorithm 2", "Algorithm 3"),
        *steps("Fig. 2", 7),
        *(f"Fig. 5 state {number}" for number in range(1, 5)),
        *(f"contribution {number}" for number in range(1, 4)),
        *(f"Algorithm 1 lines {lines}" for lines in ("1-4", "5-9", "10-17", "18-26", "27-29", "31-36", "37-40")),
        *(f"Algorithm 2 lines {lines}" for lines in ("1-3", "4-8", "12-13", "15-18", "19-22", "23-25")),
        *(f"Algorithm 3 lines {lines}" for lines in ("9-12", "13-16")),
        *("Fig. 6 cache", "Fig. 6 work queue", "Fig. 6 reconciler"),
    ),
}
"""Page -> what some row's first cell must name."""


RANGE = re.compile(r"(?P<before>.*?)(?P<name>[\w-]+?)(?P<plural>ies|s) (?P<letter>N?)(?P<first>\d+)-N?(?P<last>\d+)")


@dataclass(frozen=True)
class SeedRow:
    """One line of a page's table. ``shown_by``: the last cell's names in backquotes."""

    page: str
    where: str
    says: str
    here: str
    shown_by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}.md: {self.where}: {self.says}"

    @property
    def places(self) -> tuple[str, ...]:
        """Sections, figures, steps and items of the first cell, with ranges written out."""
        return tuple(place for part in self.where.split(", ") for place in written_out(part))


def written_out(part: str) -> list[str]:
    """``Fig. 3 steps 6-8`` as three places; lines of an algorithm stay one."""
    found = RANGE.fullmatch(part)
    if found is None or found["name"] == "line":
        return [part]
    name = found["before"] + found["name"] + ("y" if found["plural"] == "ies" else "")
    return [f"{name} {found['letter']}{number}" for number in range(int(found["first"]), int(found["last"]) + 1)]


def rows_of(page: str, text: str) -> list[SeedRow]:
    """All rows of a page; a line of another form, and an empty cell before the last, is an error."""
    found = []
    for line in text.splitlines():
        if line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
            assert len(cells) == len(HEAD), f"{page}.md: {line}"
            if cells != HEAD and set("".join(cells)) != {"-"}:
                where, says, here, shown = cells
                assert where and says and here, f"{page}.md: {line}"
                named = re.findall(r"`([^`]+)`", shown)
                assert " ".join(f"`{each}`" for each in named) == shown, (
                    f"{page}.md: {shown}: names, each in backquotes"
                )
                found.append(SeedRow(page, where, says, here, tuple(named)))
    return found


@functools.cache
def rows() -> tuple[SeedRow, ...]:
    return tuple(row for page in SECTIONS for row in rows_of(page, (FOLDER / f"{page}.md").read_text("utf-8")))


# What a row may name


@functools.cache
def functions_of(path: Path) -> frozenset[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def is_test(name: str) -> bool:
    file, _, function = name.partition("::")
    path = ROOT / file
    return path.is_file() and path.name.startswith("test_") and function in functions_of(path)


def is_file(name: str) -> bool:
    return (ROOT / name).is_file()


def is_module(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@functools.cache
def experiments() -> frozenset[str]:
    from mews.harness.systems import all_experiments

    return frozenset(all_experiments())


@functools.cache
def commands() -> frozenset[str]:
    from mews.harness import cli
    from mews.harness.commands.further import all_commands

    return frozenset((*typer.main.get_command(cli.app).commands, *all_commands()))  # type: ignore[attr-defined]


KINDS: tuple[tuple[str, Callable[[str], bool]], ...] = (
    (r"(tests/[\w/]+/test_\w+\.py::test_\w+)", is_test),
    (r"((?:scenarios|fixtures)/[\w/.-]+\.yaml)", is_file),
    (r"mews experiment ([\w-]+)", lambda name: name in experiments()),
    (r"mews ([\w-]+)", lambda name: name in commands()),
    (r"python -m (benchmarks\.\w+)", is_module),
    (r"(mews\.[\w.]+)", is_module),
)
"""How it is written -> whether it is there."""


def is_there(named: str) -> bool:
    """Whether what a row names exists; what is written in none of the ways does not."""
    for pattern, exists in KINDS:
        found = re.fullmatch(pattern, named)
        if found is not None:
            return exists(found[1])
    return False


def is_status(here: str) -> bool:
    """``done``, ``done: …``, ``differs …`` and ``out of scope, …`` with their reason."""
    return re.fullmatch(r"done(: .+)?|differs .{10,}|out of scope, .{10,}", here) is not None


def test_every_section_of_every_text_has_rows() -> None:
    there = {(row.page, section) for row in rows() for section in SECTIONS[row.page] if is_of(row, section)}
    assert {(page, section) for page, sections in SECTIONS.items() for section in sections} - there == set()
    assert [str(row) for row in rows() if not any(is_of(row, section) for section in SECTIONS[row.page])] == []


def is_of(row: SeedRow, section: str) -> bool:
    return any(place == section or place.startswith(f"{section} ") for place in row.places)


def test_ranges_of_places_are_written_out() -> None:
    row = SeedRow("page", "2.1, Fig. 3 steps 6-8, stories 1-2, examples N1-N2, Algorithm 1 lines 1-4", "", "", ())
    assert row.places == (
        *("2.1", "Fig. 3 step 6", "Fig. 3 step 7", "Fig. 3 step 8", "story 1", "story 2", "example N1", "example N2"),
        "Algorithm 1 lines 1-4",
    )


@pytest.mark.parametrize("page", PLACES)
def test_every_figure_step_and_item_of_a_text_has_a_row(page: str) -> None:
    cells = [", ".join(row.places) for row in rows() if row.page == page]
    lacking = [place for place in PLACES[page] if not any(re.search(rf"{re.escape(place)}\b", each) for each in cells)]
    assert lacking == []


def test_every_row_has_a_status_and_a_reason_where_it_is_not_simply_done() -> None:
    assert [str(row) for row in rows() if not is_status(row.here)] == []


def test_what_is_done_is_shown_by_something() -> None:
    assert [str(row) for row in rows() if row.here.startswith("done") and not row.shown_by] == []


def test_no_statement_stands_twice() -> None:
    found = [(row.page, row.where, row.says) for row in rows()]
    assert len(found) == len(set(found)) > 190


def test_whatever_a_row_names_is_there() -> None:
    lacking: dict[str, list[str]] = {}
    for row in rows():
        for named in row.shown_by:
            if not is_there(named):
                lacking.setdefault(named, []).append(f"{row.page}.md: {row.where}")
    assert lacking == {}


@pytest.mark.parametrize(
    "named",
    [
        "tests/test_seeds.py",
        "systems/kubecomp/test_policy.py::test_req_sums_all_containers",
        "tests/systems/kubecomp/test_policy.py::test_no_such",
        "tests/systems/kubecomp/test_nothing.py::test_req_sums_all_containers",
        "tests/systems/kubecomp/test_policy.py",
        "scenarios/nothing.yaml",
        "mews experiment nothing",
        "mews nothing",
        "python -m benchmarks.nothing",
        "mews.systems.nothing.module",
        "a claim",
    ],
)
def test_what_is_not_there_is_found(named: str) -> None:
    assert not is_there(named)


@pytest.mark.parametrize("here", ["", "yes", "done, mostly", "differs", "out of scope", "out of scope: why", "planned"])
def test_what_is_no_status_is_found(here: str) -> None:
    assert not is_status(here)


@pytest.mark.parametrize(
    "line", ["| a | b | done |", "| | b | done | `x` |", "| a | b | done | x |", "| a | b | | `x` |"]
)
def test_a_line_that_is_no_row_is_found(line: str) -> None:
    with pytest.raises(AssertionError):
        rows_of("page", f"## section\n{line}\n")
