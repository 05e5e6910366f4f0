"""A real control plane with kube-scheduler, for as long as a test needs it. Blocking; wall-clock tests only."""

from __future__ import annotations

import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

TOKEN = "only-for-this-test"
PROGRAMS = ("etcd", "kube-apiserver", "kube-scheduler")


def missing() -> str:
    """Why there is no oracle here, or ""."""
    absent = [program for program in PROGRAMS if _find(program) is None]
    return f"{', '.join(absent)} neither in KUBEBUILDER_ASSETS nor on PATH" if absent else ""


def _find(program: str) -> str | None:
    return shutil.which(program, path=os.environ.get("KUBEBUILDER_ASSETS", "")) or shutil.which(program)


def _port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def control_plane(folder: Path) -> Iterator[Callable[..., Any]]:
    """Yields ``call(method, path, body=None)``, which returns the decoded answer and raises urllib's HTTPError."""
    etcd, peer, secure = _port(), _port(), _port()
    (folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n")
    key = str(folder / "sa.key")
    subprocess.run(["openssl", "genrsa", "-out", key, "2048"], check=True, capture_output=True)
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def call(method: str, path: str, body: Any = None) -> Any:
        request = urllib.request.Request(
            f"https://127.0.0.1:{secure}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, context=context, timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text[:1] in b"{[" else text.decode()

    with ExitStack() as stack:

        def start(program: str, *arguments: str) -> None:
            log = stack.enter_context((folder / f"{program}.log").open("wb"))
            found = _find(program)
            assert found is not None
            process = subprocess.Popen([found, *arguments], stdout=log, stderr=log)
            stack.callback(process.wait)
            stack.callback(process.kill)

        start(
            "etcd",
            f"--data-dir={folder / 'etcd'}",
            f"--listen-client-urls=http://127.0.0.1:{etcd}",
            f"--advertise-client-urls=http://127.0.0.1:{etcd}",
            f"--listen-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-advertise-peer-urls=http://127.0.0.1:{peer}",
            f"--initial-cluster=default=http://127.0.0.1:{peer}",
            "--unsafe-no-fsync",
        )
        start(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{etcd}",
            "--bind-address=127.0.0.1",
            f"--secure-port={secure}",
            f"--cert-dir={folder / 'certs'}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.96.0.0/16",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={key}",
            f"--service-account-signing-key-file={key}",
            "--disable-admission-plugins=ServiceAccount",
            "--endpoint-reconciler-type=none",
        )
        until(lambda: call("GET", "/readyz") == "ok", within_s=60)
        user = {"name": "admin", "user": {"token": TOKEN}}
        cluster = {"server": f"https://127.0.0.1:{secure}", "insecure-skip-tls-verify": True}
        (folder / "kubeconfig").write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "real", "cluster": cluster}],
                    "users": [user],
                    "contexts": [{"name": "real", "context": {"cluster": "real", "user": "admin"}}],
                    "current-context": "real",
                }
            )
        )
        start(
            "kube-scheduler",
            f"--kubeconfig={folder / 'kubeconfig'}",
            "--leader-elect=false",
            "--secure-port=0",
        )
        yield call


def until(holds: Callable[[], bool], *, within_s: float) -> None:
    """Ask again and again; refused connections and answers count as no."""
    end = time.monotonic() + within_s
    while True:
        try:
            if holds():
                return
        except urllib.error.HTTPError as refused:
            refused.close()
        except OSError:
            pass
        if time.monotonic() > end:
            raise AssertionError(f"not within {within_s} s: {holds}")
        time.sleep(0.02)
