"""What exists in the code is in a reference: found in the code, and looked for on the pages that are made from it."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ci.reference import PAGES, nvml
from mews import environment
from mews.emulator.chassis.faults.registry import CHASSIS_FAULTS
from mews.emulator.host.faults.registry import HOST_FAULTS
from mews.emulator.inventory.schema import hardware_schema
from mews.harness import chassis_feed, cli, host_feed, pytest_plugin
from mews.harness.api_faults.registry import API_FAULTS
from mews.harness.commands.further import all_commands
from mews.harness.invariants.judge import OWN
from mews.harness.scenario.actions import ACTIONS, Step
from mews.harness.scenario.expectations import Check
from mews.harness.scenario.key_words import OWN as OWN_WORDS
from mews.harness.scenario.loader import schema
from mews.kube.emulated.types.ignored_fields import DROPPED, IGNORED, IGNORED_KINDS
from mews.kube.system.facility import Facility
from mews.systems import registry

ROOT = Path(__file__).parent.parent
SOURCES = [
    path for room in ("emulator", "kube", "systems", "harness", "src/mews") for path in (ROOT / room).rglob("*.py")
]


@cache
def page(name: str) -> str:
    return PAGES[f"reference/{name}.md"]()


@cache
def section(name: str, head: str) -> str:
    """A section of a page, up to the next head of its level."""
    level = head.partition(" ")[0]
    found = re.search(rf"^{re.escape(head)}$(.*?)(?=^{level} |\Z)", page(name), re.DOTALL | re.MULTILINE)
    assert found is not None, f"{name}: no section {head!r}"
    return found[1]


def has_words(name: str, head: str) -> bool:
    """Whether the section says something before its tables."""
    said = section(name, head).strip()
    return bool(said) and not said.startswith(("|", "```")) and not said.startswith("Value:")


@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_its_title_and_no_marks_of_docstrings(name: str):
    text = PAGES[name]()
    assert text.startswith("# ")
    prose = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    assert re.findall(r"(?<!`)``(?!`)", prose) == []


def test_every_option_of_every_command_is_in_the_reference_with_words():
    group = typer.main.get_command(cli.app)
    for name, command in group.commands.items():  # type: ignore[attr-defined]
        assert has_words("commands", f"## mews {name}"), name
        for option in command.params:
            if option.name != "help" and option.param_type_name == "option":
                rows = [
                    row for row in section("commands", f"## mews {name}").splitlines() if f"`{option.opts[0]}" in row
                ]
                assert rows and re.search(r"\| \S[^|]* \|$", rows[0].replace("\\|", "/")), f"{name} {option.opts[0]}"
    for option in group.params:
        assert f"`{', '.join(option.opts)}" in section("commands", "## Options of all commands"), option.opts


def options_added(path: Path) -> Iterator[str]:
    """What ``add_argument`` is called with; in loops over names, these."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for call in ast.walk(tree):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "add_argument":
            for argument in call.args:
                if isinstance(argument, ast.Constant) and str(argument.value).startswith("--"):
                    yield str(argument.value)


def test_every_option_of_commands_that_are_looked_up_by_name_is_in_the_reference_with_words():
    for name, command in all_commands().items():
        assert has_words("commands", f"## mews {name}"), name
        in_usage = set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", command.usage))
        shown = {word for option in command.options for word in re.findall(r"(?<![\w-])--?[a-z][a-z-]*", option)}
        assert in_usage <= shown, f"mews {name}: usage {command.usage}"
        assert all(command.options.values()), name
    for path in (ROOT / "harness" / "commands").glob("*.py"):
        for option in options_added(path):
            assert f"`{option}" in page("commands") or f" {option}" in page("commands"), f"{path.name}: {option}"


@pytest.mark.parametrize("action", [name.rstrip("_") for name in ACTIONS])
def test_every_step_is_in_the_reference_with_words(action: str):
    assert has_words("steps", f"## `{action}`")


def test_every_key_of_a_step_is_an_action_or_stands_beside_it_with_words():
    beside = {field.alias or name for name, field in Step.model_fields.items()} - {name.rstrip("_") for name in ACTIONS}
    assert {"name", "timeout"} <= beside
    for key in beside:
        assert re.search(rf"^\| `{key}` \|.*\| \S[^|]* \|$", section("steps", "## Keys of every step"), re.MULTILINE), (
            key
        )


@pytest.mark.parametrize("check", [field.alias or name for name, field in Check.model_fields.items()])
def test_every_check_is_in_the_reference_with_words(check: str):
    assert has_words("checks", f"## `{check}`")


@pytest.mark.parametrize("registered", [CHASSIS_FAULTS, HOST_FAULTS, API_FAULTS], ids=["chassis", "host", "component"])
def test_every_fault_is_in_the_reference_with_each_of_its_parameters(registered):
    for kind in registered.ours():
        assert has_words("faults", f"### `{kind}`"), kind
        for field in dataclasses.fields(registered.find(kind)):
            assert f"| `{field.name}` |" in section("faults", f"### `{kind}`"), f"{kind}: {field.name}"


