"""The emulated kubelet's device manager: registration, admission, checkpoint, podresources."""

from mews.kube.emulated.kubelet.devices.checkpoint_store import CheckpointStore, FileCheckpoint, MemoryCheckpoint
from mews.kube.emulated.kubelet.devices.errors import AdmissionRejected, PreStartFailed
from mews.kube.emulated.kubelet.devices.fit import extended_resources
from mews.kube.emulated.kubelet.devices.folder import KubeletFolder, Registrar
from mews.kube.emulated.kubelet.devices.manager import DeviceManager
from mews.kube.emulated.kubelet.devices.podresources import ManagerPodResources

__all__ = [
    "AdmissionRejected",
    "CheckpointStore",
    "DeviceManager",
    "FileCheckpoint",
    "KubeletFolder",
    "ManagerPodResources",
    "MemoryCheckpoint",
    "PreStartFailed",
    "Registrar",
    "extended_resources",
]
