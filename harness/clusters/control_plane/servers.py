"""etcd and kube-apiserver as processes: started, emptied between two scenarios, stopped. Blocking: call in a thread."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Sequence

from mews.harness.clusters.control_plane.etcd import Etcd
from mews.harness.clusters.control_plane.identity import ControlPlaneIdentity, make_identity
from mews.harness.clusters.programs.finding import HOW, feature_switch, needed, switched
from mews.harness.errors import RequirementError
from mews.harness.leftovers import RuntimeFolder, make_runtime_folder
from mews.kube.emulated.kubelet.podnet.callers import Callers, PlaceOf
from mews.kube.releases.cluster_release import STANDARD, ClusterRelease
from mews.listening.ports import free_ports
from mews.own_files import append_own

_READY_S = 90.0
_LOOK_S = 0.05
_PORT_TRIES = 3
_NAMES = ("etcd", "kube-apiserver")


def _switches(release: ClusterRelease) -> list[str]:
    """Return the options of a release's features and API versions."""
    return [*feature_switch(release), *([f"--runtime-config={switched(release.runtime)}"] if release.runtime else [])]


class Servers:
    """A control plane that outlives the loops that use it; ``start``, then ``empty`` before each further use.
    ``attended``: a controller makes the service accounts that pods need; without one their admission is off.
    ``release``: which Kubernetes they are."""

    def __init__(self, *, attended: bool = False, release: ClusterRelease = STANDARD) -> None:
        self._attended = attended
        self._release = release
        self.folder = make_runtime_folder("mews-plane-")
        self._owned = RuntimeFolder(self.folder)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._identity: ControlPlaneIdentity | None = None
        self._etcd: Etcd | None = None
        self._callers: Callers | None = None
        self._busy = threading.Lock()
        self._stopped = threading.Event()
        self.url = ""

    @property
    def identity(self) -> ControlPlaneIdentity:
        """Certificate and token.

        Raises RuntimeError before the start.
        """
        if self._identity is None:
            raise RuntimeError("the control plane does not run")
        return self._identity

    def find_pods(self, place_of: PlaceOf | None) -> None:
        """While it runs, the API server's connections lead where that function says; None: where they say."""
        if self._callers is not None:
            self._callers.find(place_of)

    def ready(self) -> None:
        """Start it, or empty it when it runs already.

        Raises RequirementError when a program is missing or does not start, also when it is stopped meanwhile.
        """
        with self._busy:
            self._make_ready()

    def _make_ready(self) -> None:
        if self._etcd is not None and self._run():
            self._etcd.empty()
            return
        self._end()
        programs = needed(self._release.name)
        self._identity = make_identity(self.folder, programs["openssl"])
        for attempt in range(_PORT_TRIES):
            try:
                self._start(programs)
                break
            except RequirementError:
                # Another process may have taken a port between its choice and its use.
                self._end()
                if (
                    self._stopped.is_set()
                    or attempt == _PORT_TRIES - 1
                    or "address already in use" not in self._last_words()
                ):
                    raise
        assert self._etcd is not None
        self._etcd.remember()

    def _run(self) -> bool:
        return bool(self._processes) and all(process.poll() is None for process in self._processes)

    def _start(self, programs: dict[str, str]) -> None:
        client, peer, secure = free_ports(3)
        store, peers = f"https://127.0.0.1:{client}", f"https://127.0.0.1:{peer}"
        certificate, key = self.identity.certificate, self.identity.key
        self._etcd = Etcd(store, self.identity.holder_context())
        shutil.rmtree(self.folder / "etcd", ignore_errors=True)
        self._spawn(
            "etcd",
            *(programs["etcd"], f"--data-dir={self.folder / 'etcd'}", "--unsafe-no-fsync", "--log-level=error"),
            *(f"--listen-client-urls={store}", f"--advertise-client-urls={store}"),
            *(f"--listen-peer-urls={peers}", f"--initial-advertise-peer-urls={peers}"),
            f"--initial-cluster=default={peers}",
            # Other users of this machine would else read and write past the API server.
            *(f"--cert-file={certificate}", f"--key-file={key}", f"--trusted-ca-file={certificate}"),
            *(f"--peer-cert-file={certificate}", f"--peer-key-file={key}", f"--peer-trusted-ca-file={certificate}"),
            *("--client-cert-auth", "--peer-client-cert-auth"),
        )
        self._callers = Callers()
        self._spawn(
            "kube-apiserver",
            *(*self._callers.prefix, programs["kube-apiserver"], f"--etcd-servers={store}"),
            *(f"--etcd-cafile={certificate}", f"--etcd-certfile={certificate}", f"--etcd-keyfile={key}"),
            *("--bind-address=127.0.0.1", f"--secure-port={secure}", "--endpoint-reconciler-type=none"),
            *(f"--tls-cert-file={certificate}", f"--tls-private-key-file={key}", f"--cert-dir={self.folder}"),
            *(f"--token-auth-file={self.identity.tokens}", "--authorization-mode=RBAC"),
            *("--service-cluster-ip-range=10.96.0.0/16", "--allow-privileged=true"),  # as kubeadm and kind have it
            *(() if self._attended else ("--disable-admission-plugins=ServiceAccount",)),
            *_switches(self._release),
            "--service-account-issuer=https://kubernetes.default.svc",
            *(f"--service-account-key-file={certificate}", f"--service-account-signing-key-file={key}"),
            *(f"--kubelet-certificate-authority={certificate}", "--kubelet-preferred-address-types=InternalIP"),
            *(f"--kubelet-client-certificate={certificate}", f"--kubelet-client-key={key}"),
            # By these it shows itself to the metrics API, which it aggregates.
            *(f"--proxy-client-cert-file={certificate}", f"--proxy-client-key-file={key}"),
            *(f"--requestheader-client-ca-file={certificate}", "--requestheader-username-headers=X-Remote-User"),
            *("--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-"),
            passed=self._callers.passed,
        )
        self.url = f"https://127.0.0.1:{secure}"
        self._await_ready()

    def _spawn(self, name: str, *argv: str, passed: Sequence[int] = ()) -> None:
        with append_own(self.folder / f"{name}.log") as log:
            try:
                process = subprocess.Popen(
                    argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                    env=self._owned.env(), pass_fds=passed,
                )  # fmt: skip
            except OSError as error:
                raise RequirementError(f"{argv[0]}: cannot be started: {error.strerror}; {HOW}") from error
        self._processes.append(process)

    def _await_ready(self) -> None:
        deadline = time.monotonic() + _READY_S
        while not self._answers():
            if self._stopped.wait(_LOOK_S):
                raise RequirementError("the control plane was stopped before it was ready")
            dead = [process for process in self._processes if process.poll() is not None]
            if dead or time.monotonic() > deadline:
                what = "ended" if dead else f"was not ready within {_READY_S:g} s"
                raise RequirementError(f"the control plane {what}: {self._last_words()}")

    def _answers(self) -> bool:
        request = urllib.request.Request(
            f"{self.url}/readyz", headers={"Authorization": f"Bearer {self.identity.token}"}
        )
        try:
            with urllib.request.urlopen(request, context=self.identity.client_context(), timeout=2.0) as answer:
                return bool(answer.read() == b"ok")
        except urllib.error.HTTPError as refused:
            refused.close()
            return False
        except OSError:
            return False

    def _last_words(self) -> str:
        """Return the last error that one of them told of, else the last line of any."""
        logs = {path.stem: path for path in (self.folder / f"{name}.log" for name in _NAMES) if path.exists()}
        output = [
            f"{name}: {line}"
            for name, path in logs.items()
            for line in path.read_text(encoding="utf-8", errors="replace").splitlines()
        ]
        errors = [line for line in output if "rror" in line or "fatal" in line]
        return next(iter([*errors[-1:], *output[-1:]]), "they said nothing")

    def _end(self) -> None:
        while self._processes:
            process = self._processes.pop()
            with contextlib.suppress(ProcessLookupError):
                # Nothing of it is kept, so nothing needs to be put in order.
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if self._callers is not None:
            self._callers.close()
            self._callers = None

    def stop(self) -> None:
        """End the processes, also those that another thread is just starting, and remove what they wrote."""
        self._stopped.set()
        with self._busy:
            self._end()
            self._owned.release()
