"""The images that emulated nodes have: how a container of each is run (fixtures/images.yaml)."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

import mews
from mews.kube.emulated.kubelet.errors import ImagesError
from mews.yaml_text import check_extent

IMAGE_PYTHON = "python3"
IMAGE_PACKAGES = "/opt/mews/lib:/opt/mews/site"
"""In our component image (``mews.harness.clusters.kind.image``): its Python, and where Mews is imported from."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(\|lines)?\}")


@dataclass(frozen=True, slots=True)
class ContainerBehaviour:
    """How a simulated container behaves: it ends by itself after ``duration_s`` (infinity: never; None: the container's
    command decides, and without one it ends at once) with ``exit_code``; TERM ends it with ``term_exit_code`` unless
    ``obeys_term`` is false; ``log`` is a template over its environment; ``program`` names what plays it
    (``programs``), which may end it earlier."""

    duration_s: float | None = None
    exit_code: int = 0
    term_exit_code: int = 143
    obeys_term: bool = True
    log: str = ""
    program: str = ""


@dataclass(frozen=True, slots=True)
class Image:
    """One image: ``process`` is its argv on this machine (None: it cannot be one), ``simulate`` its stand-in (None: it
    has none), ``image`` what real nodes run instead, with the argv ``written``: that of the file, for any machine.
    ``load``: what its containers ask of their devices (``mews.kube.emulated.kubelet.load``), None: nothing."""

    name: str
    process: tuple[str, ...] | None = None
    simulate: ContainerBehaviour | None = None
    image: str = ""
    written: tuple[str, ...] = ()
    load: Any = None


class ImageBook:
    """All known images, by name without tag or digest."""

    def __init__(self, images: Mapping[str, Image]) -> None:
        self._images = dict(images)

    def find(self, reference: str) -> Image | None:
        """The image of a reference such as ``docker.io/library/busybox:1.36``, or None."""
        name = plain_name(reference)
        return self._images.get(reference) or self._images.get(name)

    def names(self) -> tuple[str, ...]:
        """Return the names of all images, sorted."""
        return tuple(sorted(self._images))


def plain_name(reference: str) -> str:
    """The name without tag, digest and Docker's default registry."""
    name = reference.split("@", 1)[0]
    head, slash, last = name.rpartition("/")
    name = head + slash + last.split(":", 1)[0]
    return name.removeprefix("docker.io/").removeprefix("library/")


def render(template: str, env: Mapping[str, str]) -> str:
    """The log template over an environment: ``${NAME}``, and ``${NAME|lines}`` for one element per line."""

    def value(match: re.Match[str]) -> str:
        text = env.get(match[1], "")
        return "".join(f"{part}\n" for part in text.split(",") if part) if match[2] else text

    return _VARIABLE.sub(value, template)


def load_images(path: Path | None = None, further: Mapping[str, Any] = MappingProxyType({})) -> ImageBook:
    """The images of a file; without one, those that Mews ships; and further ones, which come before those.

    Raises ImagesError.
    """
    if path is None:
        text, where = files("mews.fixtures").joinpath("images.yaml").read_text("utf-8"), "images.yaml"
    else:
        text, where = _read(path), str(path)
    try:
        check_extent(text)
        document = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise ImagesError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    images = document.get("images") if isinstance(document, dict) else None
    if not isinstance(images, dict):
        raise ImagesError(f"{where}: images: must be a mapping from image name to process, simulate, image, load")
    book = {name: _image(name, entry, f"{where}: images.{name}") for name, entry in images.items()}
    return ImageBook(book | {name: _image(name, entry, f"image {name}") for name, entry in further.items()})


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ImagesError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ImagesError(f"{path}: not a text file in UTF-8") from error


def _image(name: str, entry: Any, where: str) -> Image:
    _only(entry, {"process", "simulate", "image", "load"}, where)
    process, simulate = entry.get("process"), entry.get("simulate")
    if process is None and simulate is None:
        raise ImagesError(f"{where}: needs process or simulate")
    if process is not None and not (isinstance(process, list) and process):
        raise ImagesError(f"{where}.process: {process!r}: must be a list of strings, the argv")
    argv = None if process is None else tuple(_filled(str(word)) for word in process)
    written = tuple(_foreign(str(word)) for word in process or ())
    played = None if simulate is None else _simulation(simulate, f"{where}.simulate")
    return Image(name, argv, played, str(entry.get("image", "")), written, entry.get("load"))


def _filled(word: str) -> str:
    """``{python}``: the interpreter that runs Mews; ``{packages}``: the folder that Mews is imported from."""
    packages = str(Path(mews.__file__).parent.parent)
    return word.replace("{python}", sys.executable).replace("{packages}", packages)


def _foreign(word: str) -> str:
    """The same in our component image."""
    return word.replace("{python}", IMAGE_PYTHON).replace("{packages}", IMAGE_PACKAGES)


def _simulation(entry: Any, where: str) -> ContainerBehaviour:
    _only(entry, {"duration_s", "exit_code", "term_exit_code", "obeys_term", "log", "program"}, where)
    duration = entry.get("duration_s")
    if duration is not None and not (isinstance(duration, int | float) and duration >= 0):
        raise ImagesError(f"{where}.duration_s: {duration!r}: must be a number of seconds from 0 on")
    return ContainerBehaviour(
        duration_s=None if duration is None else float(duration),
        exit_code=_code(entry, "exit_code", 0, where),
        term_exit_code=_code(entry, "term_exit_code", 143, where),
        obeys_term=bool(entry.get("obeys_term", True)),
        log=str(entry.get("log", "")),
        program=str(entry.get("program", "")),
    )


def _code(entry: Mapping[str, Any], key: str, default: int, where: str) -> int:
    code = entry.get(key, default)
    if isinstance(code, bool) or not isinstance(code, int):
        raise ImagesError(f"{where}.{key}: {code!r}: must be a whole number")
    return code


def _only(entry: Any, allowed: set[str], where: str) -> None:
    if not isinstance(entry, dict):
        raise ImagesError(f"{where}: {entry!r}: must be a mapping of {', '.join(sorted(allowed))}")
    unknown = sorted(set(map(str, entry)) - allowed)
    if unknown:
        raise ImagesError(f"{where}.{unknown[0]}: unknown; allowed: {', '.join(sorted(allowed))}")
