"""The emulated kubelet's device manager: registration, admission, checkpoint, podresources."""

from mews.harness.kubelet.devices.checkpoint_store import CheckpointStore, FileCheckpoint, MemoryCheckpoint
from mews.harness.kubelet.devices.errors import AdmissionRejected, PreStartFailed
from mews.harness.kubelet.devices.folder import KubeletFolder, Registrar
from mews.harness.kubelet.devices.manager import DeviceManager
from mews.harness.kubelet.devices.podresources import ManagerPodResources

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
]
