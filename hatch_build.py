"""Compiles libnvidia-ml.so.1 and nvidia-smi when a wheel is built, and tags the wheel by its platform.

The system's compiler is taken; only where there is none does the build ask for ``ziglang``, which brings one. Where
neither can be had the wheel is pure: the library is compiled at first use, or says what is missing.
"""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

INSIDE = "mews/emulator/nvml/bin"


class CompileNvml(BuildHookInterface[Any]):
    """The hook of the wheel."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """ziglang, only where the system has no compiler."""
        return [] if self._compile().system_compiler() else ["ziglang"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; an editable install gets the result into the cache that a checkout uses."""
        if sys.platform != "linux":
            return
        compile_ = self._compile()
        sources = Path(self.root) / "emulator" / "nvml" / "c"
        editable = version == "editable"
        self._made = tempfile.TemporaryDirectory(prefix="mews-nvml-")
        folder = compile_.cache_folder(sources) if editable else Path(self._made.name) / "bin"
        try:
            compile_.build(sources, folder)
        except compile_.CompilerMissing as missing:
            self.app.display_warning(str(missing))
            return
        if not editable:
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{self._platform(compile_)}"
            for name in (compile_.LIBRARY, compile_.SMI):
                build_data["force_include"][str(folder / name)] = f"{INSIDE}/{name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was compiled: the wheel has it."""
        if hasattr(self, "_made"):
            self._made.cleanup()

    def _compile(self) -> ModuleType:
        path = Path(self.root) / "emulator" / "nvml" / "compile.py"
        spec = importlib.util.spec_from_file_location("mews_nvml_compile", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module

    @staticmethod
    def _platform(compile_: ModuleType) -> str:
        machine = os.uname().machine
        if compile_.system_compiler():
            return f"linux_{machine}"
        return f"manylinux_{compile_.GLIBC.replace('.', '_')}_{machine}"
