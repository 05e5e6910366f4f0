"""The image of ``mews``: its Dockerfile without an engine, and the image where one answers."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ci import image
from mews import __version__
from mews.project import REPOSITORY
from tests.containers import image_lacks

ROOT = Path(__file__).resolve().parents[2]


def instructions(text: str) -> list[tuple[str, str]]:
    """(instruction, arguments), lines joined and comments left out."""
    joined = re.sub(r"^#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    return [(line.split()[0], line.partition(" ")[2].strip()) for line in joined.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def stages() -> list[list[tuple[str, str]]]:
    """The instructions of each stage, what stands before the first left out."""
    found: list[list[tuple[str, str]]] = []
    for name, arguments in instructions((ROOT / "Dockerfile").read_text(encoding="utf-8")):
        if name == "FROM":
            found.append([])
        if found:
            found[-1].append((name, arguments))
    return found


def test_the_last_stage_runs_mews_as_somebody_without_rights(stages: list[list[tuple[str, str]]]):
    last = dict(stages[-1])
    assert json.loads(last["ENTRYPOINT"]) == ["mews"]
    assert int(last["USER"]) >= 1000, "a number, so that a cluster can see that it is not root"
    names = [name for name, _ in stages[-1]]
    assert names.index("USER") > max(index for index, name in enumerate(names) if name in ("RUN", "COPY"))


def test_all_stages_have_the_base_that_is_given(stages: list[list[tuple[str, str]]]):
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    assert re.search(rf"^ARG BASE={re.escape(image.DEFAULT_BASE)}$", text, re.MULTILINE)
    assert [stage[0] for stage in stages] == [("FROM", "${BASE} AS made"), ("FROM", "${BASE}")]


def test_nothing_is_fetched_and_no_secret_is_in_it(stages: list[list[tuple[str, str]]]):
    everything = [pair for stage in stages for pair in stage]
    assert not {"ADD", "VOLUME", "EXPOSE"} & {name for name, _ in everything}
    assert all("--no-index" in arguments for name, arguments in everything if "pip" in arguments)
    secret = re.compile(r"token|password|secret|credential|apt-get|curl|https?:", re.IGNORECASE)
    assert [arguments for _, arguments in everything if secret.search(arguments)] == []


def test_the_context_is_the_wheels_that_are_copied(stages: list[list[tuple[str, str]]]):
    copied = [arguments.split() for stage in stages for name, arguments in stage if name == "COPY"]
    [(source, target)] = [words for words in copied if not words[0].startswith("--from=")]
    assert ROOT / source == image.WHEELS
    assert any(f"--find-links {target} " in arguments for name, arguments in stages[0] if name == "RUN")
    ignored = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if not line.startswith("#")]
    assert ignored == ["*", f"!{source}"]


def docker(*arguments: str, timeout_s: float = 120.0) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, timeout=timeout_s)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def built() -> Iterator[str]:
    """The tag of a fresh image; skips where no engine answers or the base image is not there."""
    lacking = image_lacks()
    if lacking:
        pytest.skip(lacking)
    base = image.base_image()
    if subprocess.run(["docker", "image", "inspect", base], capture_output=True).returncode != 0:
        pytest.skip(f"the base image {base} is not on this machine; {image.BASE_VARIABLE} names another")
    tag = "mews.local/test-image:1"
    assert image.main(["--base", base, "--tag", tag]) == 0
    yield tag
    docker("image", "rm", "--force", tag)


@pytest.mark.wall
def test_the_image_is_small_and_labelled(built: str):
    [known] = json.loads(docker("image", "inspect", built))
    assert known["Size"] / 1e6 <= image.MOST_MB
    assert known["Config"]["User"] == "10001"
    assert known["Config"]["Labels"]["org.opencontainers.image.source"] == REPOSITORY


@pytest.mark.wall
def test_the_image_runs_the_command_without_root_and_without_a_network(built: str):
    assert docker("run", "--rm", "--network=none", built, "version") == f"mews {__version__}\n"
    assert docker("run", "--rm", "--network=none", "--read-only", "--tmpfs=/tmp", built, "run", "demo").endswith(
        "1 passed\n"
    )


@pytest.mark.wall
def test_up_serves_in_a_container_until_it_is_stopped(built: str):
    container = docker("run", "--detach", "--init", built, "up", "--speed", "10").strip()
    try:
        deadline = time.monotonic() + 120
        while "up: https://" not in (logs := docker("logs", container)):
            assert time.monotonic() < deadline, logs
            assert docker("inspect", "--format", "{{.State.Running}}", container).strip() == "true", logs
        assert "host-1" in docker("exec", container, "mews", "status")
        assert docker("exec", container, "id", "-u").strip() == "10001"
        docker("stop", "--time", "60", container)
        assert docker("inspect", "--format", "{{.State.ExitCode}}", container).strip() == "0"
    finally:
        docker("rm", "--force", container)
