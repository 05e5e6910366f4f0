"""Kubeconfigs: written for a run, and those that users bring."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mews.harness.errors import BadInputError
from mews.kube.client.kubeconfig.access import check_kubeconfig_context, contexts
from mews.kube.client.kubeconfig.errors import KubeconfigError
from mews.names import must_be
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
    """Raise BadInputError for a file of the user's that is no kubeconfig, or lacks the context: before anything is
    made."""
    try:
        known = contexts(str(path))
        if known and context is not None and context not in known:
            raise BadInputError(f"--context {context}: {must_be(context, known)}")
        check_kubeconfig_context(str(path), context)
    except KubeconfigError as error:
        raise BadInputError(f"--kubeconfig {error}") from None
