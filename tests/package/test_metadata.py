"""What a package index shows: addresses, and a README whose links lead somewhere."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from importlib.metadata import distribution
from typing import Any

import pytest

import mews
from mews import project
from mews.harness.cli import MISTAKE, exit_code
from mews.harness.errors import RequirementError
from tests.package.conftest import ROOT

LINK = re.compile(r"(!?)\[[^\]]*\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def metadata() -> Mapping[str, Any]:
    """Made from the tree, as a build makes it."""
    pytest.importorskip("hatchling", reason="hatchling is not installed; pip install 'falcon-mews[test]' brings it")
    from hatchling.metadata.core import ProjectMetadata
    from hatchling.plugin.manager import PluginManager

    core = ProjectMetadata(str(ROOT), PluginManager()).core
    return {"urls": core.urls, "readme": core.readme, "type": core.readme_content_type, "scripts": core.scripts}


def test_addresses_are_those_of_one_module(metadata: Mapping[str, Any]):
    assert metadata["urls"] == project.urls()
    assert set(metadata["urls"]) == {"Documentation", "Source", "Changelog", "Issues"}
    written = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "urls" in written["dynamic"]
    assert not any(project.REPOSITORY in str(value) for value in written.values())
    elsewhere = [
        str(path.relative_to(ROOT))
        for pattern in ("*.py", "*.toml", "*.yml", "*.yaml", "Dockerfile")
        for path in ROOT.rglob(pattern)
        if path.relative_to(ROOT).parts[0] not in (".venv", "build", "dist")
        and "falcon-mews.example" in path.read_text(encoding="utf-8", errors="replace")
    ]
    # test_recipe.py holds the recipe to the same module
    assert sorted(elsewhere) == ["conda/recipe.yaml", "src/mews/project.py", "tests/package/test_metadata.py"]


def test_no_link_of_the_readme_in_an_index_is_relative(metadata: Mapping[str, Any]):
    assert metadata["type"] == "text/markdown"
    links = LINK.findall(metadata["readme"])
    assert len(links) >= 20
    assert [target for _, target in links if not target.startswith(("https://", "#"))] == []
    for picture, target in links:
        if target.startswith(project.REPOSITORY):
            kind = "raw" if picture else "blob"
            path = target.removeprefix(f"{project.REPOSITORY}/{kind}/v{mews.__version__}/").partition("#")[0]
            assert (ROOT / path).exists(), target


def test_only_links_change(metadata: Mapping[str, Any]):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert LINK.sub("", metadata["readme"]) == LINK.sub("", page)
    assert 'main = {"name": "main"' in metadata["readme"]


def test_the_installed_metadata_has_the_addresses():
    shown = dict(
        line.split(", ", 1) for line in distribution(project.DISTRIBUTION).metadata.get_all("Project-URL") or ()
    )
    assert shown == project.urls()


def test_help_and_errors_lead_to_the_documentation(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch):
    assert exit_code(["--help"]) == 0
    assert capsys.readouterr().out.rstrip().endswith(project.DOCUMENTATION)

    def missing(*_: Any) -> int:
        raise RequirementError("no engine answers")

    monkeypatch.setattr("mews.harness.cli.check_pace", missing)
    assert exit_code(["demo"]) == 3
    assert capsys.readouterr().err == f"no engine answers (see {project.DOCUMENTATION})\n"


def test_a_mistake_of_ours_leads_to_the_issues(monkeypatch: pytest.MonkeyPatch):
    def broken(*_: Any) -> int:
        raise ZeroDivisionError

    monkeypatch.setattr("mews.harness.cli.check_pace", broken)
    with pytest.raises(ZeroDivisionError) as caught:
        exit_code(["demo"])
    assert caught.value.__notes__ == [MISTAKE]
    assert project.ISSUES in MISTAKE
