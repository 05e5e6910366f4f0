"""docs/seeds.md is whole: each section of each text has rows, each row a status, and what shows it is there."""

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
        *("Abstract", "I Introduction", "II Background", "II-A Kubernetes overview", "II-B PCIe fabric GPU chassis"),
        *("III Resource-centric design", "III-A Motivation", "III-B Workflow", "IV Design and implementation"),
        *("IV-A Challenges", "IV-B Architecture overview", "IV-C KubeComp-Sched", "IV-D Reconfig-Mgr"),
        *("IV-E DisagGPU-DevMgr", "IV-F Compatibility", "V Resource management", "V-A Management strategies"),
        *("V-B Time complexity", "V-C Multi-pool scenario", "VI Experimental evaluation", "VI-A Experiment setup"),
        *("VI-B Wait time reduction", "VI-C GPU utilisation", "VI-D Overhead", "VI-E Simulation"),
        *("VI-F Resource management", "VII Related works", "VIII Conclusions"),
    ),
    "gpushare": (
        *("Introduction", "Motivation", "User stories", "Goals", "Non-goals", "Design principles", "Architecture"),
        *("1 Device resource report", "2 Extended scheduling", "3 Run the container"),
    ),
    "koordinator": (
        *("Summary (摘要)", "Motivation (动机)", "Goals (目标)", "Non-goals (非目标/未来工作)"),
        *("Device resource dimensions (设备资源维度)", "How users ask for devices (用户申请设备资源场景)"),
        *("Scheduling (调度)", "DeviceAllocation", "NodeDevicePlugin", "Device Reporter"),
        *("Device CRD scheme definition (Device CRD Scheme definition)", "CRD example (CRD 示例)"),
        "Compatibility with pods that are there (兼容性)",
        "koordlet and koord-runtime-proxy (koordlet 和 koord-runtime-proxy)",
        *("Compatibility with Kubernetes (兼容性)", "Upgrade strategy (升级策略)"),
        *("Unsolved problems (未解问题)", "Alternatives (可选性)"),
    ),
    "kod2": (
        *("Abstract", "1 Introduction", "2 Related works", "2.1 Iteration for distributed training"),
        *("2.2 Parameter server architecture", "2.3 Kubernetes scheduler", "3 Proposed scheduling strategy"),
        *("3.1 Overall architecture", "3.2 Priority preemptive scheduling", "3.3 Dynamic auto scaling"),
        *("4 Implementation", "4.1 Distributed deep learning tasks placement"),
        *("4.2 Operator for preemptive scheduling", "5 Evaluation", "5.1 Experimental procedure"),
        *("5.2 Experimental results", "6 Conclusion"),
    ),
}
"""Page -> the sections of its text, as headings of the page."""

EMPTY = {
    *(("kubecomp", each) for each in ("III Resource-centric design", "V Resource management")),
    ("kubecomp", "VI Experimental evaluation"),
    *(("kod2", each) for each in ("2 Related works", "4 Implementation", "5 Evaluation")),
}
"""Sections that are a heading alone, or say only what is in their parts."""

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
        *(f"2.1, example N{number}" for number in range(1, 4)),
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


@dataclass(frozen=True)
class SeedRow:
    """One line of a page's tables. ``shown_by``: what stands in backquotes in the last cell."""

    page: str
    section: str
    where: str
    says: str
    here: str
    shown_by: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}.md: {self.where}: {self.says}"


def rows_of(page: str, text: str) -> list[SeedRow]:
    """All rows below their headings; a line of a table that is none, and an empty cell before the last, is an error."""
    section, found = "", []
    for line in text.splitlines():
        if line.startswith("#"):
            section = line.lstrip("#").strip()
        elif line.startswith("|"):
            cells = [cell.strip() for cell in line.strip().removeprefix("|").removesuffix("|").split("|")]
            assert len(cells) == len(HEAD), f"{page}.md: {line}"
            if cells != HEAD and set("".join(cells)) != {"-"}:
                where, says, here, shown = cells
                assert where and says and here, f"{page}.md: {line}"
                named = re.findall(r"`([^`]+)`", shown)
                assert " ".join(f"`{each}`" for each in named) == shown, (
                    f"{page}.md: {shown}: names, each in backquotes"
                )
                found.append(SeedRow(page, section, where, says, here, tuple(named)))
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
    there = {(row.page, row.section) for row in rows()}
    wanted = {(page, section) for page, sections in SECTIONS.items() for section in sections}
    assert wanted - there - EMPTY == set()
    assert there - wanted == set()
    for page, section in EMPTY:
        assert f"## {section}\n" in (FOLDER / f"{page}.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("page", PLACES)
def test_every_figure_step_and_item_of_a_text_has_a_row(page: str) -> None:
    cells = [row.where for row in rows() if row.page == page]
    lacking = [place for place in PLACES[page] if not any(re.search(rf"{re.escape(place)}\b", each) for each in cells)]
    assert lacking == []


def test_every_row_has_a_status_and_a_reason_where_it_is_not_simply_done() -> None:
    assert [str(row) for row in rows() if not is_status(row.here)] == []


def test_what_is_done_is_shown_by_something() -> None:
    assert [str(row) for row in rows() if row.here.startswith("done") and not row.shown_by] == []


def test_no_statement_stands_twice() -> None:
    found = [(row.page, row.where, row.says) for row in rows()]
    assert len(found) == len(set(found)) > 250


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
