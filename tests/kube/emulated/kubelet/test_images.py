"""The images file: what it says, and what is wrong with it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mews.kube.emulated.kubelet.errors import ImagesError, StartError
from mews.kube.emulated.kubelet.images import ContainerBehaviour, Image, ImageBook, load_images, plain_name, render
from mews.kube.emulated.kubelet.runtime import Launch
from mews.kube.emulated.kubelet.simulated import scene_of
from tests.kube.emulated.kubelet.bench import pod


@pytest.mark.parametrize(
    ("reference", "name"),
    [
        ("busybox", "busybox"),
        ("busybox:1.36", "busybox"),
        ("docker.io/library/busybox:1.36@sha256:abc", "busybox"),
        ("registry.example:5000/team/app:v1", "registry.example:5000/team/app"),
        ("mews/gpu-check:latest", "mews/gpu-check"),
    ],
)
def test_an_image_is_known_by_its_name_without_tag_and_digest(reference: str, name: str) -> None:
    assert plain_name(reference) == name


@pytest.mark.parametrize("key", ["docker.io/team/app", "team/app", "docker.io/team/app:v1", "team/app:v1"])
def test_an_entry_may_name_dockers_default_registry(key: str) -> None:
    book = ImageBook({key: Image(key, ("app",))})
    for reference in ("docker.io/team/app:v1", "team/app:v1"):
        found = book.find(reference)
        assert found is not None and found.process == ("app",), reference
    assert book.find("other.io/team/app:v1") is None


def test_the_shipped_images_are_read() -> None:
    images = load_images()
    python = images.find("mews/python:3")
    assert python is not None
    assert python.process == (sys.executable,)
    assert images.find("nobody/knows") is None
    assert "mews/gpu-check" in images.names()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("images: [a]", "images: must be a mapping"),
        ("images: {a: {}}", "images.a: needs process, simulate or container"),
        ("images: {a: {run: x}}", "images.a.run: unknown; allowed: container, env, files, image, load, process"),
        ("images: {a: {container: [x]}}", "images.a.container: ['x']: must be an image"),
        ("images: {a: {container: x, process: [sh]}}", "images.a.container: cannot stand beside process"),
        ("images: {a: {container: x, env: {A: b}}}", "images.a.env: cannot stand beside container"),
        ("images: {a: {process: [sh], env: [A]}}", "images.a.env: ['A']: must be a mapping from variable to text"),
        ("images: {a: {process: [sh], env: {1A: b}}}", "images.a.env: '1A': must be the name of a variable"),
        ("images: {a: {process: [sh], env: {A: 1}}}", "images.a.env.A: 1: must be text: write it in quotes"),
        ("images: {a: {process: [sh], files: [a]}}", "images.a.files: ['a']: must be a mapping from absolute path"),
        ("images: {a: {process: [sh], files: {a: /}}}", "images.a.files: 'a': must be an absolute path without .."),
        ("images: {a: {process: [sh], files: {/../a: /}}}", "images.a.files: '/../a': must be an absolute path"),
        ("images: {a: {process: [sh], files: {/: /}}}", "images.a.files: '/': must be an absolute path without .."),
        ("images: {a: {process: [sh], files: {/a: b}}}", "images.a.files./a: 'b': must be an absolute path that"),
        ("images: {a: {process: [sh], files: {/a: /no}}}", "images.a.files./a: '/no': must be an absolute path that"),
        ("images: {a: {simulate: {}, files: {/a: /}}}", "images.a.files: needs process: nothing else sees them"),
        ("images: {a: {process: sh}}", "images.a.process: 'sh': must be a list"),
        ("images: {a: {simulate: {duration_s: -1}}}", "images.a.simulate.duration_s: -1: must be"),
        ("images: {a: {simulate: {exit_code: x}}}", "images.a.simulate.exit_code: 'x': must be a whole number"),
        ("images: {a: {simulate: 3}}", "images.a.simulate: 3: must be a mapping"),
        ("{", "not YAML"),
    ],
)
def test_a_wrong_file_is_named_with_its_place_and_value(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "images.yaml"
    path.write_text(text)
    with pytest.raises(ImagesError) as raised:
        load_images(path)
    assert str(raised.value).startswith(str(path))
    assert message in str(raised.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ImagesError, match="cannot be read"):
        load_images(tmp_path / "none.yaml")


def test_a_log_template_shows_the_environment() -> None:
    env = {"A": "1", "LIST": "x,y"}
    assert render("a=${A} ${MISSING}\n${LIST|lines}", env) == "a=1 \nx\ny\n"


def launch(image: Image, command: tuple[str, ...] = (), **annotations: str) -> Launch:
    body = pod("a", annotations={f"mews.dev/{key.replace('_', '-')}": value for key, value in annotations.items()})
    return Launch(body, "main", 0, image, command, (), {"X": "y"})


def test_a_played_container_follows_annotation_then_command_then_image() -> None:
    declared = Image("i", simulate=ContainerBehaviour(duration_s=300, log="${X}"))
    assert scene_of(launch(declared)).duration_s == 300
    assert scene_of(launch(declared)).outputs == ((0.0, "y"),)
    assert scene_of(launch(declared, ("sleep", "5"))).duration_s == 5
    assert scene_of(launch(declared, ("python", "train.py"))).duration_s == 300
    assert scene_of(launch(declared, ("sleep", "5"), duration_s="7", exit_code="2")).duration_s == 7
    assert scene_of(launch(declared, duration_s="7", exit_code="2")).exit_code == 2
    assert scene_of(launch(declared, ignores_term="true")).term_exit_code is None


def test_a_container_that_nothing_describes_is_a_clear_error() -> None:
    for image in (Image("i", simulate=ContainerBehaviour()), Image("i", process=("sh",))):
        with pytest.raises(StartError, match=r"mews\.dev/duration-s"):
            scene_of(launch(image, ("python", "train.py")))
    with pytest.raises(StartError, match="'soon': must be a number from 0 on"):
        scene_of(launch(Image("i", simulate=ContainerBehaviour()), duration_s="soon"))


@pytest.mark.parametrize(
    ("process", "args", "replaced"),
    [
        (("sh",), ("sh", "-c", "sleep 1"), True),
        (("sh",), ("-c", "sleep 1"), False),
        (("sh",), (), False),
        (("python3",), ("main.py",), False),
    ],
)
def test_arguments_take_the_place_of_an_images_shell(
    process: tuple[str, ...], args: tuple[str, ...], replaced: bool
) -> None:
    assert Image("x", process).is_replaced_by(args) is replaced
