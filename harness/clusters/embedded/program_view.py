"""What a program in the place of ours finds on its machine: what a pod of that node would find.

* The variables ``KUBERNETES_SERVICE_HOST`` and so on, and the administrator's token in the folder of service accounts,
  so that ``rest.InClusterConfig`` of client-go works. An API in plain HTTP has none of them.
* On a node: the variables of ``mews env NODE`` (``LD_LIBRARY_PATH`` leads to its ``libnvidia-ml.so.1``), ``NODE_NAME``,
  and the kubelet's folder, with ``device-plugins`` and ``pod-resources``, at its fixed path.
* The files of ``mounts``.

The paths are mounts in a namespace of the program's own. Where this machine lets its users make none, only the
variables are there; ``mounts`` are refused then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from mews.harness.errors import RequirementError
from mews.harness.scenario.replacement import Replacement
from mews.kube.emulated.kubelet.in_cluster import FOLDER, service_variables, write_account
from mews.kube.emulated.kubelet.mount_namespace import Mounts, namespaces_lacking
from mews.own_files import write_own

KUBELET = "/var/lib/kubelet"
_NAMESPACE = "default"


class ProgramView(Struct, frozen=True):
    """What one program is given: variables, and what stands at which path."""

    env: Mapping[str, str]
    mounts: Mounts


def program_view(ready: Mapping[str, Any], authority: str | None, folder: Path, host: str | None = None) -> ProgramView:
    """Return that of a program on that node, or of one on none; ``folder`` takes its service account."""
    env: dict[str, str] = {}
    mounts: list[tuple[Path, str]] = []
    if authority is not None:
        env |= service_variables(str(ready["api"]))
        write_account(folder, token=_token(Path(ready["kubeconfig"])), authority=authority, namespace=_NAMESPACE)
        mounts.append((folder, FOLDER))
    if host is not None:
        node = ready["nodes"][host]
        env |= {**node["env"], "NODE_NAME": host}
        mounts.append((Path(node["device_plugins"]).parent, KUBELET))
    return ProgramView(env, () if namespaces_lacking() else tuple(mounts))


def _token(kubeconfig: Path) -> str:
    user = json.loads(kubeconfig.read_text(encoding="utf-8"))["users"][0]["user"]
    return str(user["token"])


def own_mounts(yours: Replacement, folder: Path, fill: Callable[[str], str]) -> Mounts:
    """Return the files of ``mounts``, their placeholders filled in, below that folder.

    Raises RequirementError where nothing can be mounted, or a file cannot be read.
    """
    if not yours.mounts:
        return ()
    lacking = namespaces_lacking()
    if lacking:
        raise RequirementError(f"{yours.where}.mounts: no user and mount namespace can be made here: {lacking}")
    found = []
    for number, (target, source) in enumerate(yours.mounts.items()):
        file = folder / str(number)
        try:
            write_own(file, fill(Path(source).read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise RequirementError(f"{yours.where}.mounts: {source}: {error}") from error
        found.append((file, target))
    return tuple(found)
