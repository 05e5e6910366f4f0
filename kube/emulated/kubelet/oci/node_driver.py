"""What a node's root has of NVIDIA's driver and of CDI, read as a runtime reads it."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from mews.kube.emulated.kubelet.oci.cdi import FOLDERS, CdiError, CdiSpec, parse_spec
from mews.kube.emulated.kubelet.oci.nvidia import DriverFiles, NodeGpu

_LOG = logging.getLogger("mews.kubelet.oci")


class NodeDriver(Struct, frozen=True):
    """A node's root folder on this machine: ``proc/driver/nvidia``, ``usr/lib``, ``usr/bin``, ``dev``, ``etc/cdi``."""

    root: Path

    def gpus(self) -> tuple[NodeGpu, ...]:
        """Those that the driver has, in order of bus address. Raises OSError where it cannot be asked."""
        found: list[tuple[str, str, int]] = []
        for folder in sorted((self.root / "proc/driver/nvidia/gpus").iterdir()):
            lines = (folder / "information").read_text("utf-8").splitlines()
            fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
            if (self.root / f"dev/nvidia{fields['Device Minor']}").exists():
                found.append((fields["Bus Location"], fields["GPU UUID"], int(fields["Device Minor"])))
        return tuple(NodeGpu(index, uuid, bus, minor) for index, (bus, uuid, minor) in enumerate(found))

    def files(self) -> DriverFiles:
        """Libraries, programs and device nodes."""
        return DriverFiles(
            libraries=tuple(sorted(self._below("usr/lib", "*/lib*.so.*.*"))),
            programs=tuple(sorted(self._below("usr/bin", "nvidia-*"))),
            devices=tuple(sorted(self._below("dev", "nvidia*"))),
        )

    def _below(self, folder: str, pattern: str) -> Iterator[str]:
        return (f"/{path.relative_to(self.root)}" for path in (self.root / folder).glob(pattern) if not path.is_dir())

    def cdi_folders(self) -> tuple[tuple[CdiSpec, ...], ...]:
        """The specifications of each folder; one that cannot be read is logged and left out, as the runtimes do."""
        return tuple(tuple(self._specs(folder)) for folder in FOLDERS)

    def _specs(self, folder: str) -> Iterator[CdiSpec]:
        for path in sorted((self.root / folder).glob("*")):
            if path.suffix not in (".json", ".yaml"):
                continue
            try:
                yield parse_spec(path.read_text("utf-8"), str(path))
            except (CdiError, OSError, UnicodeDecodeError) as error:
                _LOG.warning("CDI specification left out: %s", error)

    def place(self, path: str) -> Path:
        """Where a path of the node is on this machine: below its root, or as it is where the node has none such."""
        below = self.root / path.lstrip("/")
        return below if below.exists() or below.is_symlink() else Path(path)
