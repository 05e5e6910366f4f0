"""Where a node has what a driver serves and writes."""

from __future__ import annotations

PLUGINS = "/var/lib/kubelet/plugins"
REGISTRY = "/var/lib/kubelet/plugins_registry"
CDI = "/var/run/cdi"
