"""What the DRA specs run on: `mews up` with a stand-in for csi-driver-host-path, with feature gates and without.

The suite's driver pods run its image with commands of their own, by exec (test/e2e/dra/utils/deploy.go).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mews.kube.emulated.kubelet.mount_namespace import Mounts, namespaces_lacking
from tests.upstream.specs import HERE

LIST = "dra.txt"
FILES: Mounts = ((HERE / "hostpathplugin.py", "/hostpathplugin"),)
PLUGIN_PATH = "/sampledeviceplugin"
"""Where the suite's device plugin is in its image."""
IMAGES = ("--images", str(HERE / "dra-images.yaml"))
_GATES = ("DRAConsumableCapacity", "DRADeviceTaints", "DRAExtendedResource", "DRAPartitionableDevices")
_VERSIONS = ("v1beta1", "v1beta2", "v1alpha3")
SWITCHED = (
    *("--feature-gates", ",".join(f"{gate}=true" for gate in _GATES)),
    *("--runtime-config", ",".join(f"resource.k8s.io/{version}=true" for version in _VERSIONS)),
)


@dataclass(frozen=True, slots=True)
class Setting:
    """A cluster's options, its files, and the specs that are played on it."""

    options: Sequence[str]
    files: Mounts
    specs: Sequence[str]


def settings(specs: Sequence[str], plugin: Path | None = None) -> list[Setting]:
    """One for the features that are on by default, one for those that are not; without what cannot run here.
    ``plugin``: the suite's device plugin."""
    if namespaces_lacking():
        specs = [spec for spec in specs if not _has_sockets(spec)]
    files = () if namespaces_lacking() else (*FILES, *(((plugin, PLUGIN_PATH),) if plugin else ()))
    usual, switched = [s for s in specs if not _is_switched(s)], [s for s in specs if _is_switched(s)]
    found = [Setting(IMAGES, files, usual), Setting((*IMAGES, *SWITCHED), files, switched)]
    return [setting for setting in found if setting.specs]


def _has_sockets(spec: str) -> bool:
    """Whether the driver's sockets are in its pod's folders, which are mounted in a namespace of the pod's own."""
    return "[DRA] kubelet" in spec or "DRAExtendedResource" in spec


def _is_switched(spec: str) -> bool:
    return "[Feature:OffByDefault]" in spec or "with v1beta" in spec
