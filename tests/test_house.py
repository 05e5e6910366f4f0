"""The house's walls and manners: imports, types, style, words, documentation, dependencies."""

import ast
import importlib.util
import json
import os
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from itertools import pairwise
from pathlib import Path

import pytest

from mews.harness.extras import EXTRA_OF
from mews.harness.package import copy_to

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("emulator", "kube", "systems", "harness")
SOURCES = [
    path
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
    if "pb" not in path.relative_to(ROOT).parts
]

CLOCKS = {"kube/clock.py", "harness/clock.py", "emulator/clock.py"}
"""The only modules that read the machine's time for others."""

BANNED_IN_VIRTUAL = ("aiohttp", "grpc", "flask", "kubernetes", "docker", "faker", "matplotlib", "prometheus_client")


def tool(*command, **options):
    """Run a tool of this interpreter's environment; what it says must be empty of complaints."""
    done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True, cwd=ROOT, **options)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    return done.stdout


def test_style_is_ruffs():
    tool("ruff", "check", "--no-cache", ".")


def test_layout_is_ruffs():
    tool("ruff", "format", "--no-cache", "--check", ".")


@pytest.fixture(scope="session")
def tree(tmp_path_factory):
    """The package in one tree: the tools that read imports do not execute ``__path__``."""
    made = tmp_path_factory.mktemp("tree")
    copy_to(made / "mews")
    return made


def test_types_hold_strictly(tree):
    cache = os.environ.get("MYPY_CACHE_DIR") or str(ROOT / ".mypy_cache")
    tool("mypy", "--cache-dir", cache, env={**os.environ, "MYPYPATH": str(tree)})


WRONG_OPTIONS = """
from mews.kube.system.system import Component, System
from mews.kube.system.system_parts import SystemJudging
from mews.systems.gpushare.config import GpuShareConfig
from mews.systems.gpushare.options import GpuShareOptions
from mews.systems.gpushare.system import _extender, configure

SYSTEM: System[GpuShareOptions, GpuShareConfig] = System(
    name="wrong",
    summary="reads options that it does not have",
    options=GpuShareOptions,
    configure=configure,
    components=(Component("extender", _extender, wanted=lambda options: options.replicaz > 1),),
    lends=lambda config: config.nodez,
    judging=SystemJudging(outside_known=lambda options: options.matchz),
)
"""


def test_a_system_that_reads_an_option_it_does_not_have_is_found_by_its_types(tree, tmp_path):
    wrong = tmp_path / "wrong_options.py"
    wrong.write_text(WRONG_OPTIONS)
    cache = os.environ.get("MYPY_CACHE_DIR") or str(ROOT / ".mypy_cache")
    command = [sys.executable, "-m", "mypy", "--cache-dir", cache, str(wrong)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "MYPYPATH": str(tree)})
    errors = [line.partition(" error: ")[2] for line in done.stdout.splitlines() if " error: " in line]
    assert [error.partition(";")[0] for error in errors] == [
        '"GpuShareOptions" has no attribute "replicaz"',
        '"GpuShareConfig" has no attribute "nodez"',
        '"GpuShareOptions" has no attribute "matchz"',
    ]


def test_imports_point_one_way(tree):
    config = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    assert config["contracts"], "there are no contracts to keep"
    lint = [sys.executable, "-c", "from importlinter.cli import lint_imports_command; lint_imports_command()"]
    arguments = ["--config", str(ROOT / "pyproject.toml"), "--no-cache"]
    environment = {**os.environ, "PYTHONPATH": str(tree)}
    done = subprocess.run([*lint, *arguments], capture_output=True, text=True, cwd=tree, env=environment)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-3000:]
    assert f"{len(config['contracts'])} kept, 0 broken" in done.stdout


def circles_in(imports):
    """The sets of modules that import each other in a circle; ``imports``: module -> those that it imports."""
    numbers, lowest, open_, found = {}, {}, [], []

    def visit(module):
        numbers[module] = lowest[module] = len(numbers)
        open_.append(module)
        for other in sorted(imports[module]):
            if other not in numbers:
                visit(other)
            if other in open_:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == numbers[module]:
            start = open_.index(module)
            circle, open_[start:] = sorted(open_[start:]), []
            if len(circle) > 1:
                found.append(circle)

    for module in sorted(imports):
        if module not in numbers:
            visit(module)
    return found


