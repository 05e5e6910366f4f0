"""Backends of the KubeApi suite: each runs a check against a namespace ``suite`` that is empty."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Protocol

from mews.harness.clock import run_virtual, virtual_clock
from mews.kube.api.errors import ApiError
from mews.kube.api.objects import name_of
from mews.kube.api.resources import CONFIGMAPS, EVENTS, LEASES, NAMESPACES, PODS
from mews.kube.client.port import DeleteOptions, KubeApi
from mews.kube.clock import Clock
from mews.kube.emulated.apiserver.api import InProcessKube
from mews.kube.emulated.apiserver.bootstrap import fresh_store

Check = Callable[[KubeApi], Awaitable[None]]
NAMESPACE = {"metadata": {"name": "suite"}}


class Backend(Protocol):
    """Runs checks against one implementation."""

    def run(self, check: Check) -> None: ...


class InProcess:
    """The store in virtual time."""

    def run(self, check: Check) -> None:
        async def main() -> None:
            kube = InProcessKube(fresh_store(virtual_clock().now, random.Random(1)))
            await kube.create(NAMESPACES, NAMESPACE)
            await check(kube)

        run_virtual(main)


class OverHttp:
    """The store behind its HTTP face, on loopback."""

    def run(self, check: Check) -> None:
        from mews.kube.client.http import HttpKube
        from mews.kube.emulated.apiserver.server import ApiServer

        async def main() -> None:
            server = ApiServer(fresh_store(Clock.wall().now, random.Random(1)))
            await server.start()
            kube = HttpKube(server.url)
            try:
                await kube.create(NAMESPACES, NAMESPACE)
                await check(kube)
            finally:
                await kube.close()
                await server.stop()

        asyncio.run(main())


class Real:
    """A real etcd and kube-apiserver; the namespace is emptied after each check."""

    def __init__(self, base_url: str, token: str) -> None:
        self.base_url = base_url
        self.token = token

    def run(self, check: Check) -> None:
        asyncio.run(self._main(check))

    async def _main(self, check: Check) -> None:
        kube = open_real(self.base_url, self.token)
        try:
            if "suite" not in [name_of(obj) for obj in (await kube.list(NAMESPACES)).items]:
                await kube.create(NAMESPACES, NAMESPACE)
            await check(kube)
        finally:
            await empty(kube)
            await kube.close()


def open_real(base_url: str, token: str) -> KubeApi:
    """A client of the real server, whose certificate is its own."""
    import ssl

    from mews.kube.client.http import HttpKube

    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return HttpKube(base_url, token=token, ssl=context)


async def empty(kube: KubeApi) -> None:
    """Nothing is left in the namespace ``suite``."""
    for resource in (PODS, CONFIGMAPS, LEASES, EVENTS):
        for obj in (await kube.list(resource, namespace="suite")).items:
            try:
                if obj["metadata"].get("finalizers"):
                    await kube.patch(resource, name_of(obj), {"metadata": {"finalizers": None}}, namespace="suite")
                await kube.delete(resource, name_of(obj), namespace="suite", options=DeleteOptions(grace_period_s=0))
            except ApiError:
                continue


class ControlPlane:
    """etcd and kube-apiserver as processes of this test run, found as envtest finds them."""

    def __init__(self, binaries: Path) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="mews-plane-"))
        self._processes: list[subprocess.Popen[bytes]] = []
        self._binaries = binaries
        self.token = "suite-token"
        self.base_url = ""

    def start(self) -> None:
        client, peer, secure = (_free_port() for _ in range(3))
        (self._folder / "tokens.csv").write_text(f"{self.token},admin,admin,system:masters\n")
        key = self._folder / "sa.key"
        subprocess.run(["openssl", "genrsa", "-out", str(key), "2048"], check=True, capture_output=True)
        etcd = f"http://127.0.0.1:{client}"
        peers = f"http://127.0.0.1:{peer}"
        self._spawn(
            "etcd", f"--data-dir={self._folder}/etcd", f"--listen-client-urls={etcd}",
            f"--advertise-client-urls={etcd}", f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}", f"--initial-cluster=default={peers}", "--unsafe-no-fsync",
        )  # fmt: skip
        self._spawn(
            "kube-apiserver", f"--etcd-servers={etcd}", "--bind-address=127.0.0.1", f"--secure-port={secure}",
            f"--cert-dir={self._folder}/certs", f"--token-auth-file={self._folder}/tokens.csv",
            "--authorization-mode=RBAC", "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc", f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}", "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
        )  # fmt: skip
        self.base_url = f"https://127.0.0.1:{secure}"
        self._await_ready()

    def _spawn(self, program: str, *arguments: str) -> None:
        with (self._folder / f"{program}.log").open("wb") as output:
            command = [str(self._binaries / program), *arguments]
            process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        self._processes.append(process)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + 60
        while not self._is_ready():
            assert time.monotonic() < deadline, f"kube-apiserver is not ready after 60 s, see {self._folder}"
            time.sleep(0.2)

    def _is_ready(self) -> bool:
        import ssl

        context = ssl._create_unverified_context()
        request = urllib.request.Request(
            f"{self.base_url}/api/v1/namespaces/default", headers={"Authorization": f"Bearer {self.token}"}
        )
        ready = urllib.request.Request(f"{self.base_url}/readyz", headers=request.headers)
        try:
            for each in (request, ready):
                with urllib.request.urlopen(each, context=context, timeout=2):
                    pass
        except (OSError, urllib.error.URLError):
            return False
        return True

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def control_plane_binaries() -> Path | None:
    """The folder that ``KUBEBUILDER_ASSETS`` names, when it has both programs."""
    folder = os.environ.get("KUBEBUILDER_ASSETS")
    if not folder or not all((Path(folder) / name).exists() for name in ("etcd", "kube-apiserver")):
        return None
    return Path(folder)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
