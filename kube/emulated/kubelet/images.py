"""The images that emulated nodes have: how a container of each is run (fixtures/images.yaml)."""

from __future__ import annotations

import fnmatch
import math
import re
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml
from msgspec import Struct
from msgspec.structs import replace

import mews
from mews.kube.emulated.kubelet.errors import ImagesError
from mews.kube.emulated.kubelet.stages import LifecycleStage, stages_of
from mews.yaml_text import check_extent

IMAGE_PYTHON = "python3"
IMAGE_PACKAGES = "/opt/mews/lib:/opt/mews/site"
"""In our component image (``mews.harness.clusters.kind.image``): its Python, and where Mews is imported from."""

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
COMPONENTS = "{components}"
"""In images.yaml: our own component image."""

_KEYS = ("container", "env", "files", "image", "load", "process", "simulate")
ITSELF = "{image}"
"""As an image's container: the very image that the pod names."""
_OWN_NAME = re.compile(r"[A-Za-z0-9*?\[][A-Za-z0-9._:/@*?\[\]!-]*")
_REFERENCE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/@-]*")
_NAME_OF_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(\|lines)?\}")


class ContainerBehaviour(Struct, frozen=True):
    """How a simulated container behaves: it ends by itself after ``duration_s`` (infinity: never; None: the container's
    command decides, and without one it ends at once) with ``exit_code``; TERM ends it with ``term_exit_code`` unless
    ``obeys_term`` is false; ``log`` is a template over its environment; ``program`` names what plays it
    (``programs``), which may end it earlier. ``stages`` are what it goes through, in place of log and duration. Where
    ``plays_command`` is false a container's own command changes nothing of it."""

    duration_s: float | None = None
    exit_code: int = 0
    term_exit_code: int = 143
    obeys_term: bool = True
    log: str = ""
    program: str = ""
    stages: tuple[LifecycleStage, ...] = ()
    plays_command: bool = True


IDLE = ContainerBehaviour(duration_s=math.inf, term_exit_code=0, plays_command=False)
"""Runs for as long as nobody stops it, answers its probes and logs nothing, whatever its command is."""


SHELLS = (("sh",), ("bash",))


class Image(Struct, frozen=True):
    """One image: ``process`` is its argv on this machine (None: it cannot be one), ``simulate`` its stand-in (None: it
    has none), ``image`` what real nodes run instead, with the argv ``written``: that of the file, for any machine.
    ``container``: the real image that the container engine runs, "" where it is none.
    ``load``: what its containers ask of their devices (``mews.kube.emulated.kubelet.load``), None: nothing.
    ``env`` are its variables (ENV of a Dockerfile), over which the runtime's and the pod's stand. ``files`` are what
    its process finds: absolute paths in it -> files and folders of this machine."""

    name: str
    process: tuple[str, ...] | None = None
    simulate: ContainerBehaviour | None = None
    image: str = ""
    written: tuple[str, ...] = ()
    load: Any = None
    container: str = ""
    env: Mapping[str, str] = MappingProxyType({})
    files: Mapping[str, str] = MappingProxyType({})

    def is_replaced_by(self, args: Sequence[str]) -> bool:
        """Return whether a container's arguments take the place of the process: an image of a shell has it as CMD, not
        as ENTRYPOINT. Options alone still go to the shell."""
        return self.process in SHELLS and bool(args) and not args[0].startswith("-")

    def of(self, reference: str) -> Image:
        """Return that of the image that a pod names so."""
        return replace(self, container=self.container.replace(ITSELF, reference)) if self.container else self


class ImageBook:
    """All known images, by name without tag or digest. ``patterns``, in their order, are for those that nothing names;
    ``unknown`` says what becomes of what no pattern fits: ``fail``, ``idle`` or ``container``."""

    def __init__(
        self,
        images: Mapping[str, Image],
        patterns: Mapping[str, Image] = MappingProxyType({}),
        *,
        unknown: str = "fail",
    ) -> None:
        self._images = {_short(name): image for name, image in images.items()}
        self._patterns = dict(patterns)
        self._unknown = unknown

    def find(self, reference: str) -> Image | None:
        """Return the image of a reference such as ``docker.io/library/busybox:1.36``, or None."""
        name = plain_name(reference)
        found = self._images.get(_short(reference)) or self._images.get(name)
        if found is not None:
            return found.of(reference)
        fits = (image for pattern, image in self._patterns.items() if _fits(pattern, reference, name))
        return next((replace(image, name=name).of(reference) for image in fits), None)

    def stand_in(self, reference: str) -> Image | None:
        """Return what runs in place of an image that is not known; None where that is to fail."""
        if self._unknown == "container":
            return Image(plain_name(reference), container=ITSELF).of(reference)
        return Image(plain_name(reference), simulate=IDLE) if self._unknown == "idle" else None

    def names(self) -> tuple[str, ...]:
        """Return the names of all images, sorted."""
        return tuple(sorted(self._images))


