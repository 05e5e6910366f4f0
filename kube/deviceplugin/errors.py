"""What can go wrong with device plugins beside a failed call.

Exception
├── PluginError          a failed call, in port.py: gRPC's code and text
└── ValueError
    └── SocketPathTooLongError
"""

from __future__ import annotations

from mews.kube.deviceplugin.port import PluginError

__all__ = ["PluginError", "SocketPathTooLongError"]


class SocketPathTooLongError(ValueError):
    """The kernel takes paths of unix sockets up to 107 bytes."""
