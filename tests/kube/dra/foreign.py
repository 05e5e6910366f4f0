"""A running ``mews up`` with drivers of others on its nodes, seen by its API and its files."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mews.kube.emulated.kubelet.mount_namespace import namespaces_lacking
from tests.kube.dra.programs import EXAMPLE, NVIDIA

NODE = "host-1"
MEWS = [sys.executable, "-m", "mews.harness.cli"]
DEADLINE_S = 90.0
"""A driver puts a slice that was deleted back within 60 s."""
_POLL_S = 0.05
_SESSION = "drivers"
_CORE, _DRA = "api/v1", "apis/resource.k8s.io/v1"
PATHS: Mapping[str, str] = {
    "Pod": f"{_CORE}/namespaces/default/pods",
    "Event": f"{_CORE}/namespaces/default/events",
    "Namespace": f"{_CORE}/namespaces",
    "Job": "apis/batch/v1/namespaces/default/jobs",
    "DeviceClass": f"{_DRA}/deviceclasses",
    "ResourceClaim": f"{_DRA}/namespaces/default/resourceclaims",
    "ResourceClaimTemplate": f"{_DRA}/namespaces/default/resourceclaimtemplates",
    "ResourceSlice": f"{_DRA}/resourceslices",
}

# NVIDIA's driver reads /sys and, for MIG, two of /proc: it gets those of its host, in a mount namespace of its own.
_MOUNTED = (
    'mount --bind "$1" /sys && mount --bind "$2/proc/devices" /proc/devices && '
    'mount --bind "$2/proc/driver" /proc/driver && shift 2 && exec "$@"'
)


def until(condition: Callable[[], Any], what: str) -> Any:
    """Poll until it holds; what it returned."""
    end = time.monotonic() + DEADLINE_S
    while not (found := condition()):
        assert time.monotonic() < end, f"waited {DEADLINE_S:g} s for {what}"
        time.sleep(_POLL_S)
    return found


class Up:
    """The session: its API, and what lies on the disk of host-1."""

    def __init__(self, ready: Mapping[str, Any], environment: Mapping[str, str]) -> None:
        self.ready = ready
        self.node = ready["nodes"][NODE]
        self._environment = environment

    def ask(self, path: str, method: str = "GET", body: Any = None, kind: str = "application/json") -> Any:
        """One call of the API; None where there is no such object."""
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(f"{self.ready['api']}/{path}", data, {"Content-Type": kind}, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                text = answer.read().decode()
        except urllib.error.HTTPError as error:
            if error.code == 404:
                return None
            raise AssertionError(error.read().decode()) from error
        return json.loads(text) if text.startswith("{") else text

    def create(self, kind: str, name: str, spec: Mapping[str, Any]) -> Any:
        """Create an object."""
        path = PATHS[kind]
        version = path.partition("/")[2].partition("/namespaces")[0] if path.startswith("apis/") else "v1"
        version = "resource.k8s.io/v1" if version.startswith("resource.k8s.io") else version
        body = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        return self.ask(path, "POST", body)

    def get(self, kind: str, name: str) -> Any:
        """An object, or None."""
        return self.ask(f"{PATHS[kind]}/{name}")

    def items(self, kind: str) -> list[Any]:
        """All objects of a kind."""
        found: list[Any] = self.ask(PATHS[kind])["items"]
        return found

    def delete(self, kind: str, name: str) -> None:
        """Delete an object, and wait until it is gone."""
        self.ask(f"{PATHS[kind]}/{name}", "DELETE")
        until(lambda: self.get(kind, name) is None, f"{kind} {name} to be gone")

    def phase(self, pod: str) -> str:
        """The phase of a pod, "" for none."""
        found = self.get("Pod", pod)
        return "" if found is None else str(found["status"].get("phase"))

    def running(self, pod: str) -> None:
        """Return once a pod runs."""
        until(lambda: self.phase(pod) == "Running", f"pod {pod} to run")

    def events(self, reason: str) -> list[str]:
        """Texts of the events with that reason."""
        return [each["message"] for each in self.items("Event") if each["reason"] == reason]

    def log(self, pod: str) -> str:
        """What a pod printed."""
        return str(self.ask(f"{PATHS['Pod']}/{pod}/log") or "")

    def step(self, text: str) -> None:
        """Run a step of a scenario."""
        command = [*MEWS, "step", "--name", _SESSION, text]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, timeout=DEADLINE_S)
        assert done.returncode == 0, done.stdout + done.stderr

    def uuids(self) -> list[str]:
        """UUIDs of the GPUs that the host shows."""
        door = self.ready["hosts"]
        request = urllib.request.Request(
            f"{door['url']}/v1/hosts", headers={"Authorization": f"Bearer {door['token']}"}
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            rows = json.load(answer)[NODE]["devices"].values()
        return sorted(row["uuid"] for row in rows if row["nvml"])


@contextlib.contextmanager
def session(hardware: str = "demo") -> Iterator[Up]:
    """In a short folder, as the path of a socket has at most 107 bytes."""
    with tempfile.TemporaryDirectory(prefix="m", dir="/tmp") as folder:
        environment = {**os.environ, "XDG_RUNTIME_DIR": folder, "XDG_STATE_HOME": folder}
        what = ["--insecure", "--stack", "none", "--wait", "nodes", "--hardware", hardware, "--speed", "10", "--json"]
        command = [*MEWS, "up", *what, "--name", _SESSION, "--dir", f"{folder}/up"]
        child = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True)
        try:
            assert child.stdout is not None
            yield Up(json.loads(child.stdout.readline()), environment)
        finally:
            child.send_signal(signal.SIGTERM)
            try:
                child.communicate(timeout=DEADLINE_S)
            finally:
                child.kill()
                subprocess.run([*MEWS, "down", "--all"], env=environment, capture_output=True, check=True)


@dataclass(slots=True)
class ForeignDriver:
    """A driver on host-1. ``command``: what starts it; ``shows``: what its pods run, so that they print their devices;
    ``seen``: the devices that a log names, as the slice's attribute ``key`` has them."""

    name: str
    key: str
    shows: str
    seen: Callable[[str], list[str]]
    command: Callable[[Up], Sequence[str]]
    log: Path
    up: Up
    process: subprocess.Popen[bytes] | None = field(default=None)

    def start(self) -> None:
        """Start it, and wait for its slice."""
        environment = {**os.environ, **self.up.node["env"], "NODE_NAME": NODE}
        environment.pop("LD_LIBRARY_PATH")
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(self.command(self.up), env=environment, stdout=log, stderr=log)
        registered = Path(self.up.node["plugins_registry"], f"{self.name}-reg.sock")
        until(lambda: registered.exists() and self.devices(), f"{self.name} to publish its devices")

    def signal(self, number: int) -> None:
        """Send it a signal."""
        assert self.process is not None and self.process.poll() is None, self.log.read_text()
        self.process.send_signal(number)

    def kill(self) -> None:
        """As kill -9 does: sockets and files stay."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None

    def devices(self) -> dict[str, Mapping[str, Any]]:
        """Name -> device, of its slices of this node."""
        slices = [each["spec"] for each in self.up.items("ResourceSlice")]
        mine = [each for each in slices if each["driver"] == self.name and each.get("nodeName") == NODE]
        return {device["name"]: device for each in mine for device in each.get("devices") or ()}

    def value(self, device: str) -> str:
        """By what its pods know a device."""
        if self.key == "name":
            return device
        return str(self.devices()[device]["attributes"][self.key]["string"])

    def pod(self, claim: Mapping[str, str]) -> dict[str, Any]:
        """The spec of a pod with one claim that prints its devices and stays."""
        container = {"name": "main", "image": "busybox", "command": ["sh", "-c", f"{self.shows}; exec sleep 600"]}
        return {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "resourceClaims": [{"name": "gpu", **claim}],
            "containers": [{**container, "resources": {"claims": [{"name": "gpu"}]}}],
        }

    def request(self, **more: Any) -> dict[str, Any]:
        """The spec of a claim with one request of its class."""
        return {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": self.name, **more}}]}}

    def allocated(self, claim: str) -> list[str]:
        """The devices of a claim, as its pods know them."""
        status = self.up.get("ResourceClaim", claim).get("status") or {}
        results = ((status.get("allocation") or {}).get("devices") or {}).get("results") or ()
        return sorted(self.value(each["device"]) for each in results)

    def shown(self, pod: str) -> list[str]:
        """The devices that a pod prints."""
        self.up.running(pod)
        return sorted(until(lambda: self.seen(self.up.log(pod)), f"pod {pod} to print its devices"))

    def specifications(self) -> list[str]:
        """The CDI files of claims."""
        return [path.name for path in Path(self.up.node["cdi"]).glob(f"*{self.name}*") if "common" not in path.name]


def example(up: Up, log: Path) -> ForeignDriver:
    """Kubernetes' example driver; it knows nothing of the machine."""
    program = EXAMPLE.needed()

    def command(up: Up) -> Sequence[str]:
        node = up.node
        return [
            program, "--node-name", NODE, "--kubeconfig", up.ready["kubeconfig"], "--cdi-root", node["cdi"],
            "--kubelet-registrar-directory-path", node["plugins_registry"], "--num-devices", "4",
            "--kubelet-plugins-directory-path", node["plugins"], "--healthcheck-port", "-1", "--metrics-port", "-1",
        ]  # fmt: skip

    def seen(text: str) -> list[str]:
        return re.findall(r"^GPU_DEVICE_\d+=(gpu-\d+)$", text, re.MULTILINE)

    return ForeignDriver("gpu.example.com", "name", "env", seen, command, log, up)