def test_the_search_for_circles_finds_them():
    assert circles_in({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == [["b", "c"]]
    assert circles_in({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


def test_no_modules_import_each_other_in_a_circle(tmp_path):
    """Imports for types alone do not count: they are not there when the code runs."""
    copy_to(tmp_path / "mews")
    read = (
        "import grimp, json; graph = grimp.build_graph('mews', exclude_type_checking_imports=True, cache_dir=None);"
        "print(json.dumps({name: sorted(graph.find_modules_directly_imported_by(name)) for name in graph.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-c", read]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, check=True)
    imports = json.loads(done.stdout)
    assert len(imports) > 500
    assert circles_in(imports) == []


def words_in(path):
    """(line, dotted name) of every call in a module."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            yield node.lineno, ast.unparse(node.func)


@pytest.mark.parametrize("package", PACKAGES)
def test_nothing_sleeps_reads_the_date_or_rolls_dice_by_itself(package):
    forbidden = re.compile(
        r"^(time\.sleep|time\.time|datetime\.(datetime\.)?(now|utcnow|today)|date\.today|uuid\.uuid[14]|uuid[14]"
        r"|random\.(random|randint|choice|choices|shuffle|sample|uniform|randrange|getrandbits|seed|gauss|expovariate))$"
    )
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] == package and str(path.relative_to(ROOT)) not in CLOCKS
        for line, name in words_in(path)
        if forbidden.match(name)
    ]
    assert found == []


FORBIDDEN_WORDS = re.compile(
    r"/work/|\bTODO\b|\bFIXME\b|\bXXX\b|NotImplementedError|\bclaude\b|\banthropic\b", re.IGNORECASE
)


PUBLISHED = ROOT / "emulator/dialects/openapi/cdim"
"""Documents of others, which stay as they were published."""


def texts():
    for pattern in ("*.py", "*.md", "*.toml", "*.yaml", "*.yml", "*.proto", "Makefile"):
        for path in sorted(ROOT.rglob(pattern)):
            inside = path.relative_to(ROOT).parts
            if path.parent == PUBLISHED and path.name != "patches.yaml":
                continue
            if path != Path(__file__).resolve() and inside[0] not in ("src", ".venv", ".git", "build", "dist"):
                yield path


def test_no_word_is_left_that_does_not_belong_here():
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if FORBIDDEN_WORDS.search(line)
    ]
    assert found == []


def test_a_complex_function_has_a_comment_that_says_why():
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in [*SOURCES, *(ROOT / "ci").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
        for (_, before), (number, line) in pairwise(enumerate(path.read_text(encoding="utf-8").splitlines(), start=1))
        if re.match(r"\s*(async )?def .*# noqa: C901$", line) and not before.strip().startswith("# Complex: ")
    ]
    assert found == []


def lines_beside_imports(path):
    text = path.read_text(encoding="utf-8")
    imports = [node for node in ast.walk(ast.parse(text)) if isinstance(node, (ast.Import, ast.ImportFrom))]
    left_out = {number for node in imports for number in range(node.lineno, node.end_lineno + 1)}
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), start=1))
    return [(number, line) for number, line in lines if line and number not in left_out]


def test_no_six_lines_stand_in_two_systems():
    places = {}
    for path in SOURCES:
        package, system, *_ = path.relative_to(ROOT).parts
        lines = lines_beside_imports(path) if package == "systems" else ()
        for run in zip(*(lines[start:] for start in range(6)), strict=False):
            place = f"{path.relative_to(ROOT)}:{run[0][0]}"
            places.setdefault(tuple(line for _, line in run), {}).setdefault(system, place)
    assert [sorted(found.values()) for found in places.values() if len(found) > 1] == []


def test_files_stay_readable():
    long = {str(path.relative_to(ROOT)): len(path.read_text().splitlines()) for path in SOURCES}
    assert {path: lines for path, lines in long.items() if lines > 450} == {}


def undocumented(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if ast.get_docstring(tree) is None and path.read_text().strip():
        yield "the module itself"
    for node in tree.body:
        yield from _undocumented(node, "")


def _undocumented(node, prefix):
    kinds = (ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    if not isinstance(node, kinds) or node.name.startswith("_"):
        return
    overload = any(ast.unparse(decorator).endswith((".setter", "overload")) for decorator in node.decorator_list)
    if ast.get_docstring(node) is None and not overload:
        yield f"{prefix}{node.name} (line {node.lineno})"
    if isinstance(node, ast.ClassDef):
        for child in node.body:
            yield from _undocumented(child, f"{node.name}.")


@pytest.mark.parametrize("package", PACKAGES)
def test_every_public_name_is_documented(package):
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in SOURCES
        if path.relative_to(ROOT).parts[0] == package
        for name in undocumented(path)
    ]
    assert found == []


def test_whoever_is_told_to_install_something_is_told_our_distributions_name():
    """``mews`` on the index is somebody else's package."""
    wrong = re.compile(r"pip install (?:-\S+ )*['\"]?mews\b(?![-/.])")
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in texts()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), start=1)
        if wrong.search(line)
    ]
    assert found == []


def public_classes():
    """(name, where) of every class without a leading underscore, nested ones too."""
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, f"{path.relative_to(ROOT)}:{node.lineno}"