def _fits(pattern: str, reference: str, name: str) -> bool:
    return fnmatch.fnmatchcase(reference, pattern) or fnmatch.fnmatchcase(name, pattern)


def plain_name(reference: str) -> str:
    """Return the name without tag, digest and Docker's default registry."""
    name = reference.split("@", 1)[0]
    head, slash, last = name.rpartition("/")
    name = head + slash + last.split(":", 1)[0]
    return _short(name)


def _short(name: str) -> str:
    """Return it without Docker's default registry."""
    return name.removeprefix("docker.io/").removeprefix("library/")


def render(template: str, env: Mapping[str, str]) -> str:
    """Return the log template over an environment: ``${NAME}``, and ``${NAME|lines}`` for one element per line."""

    def value(match: re.Match[str]) -> str:
        text = env.get(match[1], "")
        return "".join(f"{part}\n" for part in text.split(",") if part) if match[2] else text

    return _VARIABLE.sub(value, template)


def load_images(
    path: Path | None = None,
    further: Mapping[str, Any] = MappingProxyType({}),
    own: Mapping[str, Any] = MappingProxyType({}),
    *,
    unknown: str = "fail",
) -> ImageBook:
    """Return the images of a file; without one, those that Mews ships; further ones, which come before those; and the
    user's own names and patterns, which come before all.

    Raises ImagesError.
    """
    book = dict(_shipped() if path is None else _book(_read(path), str(path)))
    book |= {name: _image(name, entry, f"image {name}") for name, entry in further.items()}
    mine = {name: own_image(name, entry) for name, entry in own.items()}
    patterns = {name: image for name, image in mine.items() if _is_pattern(name)}
    named = {name: image for name, image in mine.items() if name not in patterns}
    return ImageBook(book | named, patterns, unknown=unknown)


@cache
def _shipped() -> Mapping[str, Image]:
    """Return those that Mews ships: each world asks, and they are the same for all."""
    return _book(files("mews.fixtures").joinpath("images.yaml").read_text("utf-8"), "images.yaml")


def _book(text: str, where: str) -> Mapping[str, Image]:
    try:
        check_extent(text)
        document = yaml.load(text, _Loader)
    except (yaml.YAMLError, ValueError) as error:
        raise ImagesError(f"{where}: not YAML: {' '.join(str(error).split())}") from error
    images = document.get("images") if isinstance(document, dict) else None
    if not isinstance(images, dict):
        raise ImagesError(f"{where}: images: must be a mapping from image name to process, simulate, image, load")
    return {name: _image(name, entry, f"{where}: images.{name}") for name, entry in images.items()}


def _is_pattern(name: str) -> bool:
    return any(sign in name for sign in "*?[")


def own_image(name: str, entry: Any) -> Image:
    """Return an image of the user's: ``idle``, ``container``, or what images.yaml says of one. What is simulated is
    played by our component image on real nodes.

    Raises ImagesError.
    """
    if not (isinstance(name, str) and _OWN_NAME.fullmatch(name)):
        raise ImagesError(f"{name!r}: must be an image, or a pattern with * and ?, such as registry.example.com/team/*")
    if entry == "idle":
        return Image(name, simulate=IDLE, image=COMPONENTS)
    if entry == "container":
        return Image(name, container=ITSELF)
    if not isinstance(entry, dict):
        raise ImagesError(f"{entry!r}: must be idle, container, or a mapping of {', '.join(_KEYS)}")
    image = _image(name, entry, "")
    if image.image or image.process is not None:
        return image
    return replace(image, image=image.container or COMPONENTS)


