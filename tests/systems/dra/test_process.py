"""The driver as a process: what it refuses, and what its file may say."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from mews.kube.deviceplugin.port import Mount
from mews.systems.dra.__main__ import main
from mews.systems.dra.config import DraConfig
from mews.systems.dra.config_file import config_of


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("poll_s: 0\n", "poll_s: 0: must be greater than 0"),
        ("poll_s: often\n", "poll_s"),
        ("colour: red\n", "must be a mapping with nodes, poll_s, health, nvml, envs, mounts"),
        ("[]\n", "must be a mapping with nodes"),
        ("mounts: [{container_path: /x}]\n", "host_path"),
        ("{", "expected"),
    ],
)
def test_a_file_that_cannot_be_is_one_line_and_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, says: str
) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(text)
    assert main(["--node", "n1", "--config", str(file)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and str(file) in error and says in error


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with room for sockets."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        yield Path(folder)


def folders(where: Path) -> dict[str, str]:
    names = ("plugins", "plugins-registry", "cdi")
    return {f"--{name}": str(where / name) for name in names}


@pytest.mark.parametrize(
    ("flag", "there"),
    [
        *(("--plugins", "a file"), ("--plugins-registry", "a file"), ("--cdi", "a file")),
        *(("--plugins", "a long name"), ("--plugins-registry", "a long name")),  # no socket is in the third
    ],
)
def test_a_folder_that_cannot_be_is_one_line_and_two(
    short: Path, capsys: pytest.CaptureFixture[str], flag: str, there: str
) -> None:
    wrong = short / ("file" if there == "a file" else "x" * 110)
    (short / "file").write_text("")
    given = {**folders(short), flag: str(wrong)}
    assert main(["--node", "n1", *(word for pair in given.items() for word in pair)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith(flag)
    assert ("at most 107 are possible" in error) is (there == "a long name")


def test_the_node_must_be_named(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NODE_NAME", raising=False)
    assert main([]) == 2
    assert capsys.readouterr().err == "--node: must name this node, or $NODE_NAME must\n"


def test_an_unknown_flag_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--colour", "red"])
    assert ended.value.code == 2
    assert "unrecognized arguments: --colour red" in capsys.readouterr().err


def test_the_file_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text("nodes: [a]\npoll_s: 2\nenvs: {A: b}\nmounts: [{container_path: /x, host_path: /y}]\n")
    assert config_of(file) == DraConfig(nodes=("a",), poll_s=2, envs={"A": "b"}, mounts=(Mount("/x", "/y"),))
