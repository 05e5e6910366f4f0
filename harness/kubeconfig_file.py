"""Kubeconfigs: written for a run, and those that users bring."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mews.emulator.yaml_document import DocumentError, read_document
from mews.harness.errors import BadInput, unreadable
from mews.own_files import make_own_folder, write_own


def write_kubeconfig(path: Path, *, server: Mapping[str, Any], user: Mapping[str, Any]) -> None:
    """A kubeconfig of one context, readable by its owner alone."""
    make_own_folder(path.parent)
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "mews", "cluster": dict(server)}],
        "users": [{"name": "admin", "user": dict(user)}],
        "contexts": [{"name": "mews", "context": {"cluster": "mews", "user": "admin"}}],
        "current-context": "mews",
    }
    write_own(path, json.dumps(content, indent=2) + "\n")


def check_kubeconfig(path: Path, context: str | None) -> None:
    """Raise BadInput for a file of the user's that is no kubeconfig, or lacks the context: before anything is made."""
    try:
        document = read_document(path.read_text(encoding="utf-8"), f"--kubeconfig {path}").value
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"--kubeconfig {unreadable(path, error)}") from None
    except DocumentError as error:
        raise BadInput(str(error)) from None
    parts = document if isinstance(document, dict) else {}
    contexts = parts.get("contexts")
    if not isinstance(contexts, list) or not all(isinstance(each, dict) and each.get("name") for each in contexts):
        raise BadInput(f"--kubeconfig {path}: is not a kubeconfig: contexts must be a list of contexts with names")
    names = [str(each["name"]) for each in contexts]
    if context is not None and context not in names:
        raise BadInput(
            f"--context {context}: must be one of {', '.join(names) or 'none: the kubeconfig has no context'}"
        )
    current = parts.get("current-context")
    if context is None and current not in names:
        there = ", ".join(names) or "(none)"
        raise BadInput(f"--kubeconfig {path}: current-context: {current!r}: must be one of {there}, or give --context")