def test_every_fixture_is_in_the_reference_with_words():
    tree = ast.parse(Path(pytest_plugin.__file__).read_text(encoding="utf-8"))
    functions = [each for each in tree.body if isinstance(each, ast.FunctionDef)]
    fixtures = [
        each.name
        for each in functions
        if any("fixture" in ast.unparse(mark) for mark in each.decorator_list) and not each.name.startswith("_")
    ]
    assert len(fixtures) >= 3
    for name in fixtures:
        assert has_words("testing", f"### `{name}`"), name


def test_every_option_of_the_plugin_is_in_the_reference():
    source = Path(pytest_plugin.__file__).read_text(encoding="utf-8")
    for option in re.findall(r"addoption\(\s*\"(--[a-z-]+)\"", source) + re.findall(r"addini\(\s*\"(\w+)\"", source):
        assert f"`{option}" in page("testing"), option


def constants(node: ast.expr) -> list[str]:
    """The texts that an expression may be: a constant, or one of two."""
    if isinstance(node, ast.IfExp):
        return constants(node.body) + constants(node.orelse)
    return [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []


def calls(path: Path, *names: str) -> Iterator[list[ast.expr]]:
    """The arguments of each call of a function or method of that name."""
    text = path.read_text(encoding="utf-8")
    for call in ast.walk(ast.parse(text)) if any(f"{name}(" in text for name in names) else ():
        if isinstance(call, ast.Call) and ast.unparse(call.func).rpartition(".")[2] in names:
            yield call.args


def hardware_events() -> Iterator[str]:
    for path in (ROOT / "emulator" / "host").rglob("*.py"):
        for arguments in calls(path, "emit"):
            yield from (each for each in constants(arguments[0]) if each not in host_feed.QUIET)
    begun, changed = ("attach-begun", "detach-begun"), ("edited", *chassis_feed.MOVES.values())
    others = {
        "operation-begun": begun,
        "table-changed": changed,
        "reset": ("table",),
        "uuid-changed": ("device-changed",),
    }
    for path in (*(ROOT / "emulator/chassis").rglob("*.py"), *(ROOT / "emulator/dialects").rglob("*.py")):
        for arguments in calls(path, "emit"):
            for event in constants(arguments[0]):
                renamed = chassis_feed.RENAMED.get(event, event).removeprefix("device-")
                yield from others.get(event, (renamed,))


def journal_events() -> Iterator[str]:
    """Every event that the code writes a line for."""
    yield from (event.removeprefix("fault-") for event in hardware_events())
    for path in (ROOT / "harness").rglob("*.py"):
        for arguments in calls(path, "write"):
            if len(arguments) == 3:
                yield from constants(arguments[2])
    for arguments in calls(ROOT / "harness" / "clusters" / "real" / "kubelet_lines.py", "_write"):
        yield from constants(arguments[0])
    for path in (ROOT / "kube" / "emulated" / "kubelet").rglob("*.py"):
        for arguments in calls(path, "_note", "note"):
            yield from constants(arguments[0]) if arguments else ()
    news = [ROOT / "harness" / "recorder.py", *(ROOT / "systems").glob("*/journal.py")]
    for path in news:
        for each in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(each, ast.Yield) and isinstance(each.value, ast.Tuple):
                yield from (
                    text for part in each.value.elts[:-1] for text in constants(part) if part is each.value.elts[-2]
                )


def test_every_event_of_the_journal_is_in_the_reference():
    events = sorted(set(journal_events()) - {"log"})  # what components log is no part of the journal
    assert len(events) > 50
    assert [event for event in events if not re.search(rf"(?<![\w-]){event}(?![\w-])", page("journal"))] == []


def test_every_invariant_is_in_the_reference_with_words():
    systems = [registry.system(name) for name in registry.names()]
    theirs = [
        law
        for each in systems
        for law in (*each.judging.invariants(), *each.judging.laws(each.configure(each.options(), Facility())))
    ]
    numbers = {*OWN, *(law.number for law in theirs)}
    heads = re.findall(r'^(## (\d+) .*) \{: id="\d+" \}$', page("invariants"), re.MULTILINE)
    assert sorted(numbers) == sorted(int(number) for _, number in heads)
    for head, number in heads:
        assert has_words("invariants", f'{head} {{: id="{number}" }}'), head


def test_every_metric_that_the_code_makes_for_prometheus_is_in_the_reference():
    made = re.compile(r"^(?:kubecomp|kod2|gpushare|koordinator_device|apiserver|DCGM_FI)_\w+$")
    for path in (*(ROOT / "systems").rglob("*.py"), ROOT / "kube/emulated/core/wire/request_metrics.py"):
        for arguments in calls(path, "Gauge", "Counter", "Histogram", "_histogram", "_head"):
            for name in constants(arguments[0]) if arguments else ():
                assert not made.match(name) or f"`{name}" in page("metrics"), f"{path.name}: {name}"
    for name in registry.names():
        for metric, text in registry.system(name).measuring.names.items():
            assert f"| `{metric}` | {text}" in page("metrics"), metric


def test_every_environment_variable_that_the_code_names_is_in_the_reference():
    named = re.compile(r"MEWS_[A-Z_]+|KUBECONFIG|KUBEBUILDER_ASSETS|KUBERNETES_SERVICE_(?:HOST|PORT)|XDG_[A-Z_]+")
    found: set[str] = set()
    for path in (*SOURCES, ROOT / "hatch_build.py"):
        if path.name == "environment.py" and path.parent.name == "mews":
            continue
        text = path.read_text(encoding="utf-8")
        for each in ast.walk(ast.parse(text)) if named.search(text) else ():
            if isinstance(each, ast.Constant) and isinstance(each.value, str) and named.fullmatch(each.value):
                found.add(each.value)
    known = {*environment.READ, *environment.GIVEN}
    assert sorted(found - known) == []
    assert sorted(name for name in known - found if named.fullmatch(name)) == [], "no code names these any more"


def keys_without_words(whole: dict[str, Any], found: dict[str, Any], place: str = "") -> Iterator[str]:
    """Keys of that schema, and of what is in it, that neither describe themselves nor refer to what does."""
    for key, each in found.get("properties", {}).items():
        where = f"{place}.{key}" if place else key
        if not each.get("description") and not referred(whole, each).get("description"):
            yield where
        for inner in (each, each.get("items", {}), *each.get("anyOf", ())):
            yield from keys_without_words(whole, {"properties": inner.get("properties", {})}, where)
            items = inner.get("items", {})
            if inner is not each and isinstance(items, dict):
                yield from keys_without_words(whole, items, where)


def referred(whole: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    """The definition that a key's value, its items or one of its alternatives is; {} for none."""
    if "$ref" in found:
        definition: dict[str, Any] = whole["$defs"][found["$ref"].rpartition("/")[2]]
        return definition
    inner = [found.get("items"), found.get("additionalProperties"), *found.get("anyOf", ())]
    return next((it for each in inner if isinstance(each, dict) and (it := referred(whole, each))), {})


def test_every_key_of_a_scenario_file_is_in_the_reference_with_words():
    whole = schema()
    assert list(keys_without_words(whole, whole)) == []
    for name, definition in whole["$defs"].items():
        if not name.startswith("Replacements_"):  # a component's name each
            keys = [f"{name}.{each}" for each in keys_without_words(whole, definition)]
            assert [each for each in keys if not each.startswith("Stack.replace.")] == []  # a system's name each


def test_words_are_of_keys_that_there_are():
    whole = schema()
    definitions = {"Scenario": whole, **whole["$defs"]}
    for name, keys in OWN_WORDS.items():
        assert set(keys) <= set(definitions[name]["properties"]), name


def test_every_key_of_a_hardware_file_is_in_the_reference_with_words():
    whole = hardware_schema()
    assert list(keys_without_words(whole, whole)) == []


@pytest.mark.parametrize("name", registry.names())
def test_every_option_of_a_system_is_in_the_reference_with_words(name: str):
    whole = registry.system(name).options.model_json_schema()
    for definition in (whole, *whole.get("$defs", {}).values()):
        assert list(keys_without_words(whole, definition)) == []


def test_all_that_emulated_clusters_ignore_is_on_its_page() -> None:
    rows = page("ignored").splitlines()
    for ref, names, why in (
        *((row.struct, row.fields, row.why) for row in IGNORED),
        *((*each, "") for each in DROPPED.items()),
    ):
        assert any(ref in row and why in row and all(f"`{name}`" in row for name in names.split()) for row in rows), ref
    for (group, kind), why in IGNORED_KINDS.items():
        assert any(group in row and kind in row and why in row for row in rows)


def test_the_page_of_nvml_has_every_function_of_the_library_once():
    names = (ROOT / "emulator/nvml/symbols.txt").read_text(encoding="utf-8").split()
    states = nvml.functions()
    assert list(states) == names
    assert {name for name, state in states.items() if state == "acts"} >= {
        "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceRemoveGpu", "nvmlDeviceResetGpuLockedClocks"
    }  # fmt: skip
    assert states["nvmlDeviceGetPowerUsage"] == states["nvmlDeviceQueryDrainState"] == "answers"
    assert states["nvmlDeviceSetMigMode"] == states["nvmlDeviceSetNvlinkBwMode"] == "acts"
    assert states["nvmlDeviceSetVgpuHeterogeneousMode"] == "not supported"


def test_the_guide_of_nvml_has_the_summary_of_now():
    assert nvml.summary() in nvml.GUIDE.read_text(encoding="utf-8")  # python -m ci.nvml_summary writes it


def test_the_page_of_nvml_knows_what_nvidia_smi_refuses():
    states = nvml.options()
    assert (states["--power-limit, -pl"], states["--multi-instance-gpu, -mig"]) == ("emulated", "emulated")
    assert "daemon" in nvml.refused_commands() and "vgpu" not in nvml.refused_commands()
    assert "mig" not in nvml.refused_commands()
