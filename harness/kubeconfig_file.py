"""Files that hold tokens: a kubeconfig, and anything else that its owner alone may read."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def write_kubeconfig(path: Path, *, server: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    """A kubeconfig of one context, readable by its owner alone."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "mews", "cluster": dict(server)}],
        "users": [{"name": "admin", "user": dict(user)}],
        "contexts": [{"name": "mews", "context": {"cluster": "mews", "user": "admin"}}],
        "current-context": "mews",
    }
    write_own(path, json.dumps(content, indent=2) + "\n")


def write_own(path: Path, text: str) -> None:
    """Write a file that its owner alone may read, also where it was there before."""
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