NO_VERB = {"Whether", "How", "Why"}
"""Words with which the docstring of a function that returns something does not begin: it says ``Return whether …``."""


def functions(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        decorators = " ".join(map(ast.unparse, getattr(node, "decorator_list", ())))
        shown = "property" in decorators or "fixture" in decorators or "clause" in decorators
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns is not None and not shown:
            yield node


def test_what_a_function_returns_is_said_in_a_sentence():
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}: {text.splitlines()[0]}"
        for path in SOURCES
        for node in functions(path)
        if (text := ast.get_docstring(node)) and ast.unparse(node.returns) != "None"
        if text.split()[0] in NO_VERB
    ]
    assert found == []


def test_no_two_public_classes_share_a_name():
    places = {}
    for name, where in public_classes():
        places.setdefault(name, []).append(where)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


NOT_OUR_VERBS = re.compile(
    r"tell|tells|told|telling|untold|hear|hears|heard|unheard|say|says|said|saying|wish|wishes|wished|deed|deeds|deaf"
    r"|testimony"
)
"""CONTRIBUTING's "One vocabulary" says which verbs stand in their places: emit, notify, handle, report, …"""

WORDS_OF_FILES = frozenset({"says"})
"""Keys that users write into files keep their word: ``says`` belongs to the faults that lie about an attach."""


def names_given(path):
    """(line, name) of everything that a module gives a name to."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                yield node.lineno, node.name
            case ast.arg():
                yield node.lineno, node.arg
            case ast.Name(ctx=ast.Store()):
                yield node.lineno, node.id
            case ast.Attribute(ctx=ast.Store()):
                yield node.lineno, node.attr


def test_names_use_the_verbs_of_the_field():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in SOURCES
        for line, name in names_given(path)
        if name not in WORDS_OF_FILES
        for word in re.sub(r"([a-z])([A-Z])", r"\1_\2", name).lower().split("_")
        if NOT_OUR_VERBS.fullmatch(word)
    ]
    assert found == []


def imported(path):
    """The top-level names of all modules that a file imports, those in functions too."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.partition(".")[0]


BROUGHT_ALONG = {"werkzeug": "flask", "pydantic_core": "pydantic", "typing_extensions": "pydantic"}
"""Module -> the dependency that brings it."""


def test_every_import_is_of_a_dependency_or_of_an_extra_that_is_named_where_it_lacks():
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ours = {re.split(r"[<>=\[ ]", one)[0].lower() for one in declared}
    brings = packages_distributions()
    foreign = {name for path in SOURCES for name in imported(path)} - set(sys.stdlib_module_names) - {"mews"}
    undeclared = set()
    for name in foreign - set(EXTRA_OF):
        distributions = {one.lower() for one in brings.get(name, ())} | {BROUGHT_ALONG.get(name, name)}
        if not distributions & ours:
            undeclared.add(name)
    assert undeclared == set()


def test_the_extras_that_messages_name_are_those_of_the_package():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert set(EXTRA_OF.values()) <= set(extras)


OF_OTHER_RUNS = (
    "mews.emulator.chassis.faults.slow",
    "mews.emulator.host.faults.layers",
    "mews.harness.clusters.programs.control_plane",
    "mews.harness.conformance",
    "mews.harness.leftovers",
    "mews.harness.live",
    "mews.harness.sweeps",
    "mews.harness.worker_pool",
    "mews.kube.cel.evaluation",
    "mews.kube.emulated.packs.policies.type_checking",
    "mews.kube.emulated.core.objects.apply",
    "mews.kube.emulated.core.objects.fieldsets",
    "mews.kube.emulated.packs.definitions.custom_rules",
    "mews.kube.emulated.packs.networking.ingresses",
    "mews.kube.emulated.packs.storage.csi_drivers",
    "mews.kube.emulated.types.custom.embedded",
    "mews.kube.emulated.kubelet.oci.cdi",
    "mews.kube.emulated.kubelet.oci.runtime",
    "mews.kube.emulated.streaming.spdy",
    "mews.systems.koordinator",
)
"""What the demo has no use for: with its dataclasses and patterns a module is half a millisecond of a cold start."""


def test_a_virtual_run_imports_neither_what_waits_for_the_outside_nor_what_other_runs_need():
    banned = BANNED_IN_VIRTUAL + OF_OTHER_RUNS
    code = (
        "import sys\n"
        "from mews.harness.cli import exit_code\n"
        "code = exit_code(['run', 'scenarios/demo.yaml', '--json', '-'])\n"
        f"print([m for m in {banned!r} if m in sys.modules], code, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stderr.splitlines()[-1] == "[] 0", done.stdout + done.stderr


def test_modules_that_a_virtual_run_leaves_out_exist():
    assert [name for name in OF_OTHER_RUNS if importlib.util.find_spec(name) is None] == []
