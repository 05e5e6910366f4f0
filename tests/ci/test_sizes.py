"""What an installation weighs, by the records of this environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from ci import sizes


@pytest.mark.parametrize("kind", sizes.BARS_MB)
def test_an_installation_is_within_its_bar(kind: str):
    found = sizes.sizes(kind)
    assert sum(found.values()) / 1e6 <= sizes.BARS_MB[kind], found
    assert {"cryptography", "pydantic-core"} <= {name.lower().replace("_", "-") for name in found}
    assert found["falcon-mews"] > 5e6, "our own files are counted"


def test_the_extra_adds_what_it_brings_and_nothing_of_other_extras():
    base, cluster = sizes.sizes("base"), sizes.sizes("cluster")
    assert {"grpcio", "aiohttp"} <= set(cluster) - set(base)
    assert not {"kubernetes", "Faker", "docker", "numpy"} & set(cluster)


def test_above_a_bar_the_program_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    assert sizes.main([]) == 0
    monkeypatch.setattr(sizes, "BARS_MB", {"base": 1.0})
    assert sizes.main([]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("base: ")


def test_the_installer_and_compiled_modules_do_not_count(tmp_path: Path):
    for name, content in {
        "a/b.py": "xx",
        "a/__pycache__/b.pyc": "xxxx",
        "pip/c.py": "x",
        "pip-1.dist-info/R": "x",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    (tmp_path / "d.py").write_text("x")
    assert sizes.folder_bytes(tmp_path) == 3