def _read(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise ImagesError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ImagesError(f"{path}: not a text file in UTF-8") from error


def _image(name: str, entry: Any, where: str) -> Image:
    _only(entry, set(_KEYS), where)
    process, simulate, container = entry.get("process"), entry.get("simulate"), entry.get("container")
    if process is None and simulate is None and container is None:
        raise ImagesError(_at(where, "", "needs process, simulate or container"))
    if container is not None and not (isinstance(container, str) and _REFERENCE.fullmatch(container)):
        raise ImagesError(_at(where, "container", f"{container!r}: must be an image"))
    if container is not None and process is not None:
        raise ImagesError(_at(where, "container", "cannot stand beside process: one of them runs in wall-clock time"))
    if process is not None and not (
        isinstance(process, list) and process and all(isinstance(word, str | int | float) for word in process)
    ):
        raise ImagesError(_at(where, "process", f"{process!r}: must be a list of strings, the argv"))
    if entry.get("image") is not None and not isinstance(entry["image"], str):
        raise ImagesError(_at(where, "image", f"{entry['image']!r}: must be an image"))
    argv = None if process is None else tuple(_filled(str(word)) for word in process)
    written = tuple(_foreign(str(word)) for word in process or ())
    played = None if simulate is None else _simulation(simulate, _below(where, "simulate"))
    env = _variables(entry.get("env", {}), _below(where, "env"))
    if env and container is not None:
        raise ImagesError(_at(where, "env", "cannot stand beside container: the real image has its own"))
    found = _files(entry.get("files", {}), _below(where, "files"))
    if found and process is None:
        raise ImagesError(_at(where, "files", "needs process: nothing else sees them"))
    shown = str(entry.get("image") or "")
    return Image(name, argv, played, shown, written, entry.get("load"), container or "", env, found)


def _files(entry: Any, where: str) -> Mapping[str, str]:
    """Raises ImagesError."""
    if not isinstance(entry, dict):
        raise ImagesError(_at(where, "", f"{entry!r}: must be a mapping from absolute path to path of this machine"))
    for path, source in entry.items():
        if not (isinstance(path, str) and path.startswith("/") and path.strip("/") and ".." not in path.split("/")):
            raise ImagesError(_at(where, "", f"{path!r}: must be an absolute path without .."))
        if not (isinstance(source, str) and source.startswith("/") and Path(source).exists()):
            raise ImagesError(_at(where, path, f"{source!r}: must be an absolute path that exists on this machine"))
    return dict(entry)


def _variables(entry: Any, where: str) -> Mapping[str, str]:
    """Raises ImagesError."""
    if not isinstance(entry, dict):
        raise ImagesError(_at(where, "", f"{entry!r}: must be a mapping from variable to text"))
    for name, value in entry.items():
        if not (isinstance(name, str) and _NAME_OF_VARIABLE.fullmatch(name)):
            raise ImagesError(_at(where, "", f"{name!r}: must be the name of a variable"))
        if not isinstance(value, str):
            raise ImagesError(_at(where, name, f"{value!r}: must be text: write it in quotes"))
    return dict(entry)


def _filled(word: str) -> str:
    """``{python}``: the interpreter that runs Mews; ``{packages}``: the folder that Mews is imported from."""
    packages = str(Path(mews.__file__).parent.parent)
    return word.replace("{python}", sys.executable).replace("{packages}", packages)


def _foreign(word: str) -> str:
    """Return the same in our component image."""
    return word.replace("{python}", IMAGE_PYTHON).replace("{packages}", IMAGE_PACKAGES)


def _simulation(entry: Any, where: str) -> ContainerBehaviour:
    if isinstance(entry, dict) and "stages" in entry:
        _only(entry, {"stages", "term_exit_code", "obeys_term"}, where)
    known = {"duration_s", "exit_code", "term_exit_code", "obeys_term", "log", "program", "stages"}
    _only(entry, known, where)
    duration = entry.get("duration_s")
    if duration is not None and not (
        isinstance(duration, int | float) and not isinstance(duration, bool) and duration >= 0
    ):
        raise ImagesError(_at(where, "duration_s", f"{duration!r}: must be a number of seconds from 0 on"))
    obeys = entry.get("obeys_term", True)
    if not isinstance(obeys, bool):
        raise ImagesError(_at(where, "obeys_term", f"{obeys!r}: must be true or false"))
    stages = stages_of(entry["stages"], _below(where, "stages")) if "stages" in entry else ()
    return ContainerBehaviour(
        duration_s=sum(stage.for_s for stage in stages) if stages else None if duration is None else float(duration),
        exit_code=stages[-1].exit_code if stages else _code(entry, "exit_code", 0, where),
        term_exit_code=_code(entry, "term_exit_code", 143, where),
        obeys_term=obeys,
        log=str(entry.get("log", "")),
        program=str(entry.get("program", "")),
        stages=stages,
        plays_command=not stages,
    )


def _code(entry: Mapping[str, Any], key: str, default: int, where: str) -> int:
    code = entry.get(key, default)
    if isinstance(code, bool) or not isinstance(code, int) or not 0 <= code <= 255:
        raise ImagesError(_at(where, key, f"{code!r}: must be a whole number from 0 to 255"))
    return code


def _only(entry: Any, allowed: set[str], where: str) -> None:
    if not isinstance(entry, dict):
        raise ImagesError(_at(where, "", f"{entry!r}: must be a mapping of {', '.join(sorted(allowed))}"))
    unknown = sorted(set(map(str, entry)) - allowed)
    if unknown:
        raise ImagesError(_at(where, unknown[0], f"unknown; allowed: {', '.join(sorted(allowed))}"))


def _below(where: str, key: str) -> str:
    return f"{where}.{key}" if where else key


def _at(where: str, key: str, text: str) -> str:
    place = _below(where, key) if key else where
    return f"{place}: {text}" if place else text
