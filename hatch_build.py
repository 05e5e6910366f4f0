"""Compiles libnvidia-ml.so.1 and nvidia-smi when a wheel is built, and tags the wheel by its platform.

The environment variable ``MEWS_WHEEL`` says which wheel is built:

- ``x86_64``, ``aarch64``: with both, for Linux on that machine with glibc 2.17 or later. ``ziglang`` compiles them on
  whatever machine this is: what a system's compiler makes needs the glibc of that system, and no index takes it.
- ``pure``: without them, for every platform. They are compiled at first use, where there is a compiler.
- unset: the first for this machine if it is one of those, else the second.

An editable install is no wheel that anybody else gets: there the system's compiler fills the cache of a checkout.

The metadata's URLs and the links of its README are made of ``src/mews/project.py``: an index shows the README where no
relative link leads anywhere.

This file is the build backend, too: hatchling's, but an editable install asks for ``ziglang`` only where the system has
no compiler (the hook cannot know for which of the two it is asked).
"""

from __future__ import annotations

import importlib.util
import os
import platform
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import hatchling.build
from hatchling.build import *  # noqa: F403 - the backend's other functions are hatchling's own
from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

INSIDE = "mews/emulator/nvml/bin"
MACHINES = ("x86_64", "aarch64")
PURE = "pure"
VARIABLE = "MEWS_WHEEL"
COMPILER = "ziglang>=0.13"


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """What hatchling needs; the compiler only where this system has none."""
    needed: list[str] = hatchling.build.get_requires_for_build_editable(config_settings)
    has_own = _compile(Path.cwd()).system_compiler() is not None
    return [one for one in needed if not (has_own and one == COMPILER)]


def kind_of_wheel() -> str:
    """``pure``, or the machine whose library the wheel is to carry. Raises ValueError."""
    asked = os.environ.get(VARIABLE, "")
    if asked and asked not in (*MACHINES, PURE):
        raise ValueError(f"{VARIABLE}={asked}: must be one of {', '.join((*MACHINES, PURE))}, or unset")
    return asked or (platform.machine() if _is_portable_here() else PURE)


def _is_portable_here() -> bool:
    """Whether this machine could install the wheel with the library that is compiled for it."""
    return sys.platform == "linux" and platform.libc_ver()[0] == "glibc" and platform.machine() in MACHINES


class CompileNvml(BuildHookInterface[Any]):
    """The hook of the wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """The compiler of the wheel's library."""
        return [] if kind_of_wheel() == PURE else [COMPILER]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and put the result into the wheel; an editable install gets it into the cache of a checkout."""
        compile_ = _compile(Path(self.root))
        if version == "editable":
            self._fill_cache(compile_)
            return
        try:
            kind = kind_of_wheel()
        except ValueError as error:
            self.app.abort(str(error))
        if kind != PURE:
            self._fill_wheel(compile_, kind, build_data)

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled: the wheel has it."""
        if hasattr(self, "_made"):
            self._made.cleanup()

    def _fill_cache(self, compile_: ModuleType) -> None:
        """Without a compiler the first use says what is missing."""
        if sys.platform != "linux":
            return
        try:
            compile_.build(self._sources, compile_.cache_folder(self._sources))
        except compile_.CompilerMissingError as missing:
            self.app.display_warning(str(missing))

    def _fill_wheel(self, compile_: ModuleType, machine: str, build_data: dict[str, Any]) -> None:
        cc: Sequence[str] | None = compile_.portable_compiler(machine)
        if cc is None:
            self.app.abort(f"ziglang compiles the wheel's library: pip install ziglang, or set {VARIABLE}={PURE}")
        self._made = tempfile.TemporaryDirectory(prefix="mews-nvml-")
        folder = Path(self._made.name) / "bin"
        compile_.build(self._sources, folder, cc=cc)
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-manylinux_{compile_.GLIBC.replace('.', '_')}_{machine}"
        for name in compile_.PRODUCTS:
            build_data["force_include"][str(folder / name)] = f"{INSIDE}/{name}"

    @property
    def _sources(self) -> Path:
        return Path(self.root) / "emulator" / "nvml" / "c"


class AddressedMetadata(MetadataHookInterface):
    """The hook of the metadata: URLs, and the README with absolute links."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        """Add both to what pyproject.toml has."""
        root = Path(self.root)
        project = _module(root, "src/mews/project.py")
        version = re.findall(
            r'^__version__ = "(.+)"$', (root / "src/mews/__init__.py").read_text("utf-8"), re.MULTILINE
        )
        readme = (root / "README.md").read_text("utf-8")
        metadata["urls"] = project.urls()
        metadata["readme"] = {"content-type": "text/markdown", "text": absolute(readme, version[0], project)}


def absolute(markdown: str, version: str, project: ModuleType) -> str:
    """The page with its links and pictures in the repository as addresses of that release; code is left alone."""

    def linked(found: re.Match[str]) -> str:
        code, picture, text, path = found.groups()
        if code or re.match(r"[a-z]+:|#", path):
            return found[0]
        return f"{picture}[{text}]({project.file_url(path, version, raw=bool(picture))})"

    return re.sub(r"(```.*?```|`[^`\n]*`)|(!?)\[([^\]]*)\]\(([^)\s]+)\)", linked, markdown, flags=re.DOTALL)


def _compile(root: Path) -> ModuleType:
    return _module(root, "emulator/nvml/compile.py")


def _module(root: Path, path: str) -> ModuleType:
    """One of the package's own, loaded before the package exists."""
    spec = importlib.util.spec_from_file_location(f"mews_{Path(path).stem}", root / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
