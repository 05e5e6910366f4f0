"""Where agents and container runtimes meet on a node."""

from __future__ import annotations

HOOK_FOLDER = "/run/koordlet"
HOOK_SOCKET = f"{HOOK_FOLDER}/koordlet.sock"
"""Here koordlet answers runtime hooks."""
RUNTIME_SOCKET = f"{HOOK_FOLDER}/cri.sock"
"""The container runtime's CRI as the kubelet reaches it by way of the proxy that asks the hooks."""
CONTAINERD_SOCKET = "/run/containerd/containerd.sock"
"""The container runtime itself."""
PROXY_RECORDS = f"{HOOK_FOLDER}/proxy.jsonl"
"""The structured log records of that proxy."""
PROXY = "runtime-proxy"
"""As which it writes them."""
