"""What a node's root has of NVIDIA's driver and of CDI, read as a runtime reads it."""

from __future__ import annotations

import logging
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from msgspec import Struct

from mews.kube.emulated.kubelet.oci.cdi import FOLDERS, CdiError, CdiSpec, parse_spec
from mews.kube.emulated.kubelet.oci.nvidia import DriverFiles, NodeGpu, NodeMig

_UUID = re.compile(r"\(UUID: (MIG-[^)]+)\)")
_PATIENCE_S = 30

_LOG = logging.getLogger("mews.kubelet.oci")


class NodeDriver(Struct, frozen=True):
    """A node's root folder on this machine: ``proc/driver/nvidia``, ``usr/lib``, ``usr/bin``, ``dev``, ``etc/cdi``."""

    root: Path

    def gpus(self) -> tuple[NodeGpu, ...]:
        """Return those that the driver has, in order of bus address. Raises OSError where it cannot be asked."""
        found: list[tuple[str, str, int]] = []
        for folder in sorted((self.root / "proc/driver/nvidia/gpus").iterdir()):
            lines = (folder / "information").read_text("utf-8").splitlines()
            fields = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
            if (self.root / f"dev/nvidia{fields['Device Minor']}").exists():
                found.append((fields["Bus Location"], fields["GPU UUID"], int(fields["Device Minor"])))
        return tuple(NodeGpu(index, uuid, bus, minor) for index, (bus, uuid, minor) in enumerate(found))

    def parts(self) -> tuple[NodeMig, ...]:
        """Return the MIG devices of all GPUs in their order, as the node's nvidia-smi lists them and the driver's files
        number their capabilities; none where there is no such program. Raises OSError where the driver cannot be
        asked."""
        program = self.root / "usr/bin/nvidia-smi"
        if not program.exists():
            return ()
        minors = self._capabilities()
        listed = _UUID.findall(_output(program, "-L"))
        found, gpus = list[NodeMig](), {gpu.bus_id.upper(): gpu for gpu in self.gpus()}
        for shown in ElementTree.fromstring(_output(program, "-q", "-x")).iter("gpu"):
            gpu = gpus.get(str(shown.get("id", ""))[4:].upper())
            for device in shown.iter("mig_device"):
                index, instance, compute = (
                    int(device.findtext(tag, "0")) for tag in ("index", "gpu_instance_id", "compute_instance_id")
                )
                uuid = listed.pop(0)
                if gpu is None:
                    continue
                inside = f"gpu{gpu.minor}/gi{instance}"
                names = (minors.get(f"{inside}/access"), minors.get(f"{inside}/ci{compute}/access"))
                nodes = tuple(f"/dev/nvidia-caps/nvidia-cap{minor}" for minor in names if minor is not None)
                found.append(NodeMig(gpu, index, uuid, nodes))
        return tuple(found)

    def _capabilities(self) -> dict[str, str]:
        """Capability -> minor number. Raises OSError."""
        text = (self.root / "proc/driver/nvidia-caps/mig-minors").read_text("utf-8")
        return dict(line.split(" ", 1) for line in text.splitlines())

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
        """Return the specifications of each folder; one that cannot be read is logged and left out, as the runtimes
        do."""
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
        """Return where a path of the node is on this machine: below its root, or as it is where the node has none
        such."""
        below = self.root / path.lstrip("/")
        return below if below.exists() or below.is_symlink() else Path(path)


def _output(program: Path, *options: str) -> str:
    """Return what the node's nvidia-smi prints. Raises OSError where it fails."""
    try:
        done = subprocess.run([str(program), *options], capture_output=True, text=True, timeout=_PATIENCE_S, env={})
    except subprocess.TimeoutExpired as error:
        raise OSError(f"{program.name} {' '.join(options)}: no answer within {_PATIENCE_S} s") from error
    if done.returncode != 0:
        raise OSError(f"{program.name} {' '.join(options)}: {done.stdout.strip()[:200]}")
    return done.stdout