def nvidia(up: Up, log: Path) -> ForeignDriver:
    """NVIDIA's driver; its pods ask nvidia-smi."""
    program = NVIDIA.needed()

    def command(up: Up) -> Sequence[str]:
        node = up.node
        words = [
            program, "--node-name", NODE, "--kubeconfig", up.ready["kubeconfig"], "--cdi-root", node["cdi"],
            "--kubelet-registrar-directory-path", node["plugins_registry"],
            "--kubelet-plugins-directory-path", node["plugins"], "--image-name", "none", "--namespace", "kube-system",
            "--container-driver-root", node["driver_root"], "--nvidia-driver-root", "/",
            "--nvidia-cdi-hook-path", "/usr/bin/nvidia-cdi-hook",
        ]  # fmt: skip
        if namespaces_lacking():
            return words
        new = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-rm"]
        return [*new, "sh", "-c", _MOUNTED, "sh", node["sysfs"], node["driver_root"], *words]

    def seen(text: str) -> list[str]:
        return re.findall(r"^GPU \d+: .* \(UUID: (GPU-[0-9a-f-]+)\)$", text, re.MULTILINE)

    return ForeignDriver("gpu.nvidia.com", "uuid", "nvidia-smi -L", seen, command, log, up)


def ours(up: Up, log: Path) -> ForeignDriver:
    """Mews' own, as a process; its pods are told their GPUs."""

    def command(up: Up) -> Sequence[str]:
        node = up.node
        (library,) = Path(node["driver_root"]).glob("**/libnvidia-ml.so.1")
        return [
            sys.executable, "-m", "mews.systems.dra", "--kubeconfig", up.ready["kubeconfig"], "--cdi", node["cdi"],
            "--plugins-registry", node["plugins_registry"], "--plugins", node["plugins"], "--nvml", str(library),
        ]  # fmt: skip

    def seen(text: str) -> list[str]:
        return re.findall(r"GPU-[0-9a-z-]+", text)

    return ForeignDriver("gpu.nvidia.com", "uuid", "echo $NVIDIA_VISIBLE_DEVICES", seen, command, log, up)


DRIVERS: Mapping[str, Callable[[Up, Path], ForeignDriver]] = {"ours": ours, "example": example, "nvidia": nvidia}
