"""What can go wrong in the kubelet's device manager.

DeviceError
├── DeviceAllocationError    a container cannot have its devices; becomes an AdmissionRejectedError
├── AdmissionRejectedError   the pod is Failed for good
├── PreStartError      a container cannot be started now; the kubelet tries again
└── CheckpointError     the checkpoint cannot be read, or not written; the kubelet goes on without it
"""

from __future__ import annotations

PREFIX = "Pod was rejected: "


class DeviceError(Exception):
    """Anything the device manager refuses."""


class DeviceAllocationError(DeviceError):
    """Why a container cannot have its devices: the X of "Allocate failed due to X, which is unexpected"."""


class AdmissionRejectedError(DeviceError):
    """The pod is rejected for good (contract kubelet.md section 4).

    ``reason`` and ``message`` go into the pod's status, ``event_message`` with the same reason into a Warning event.
    """

    def __init__(self, reason: str, event_message: str) -> None:
        super().__init__(f"{reason}: {event_message}")
        self.reason = reason
        self.message = PREFIX + event_message
        self.event_message = event_message


class PreStartError(DeviceError):
    """PreStartContainer failed; the text is the message of waiting ``CreateContainerConfigError``."""


class CheckpointError(DeviceError):
    """The checkpoint is missing, no JSON, has a wrong checksum, or cannot be written."""
