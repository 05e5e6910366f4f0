"""The emulated kubelet's device manager: registration, admission, checkpoint, podresources."""

from mews.kube.emulated.kubelet.devices.checkpoint_store import CheckpointStore, FileCheckpoint, MemoryCheckpoint
from mews.kube.emulated.kubelet.devices.errors import AdmissionRejectedError, PreStartError
from mews.kube.emulated.kubelet.devices.fit import extended_resources
from mews.kube.emulated.kubelet.devices.folder import KubeletFolder, Registrar
from mews.kube.emulated.kubelet.devices.manager import DeviceManager
from mews.kube.emulated.kubelet.devices.podresources import ManagerPodResources

__all__ = [
    "AdmissionRejectedError",
    "CheckpointStore",
    "DeviceManager",
    "FileCheckpoint",
    "KubeletFolder",
    "ManagerPodResources",
    "MemoryCheckpoint",
    "PreStartError",
    "Registrar",
    "extended_resources",
]
