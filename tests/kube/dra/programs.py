"""DRA drivers of others, built from their Go modules once, into a cache; each with its module's own versions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.upstream.building import ModuleTests, cache_folder, run_go


@dataclass(frozen=True, slots=True)
class DriverProgram:
    """One program of a module; ``cgo``: it has C in it."""

    name: str
    module: ModuleTests
    cgo: bool = False

    @property
    def place(self) -> Path:
        """Where it is once it was built."""
        return cache_folder() / f"{self.name}-{self.module.version}"

    def build(self) -> Path:
        """The program, built where it is not there yet.

        Raises NotBuiltError with the reason.
        """
        if not self.place.is_file():
            part = self.place.with_name(f"{self.place.name}.part")
            words = ("build", "-trimpath", "-ldflags", "-s -w", "-o", str(part), f"./cmd/{self.name}")
            run_go(*words, cwd=self.module.folder(), flags="-mod=readonly", cgo=self.cgo)
            part.replace(self.place)
        return self.place

    def needed(self) -> str:
        """The program's path; the test is skipped without it."""
        if not self.place.is_file():
            pytest.skip(f"{self.place} is not there: python -m tests.kube.dra builds it")
        return str(self.place)


EXAMPLE = DriverProgram("dra-example-kubeletplugin", ModuleTests("sigs.k8s.io/dra-example-driver", "v0.4.0", ""))
NVIDIA = DriverProgram("gpu-kubelet-plugin", ModuleTests("sigs.k8s.io/dra-driver-nvidia-gpu", "v0.4.1", ""), cgo=True)
CDI_HOOK = DriverProgram(
    "nvidia-cdi-hook", ModuleTests("github.com/NVIDIA/nvidia-container-toolkit", "v1.19.1", ""), cgo=True
)
"""What NVIDIA's CDI files have a container runtime call; of the toolkit that ``NVIDIA`` is built with."""
PROGRAMS = (EXAMPLE, NVIDIA)
