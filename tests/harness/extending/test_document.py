"""docs/extending.md is true: the files that it names are there, and nothing needs more than three."""

import re
import tomllib

from tests.harness.extending.conftest import EXAMPLE, ROOT

TEXT = (ROOT / "docs" / "extending.md").read_text()
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.partition("## Begin")[0].splitlines()
    if line.startswith("| ") and not line.startswith("| what")
]
WANTED = {
    *("system", "component", "plugin", "controller", "Kubernetes kind", "dialect", "fault", "device kind"),
    *("GPU model", "invariant", "step", "check", "report", "cluster backend"),
}


def test_there_is_a_row_for_everything_that_one_may_want_to_add():
    assert {row[0] for row in ROWS} >= WANTED


def test_nothing_needs_more_than_three_files():
    for what, yours, theirs, ours, files in ROWS:
        assert int(files) <= 3, what
        assert int(theirs or 0) <= 2, what
        assert bool(yours) == bool(theirs), what
        places = re.findall(r"`[\w/]+/[\w/.]*`", ours)
        assert len(places) <= int(files) + 1, what  # of the two places of a fault it is one


def test_the_files_that_it_names_are_there():
    named = set(re.findall(r"`((?:emulator|kube|systems|harness|src|tests)/[\w/.-]+)`", TEXT))
    assert len(named) > 15
    for path in named:
        place = ROOT / path
        assert (place.parent if "NAME" in place.name else place).exists(), path


def test_its_excerpts_are_of_the_example_package():
    package = " ".join("".join(path.read_text() for path in sorted(EXAMPLE.rglob("*.py"))).split())
    for words in ("operation.last(2 * (operation.due_s - operation.start_s) + self.extra_s)", "number = 100"):
        assert words in TEXT
        assert words in package
    points = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]["entry-points"]
    assert set(points) == {f"mews.{group}" for group in ("systems", "dialects", "faults", "invariants", "steps")}
