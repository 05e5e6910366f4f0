"""Kubeconfigs as tests write them."""

from __future__ import annotations

import base64
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Identity:
    """A certificate and its key, in files of one folder."""

    certificate: Path
    key: Path

    def data(self) -> tuple[str, str]:
        """Both as a kubeconfig holds them."""
        certificate, key = (base64.b64encode(path.read_bytes()).decode() for path in (self.certificate, self.key))
        return certificate, key


def made_identity(folder: Path, name: str) -> Identity:
    """A fresh certificate that signs itself."""
    made = Identity(folder / f"{name}.crt", folder / f"{name}.key")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", f"/CN={name}"]
    names = ["-addext", "subjectAltName=DNS:inside.example"]
    subprocess.run([*command, *names, "-keyout", made.key, "-out", made.certificate], check=True, capture_output=True)
    return made


def document(cluster: Any, user: Any, **more: Any) -> dict[str, Any]:
    """A kubeconfig of one context."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
        **more,
    }


def written(folder: Path, cluster: Any, user: Any, *, name: str = "kubeconfig", **more: Any) -> Path:
    """A kubeconfig of one context in a file."""
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(document(cluster, user, **more)))
    return file
