"""`uvx falcon-mews demo` and `pipx run falcon-mews demo`: the base shows the demo without an installation."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest

from tests.package.conftest import UNREACHABLE, Distributions

RUNNERS = {
    "uv": ("uv", "tool", "run", "--from", "{wheel}", "falcon-mews", "demo"),
    "pipx": ("pipx", "run", "--spec", "{wheel}", "falcon-mews", "demo"),
}
"""Each with the wheel in place of the index; both take the command from the distribution's name."""
OFFLINE = (*UNREACHABLE, "error sending request", "Could not connect", "No solution found", "No matching distribution")


def test_the_distributions_name_is_a_command():
    """Without a command's name, both run the one that is called like the distribution."""
    held = distribution("falcon-mews")
    commands = {one.name for one in held.entry_points if one.group == "console_scripts"}
    assert held.name in commands


def runner(name: str, folder: Path) -> Path:
    """The program in an environment of its own. Skips the test where it cannot be had."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True, capture_output=True)
    done = subprocess.run(
        [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", name], capture_output=True, text=True
    )
    if done.returncode != 0 and any(word in done.stderr for word in OFFLINE):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    return folder / "bin" / name


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.parametrize("name", RUNNERS)
def test_the_demo_is_shown_from_the_base(name: str, distributions: Distributions, tmp_path: Path):
    program = runner(name, tmp_path / "runner")
    argv = [str(program), *(word.format(wheel=distributions.wheel) for word in RUNNERS[name][1:])]
    kept = {key: value for key, value in os.environ.items() if key not in ("VIRTUAL_ENV", "PYTHONPATH", "MEWS_NIGHTLY")}
    homes = {key: str(tmp_path / key) for key in ("UV_CACHE_DIR", "UV_TOOL_DIR", "PIPX_HOME", "XDG_STATE_HOME")}
    environment = {**kept, **homes, "UV_PYTHON": sys.executable, "UV_INDEX_STRATEGY": "unsafe-best-match"}
    if index := index_of_pip():
        environment["UV_DEFAULT_INDEX"] = index
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=600)
    shown = done.stdout + done.stderr
    if done.returncode != 0 and any(word in shown for word in OFFLINE):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, shown[-4000:]
    assert "exactly one GPU moved" in done.stdout
    assert "In virtual time." in done.stdout


def index_of_pip() -> str:
    """The index that pip is configured with, which uv does not read; "" for the usual one."""
    command = [sys.executable, "-m", "pip", "config", "get", "global.index-url"]
    configured = subprocess.run(command, capture_output=True, text=True)
    return os.environ.get("PIP_INDEX_URL") or configured.stdout.strip()


@pytest.mark.wall
@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["base", "cluster"])
def test_a_fresh_installation_is_within_its_bar(kind: str, distributions: Distributions, tmp_path: Path):
    """As pip resolves it today, without our constraints."""
    from ci import sizes
    from tests.package.environment import made

    environment = made(sys.executable, tmp_path)
    extras = f"[{kind}]" if kind != "base" else ""
    wanted = f"falcon-mews{extras} @ {distributions.wheel.as_uri()}"
    done = environment.run("pip", "install", "--quiet", "--no-compile", wanted, timeout_s=600)
    if done.returncode != 0 and any(word in done.stderr for word in OFFLINE):
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr[-4000:]
    [site] = environment.root.glob("lib/python*/site-packages")
    assert sizes.folder_bytes(site) / 1e6 <= sizes.BARS_MB[kind]
