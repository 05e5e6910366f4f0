"""How a device plugin that runs as a process of its own is told where its kubelet is."""

from __future__ import annotations

import argparse
from contextlib import AsyncExitStack
from pathlib import Path

from mews.kube.deviceplugin.grpc_client import GrpcPodResources
from mews.kube.deviceplugin.grpc_link import GrpcLink

_KUBELET = Path("/var/lib/kubelet")


def add_kubelet_arguments(parser: argparse.ArgumentParser) -> None:
    """Add ``--device-plugins DIR`` and ``--pod-resources DIR``."""
    parser.add_argument("--device-plugins", type=Path, default=_KUBELET / "device-plugins", metavar="DIR")
    parser.add_argument("--pod-resources", type=Path, default=_KUBELET / "pod-resources", metavar="DIR")


def kubelet_of(options: argparse.Namespace, stack: AsyncExitStack) -> tuple[GrpcLink, GrpcPodResources]:
    """Return the kubelet of those options as plugins see it, and its pod resources; ``stack`` closes both."""
    pod_resources = GrpcPodResources(options.pod_resources / "kubelet.sock")
    stack.push_async_callback(pod_resources.close)
    link = GrpcLink(options.device_plugins)
    stack.push_async_callback(link.close)
    return link, pod_resources
