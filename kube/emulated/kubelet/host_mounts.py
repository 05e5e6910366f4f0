"""The host paths of a pod that are mounted into its processes: those of the kubelet, which each node has for itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mews.kube.api.objects import Object, all_containers_of
from mews.kube.emulated.kubelet.errors import StartError
from mews.kube.emulated.kubelet.node_folders import placed


def host_mounts(pod: Object, container: str, folder: Path) -> Iterator[tuple[Path, str]]:
    """What a container finds where; ``folder`` is the node's. Folders are made where the volume's type says so.

    Raises StartError for a path that is not there.
    """
    volumes = {
        volume["name"]: volume["hostPath"] for volume in pod["spec"].get("volumes") or () if "hostPath" in volume
    }
    spec = next((each for each in all_containers_of(pod) if each["name"] == container), {})
    for mount in spec.get("volumeMounts") or ():
        volume = volumes.get(mount["name"])
        source = None if volume is None else placed(folder, str(volume["path"]))
        if volume is None or source is None:
            continue
        _check(source, str(mount["name"]), str(volume.get("type") or ""))
        below = PurePosixPath(str(mount.get("subPath") or ""))
        if not below.is_absolute() and ".." not in below.parts:
            yield source / below, str(mount["mountPath"])


def _check(path: Path, name: str, kind: str) -> None:
    """Volumes without a type are made by the container runtime (pkg/volume/hostpath, containerd)."""
    if kind in ("", "DirectoryOrCreate"):
        path.mkdir(parents=True, exist_ok=True)
    elif kind == "FileOrCreate":
        path.touch()
    if not path.exists():
        text = f'MountVolume.SetUp failed for volume "{name}" : hostPath type check failed: {path} does not exist'
        raise StartError("CreateContainerConfigError", text)
