"""A proxy before a kind node's container runtime, which asks the node's agent about containers
(``mews.kube.runtimehook``).

It is a service of the node's own systemd, for a kubelet needs its runtime before it can start any pod: it runs in a
view of the component image, mounted by containerd. The kubelet is told of it where kubeadm has written the runtime's
socket (``criSocket``), and started anew; the containers of pods do not notice. Blocking.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence

from mews.harness.clusters.kind.tools import call
from mews.kube.runtimehook.places import CONTAINERD_SOCKET, HOOK_FOLDER, PROXY_RECORDS, RUNTIME_SOCKET
from mews.kube.runtimehook.port import HookPolicy

SERVICE = "mews-runtime-proxy"
_FOLDER = "/etc/systemd/system"
_UNIT, _IMAGE_UNIT = f"{_FOLDER}/{SERVICE}.service", f"{_FOLDER}/{SERVICE}-image.service"
_VIEW = f"/var/lib/mews/{SERVICE}"
_FLAGS, _CONFIG = "/var/lib/kubelet/kubeadm-flags.env", "/var/lib/kubelet/config.yaml"
_READY_S = 60

_KUBELET = f"""
if ! grep -qs "unix://{{there}}" {_FLAGS} {_CONFIG}; then
  for file in {_FLAGS} {_CONFIG}; do
    test ! -e $file || sed -i 's#\\(unix://\\|^containerRuntimeEndpoint: "*\\){{back}}#\\1{{there}}#' $file
  done
  grep -qs "{{there}}" {_FLAGS} {_CONFIG} || {{{{ echo "no container runtime's socket in {_FLAGS}" >&2; exit 1; }}}}
  systemctl restart kubelet
fi
"""
_INSTALL = f"""set -e
mkdir -p {HOOK_FOLDER}
echo {{image}} | base64 -d > {_IMAGE_UNIT}.new
echo {{unit}} | base64 -d > {_UNIT}.new
if ! cmp -s {_UNIT}.new {_UNIT} || ! cmp -s {_IMAGE_UNIT}.new {_IMAGE_UNIT}; then
  systemctl stop {SERVICE} {SERVICE}-image 2>/dev/null || true
  mv {_IMAGE_UNIT}.new {_IMAGE_UNIT}
  mv {_UNIT}.new {_UNIT}
  systemctl daemon-reload
fi
rm -f {_UNIT}.new {_IMAGE_UNIT}.new
systemctl reset-failed {SERVICE} 2>/dev/null || true
systemctl start {SERVICE}
for _ in $(seq {_READY_S * 10}); do test -S {RUNTIME_SOCKET} && break; sleep 0.1; done
test -S {RUNTIME_SOCKET} || {{{{ journalctl --unit {SERVICE} --lines 3 --output cat >&2; exit 1; }}}}
"""
_REMOVE = f"""
systemctl stop {SERVICE} {SERVICE}-image || true
rm -f {_UNIT} {_IMAGE_UNIT} {RUNTIME_SOCKET} {PROXY_RECORDS}
systemctl daemon-reload
"""
_ANSWERS = f"""
for _ in $(seq {_READY_S * 5}); do curl -sf http://127.0.0.1:10248/healthz >/dev/null && exit 0; sleep 0.2; done
echo "the kubelet does not answer" >&2; exit 1
"""


def units(image: str, policy: HookPolicy, without: Sequence[str]) -> tuple[str, str]:
    """Return them for systemd: the image as a folder, and the proxy in it."""
    shown = f"mkdir -p {_VIEW} && ctr -n k8s.io images mount {image} {_VIEW}"
    argv = f"/usr/bin/env python3 -m mews.kube.runtimehook --policy {policy} --records {PROXY_RECORDS}"
    argv += "".join(f" --without {namespace}" for namespace in without)
    view = f"""[Unit]
Description=The component image as a folder
After=containerd.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'mountpoint -q {_VIEW} || {{ {shown}; }}'
ExecStop=/bin/sh -c 'ctr -n k8s.io images unmount {_VIEW}; ctr -n k8s.io snapshots rm {_VIEW}'
"""
    proxy = f"""[Unit]
Description=Asks the node's agent about containers before the container runtime makes them
Requires={SERVICE}-image.service
After=containerd.service {SERVICE}-image.service
Before=kubelet.service
[Service]
Environment=PYTHONPATH=/opt/mews/lib:/opt/mews/site PYTHONDONTWRITEBYTECODE=1 GRPC_VERBOSITY=NONE
ExecStart={argv}
RootDirectory={_VIEW}
MountAPIVFS=yes
BindPaths=/run/containerd {HOOK_FOLDER}
Restart=always
RestartSec=200ms
[Install]
WantedBy=multi-user.target
"""
    return view, proxy


def install(node: str, image: str, policy: HookPolicy, without: Sequence[str]) -> None:
    """Let that node's kubelet reach its runtime by way of a proxy, which asks about no pods of the namespaces
    ``without``; nothing where it does so already. Raises RequirementError."""
    view, proxy = (base64.b64encode(text.encode()).decode() for text in units(image, policy, without))
    switch = _KUBELET.format(there=RUNTIME_SOCKET, back=CONTAINERD_SOCKET)
    _sh(node, _INSTALL.format(image=view, unit=proxy) + switch + _ANSWERS)


def remove(node: str) -> None:
    """Let it reach its runtime as kind made it. Raises RequirementError."""
    back = _KUBELET.format(there=CONTAINERD_SOCKET, back=RUNTIME_SOCKET)
    _sh(node, f"set -e\ntest -e {_UNIT} || exit 0\n{back}{_REMOVE}{_ANSWERS}")


def _sh(node: str, script: str) -> None:
    call(["docker", "exec", node, "sh", "-c", script])
