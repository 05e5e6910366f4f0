"""The default scheduler of a kind cluster: a static pod, whose manifest on the control plane's node is changed for
extenders, taken away to keep it down, and put back. Blocking."""

from __future__ import annotations

import base64
import copy
import json
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from mews.harness.clusters.kind.tools import call
from mews.harness.errors import RequirementError
from mews.harness.manifests.kube_scheduler import configuration
from mews.kube.api.objects import condition_of, is_deleting
from mews.yaml_text import written_yaml

_FOLDER = "/etc/kubernetes"
_MANIFEST = f"{_FOLDER}/manifests/kube-scheduler.yaml"
_HELD = f"{_FOLDER}/kube-scheduler.held"
_PLAIN = f"{_FOLDER}/kube-scheduler.plain"
CONFIG = f"{_FOLDER}/kube-scheduler-extenders.yaml"
_KUBECONFIG = f"{_FOLDER}/scheduler.conf"
_OVERRULED = ("--kubeconfig=", "--leader-elect=", "--config=")
"""Flags that the configuration file speaks for."""

_DOWN = f"test -e {_HELD} || mv {_MANIFEST} {_HELD}; pkill -KILL -x kube-scheduler; true"
_UP = f"test ! -e {_HELD} || mv {_HELD} {_MANIFEST}"
_BACK = f"if test -e {_PLAIN}; then mv {_PLAIN} {_MANIFEST}; rm -f {_HELD} {CONFIG}; fi; {_UP}"
_POD = ("kubectl", "--kubeconfig", f"{_FOLDER}/admin.conf", "--namespace", "kube-system", "get", "pods")
_READY_S = 90.0
_LOOK_S = 0.25


class DefaultScheduler:
    """That of one kind cluster; ``node`` is the container that is the control plane's. All methods raise
    RequirementError."""

    def __init__(self, node: str) -> None:
        self._node = node

    def kill(self) -> None:
        """Kill -9, and keep it down."""
        self._sh(_DOWN)

    def start(self) -> None:
        """As it was when it was killed."""
        self._sh(_UP)

    def plain(self) -> None:
        """Running as kind made it, or about to."""
        self._sh(_BACK)

    def extend(self, settings: Sequence[Mapping[str, Any]]) -> None:
        """Let a plain one have these extenders."""
        manifest = yaml.safe_load(self._sh(f"cat {_MANIFEST}"))
        config = json.dumps(configuration(_KUBECONFIG, settings))
        there = f"{_FOLDER}/kube-scheduler.new"
        self._sh(
            f"{_writing(CONFIG, config)} && chmod 600 {CONFIG} && {_writing(there, written_yaml(extended(manifest)))}"
            f" && chmod 600 {there} && cp -p {_MANIFEST} {_PLAIN} && mv {there} {_MANIFEST}"
        )

    def ready(self, *, with_extenders: bool) -> None:
        """Wait until one that has extenders, or one that has none, is ready."""
        pause = threading.Event()
        for _ in range(int(_READY_S / _LOOK_S)):
            if self._is_ready(with_extenders):
                return
            pause.wait(_LOOK_S)
        words = "with its extenders" if with_extenders else "as kind made it"
        raise RequirementError(
            f"the default scheduler was not ready {words} within {_READY_S:g} s: {self._last_words()}"
        )

    def _is_ready(self, with_extenders: bool) -> bool:
        argv = ["docker", "exec", self._node, *_POD, "--selector", "component=kube-scheduler", "--output", "json"]
        pods = json.loads(call(argv))["items"]
        return bool(pods) and all(is_ready(pod, with_extenders) for pod in pods)

    def _last_words(self) -> str:
        output = self._sh(
            "tail -qn 1 /var/log/pods/kube-system_kube-scheduler-*/kube-scheduler/*.log 2>/dev/null; true"
        )
        return " ".join((output.strip().splitlines() or ["it said nothing"])[-1].split())

    def _sh(self, script: str) -> str:
        return call(["docker", "exec", self._node, "sh", "-c", script])


def _writing(path: str, text: str) -> str:
    return f"echo {base64.b64encode(text.encode()).decode()} | base64 -d > {path}"


def extended(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """kube-scheduler's static pod, with the configuration file that has the extenders."""
    made: dict[str, Any] = copy.deepcopy(dict(manifest))
    container = made["spec"]["containers"][0]
    kept = [word for word in container["command"] if not word.startswith(_OVERRULED)]
    container["command"] = [*kept, f"--config={CONFIG}"]
    container["volumeMounts"].append({"name": "extenders", "mountPath": CONFIG, "readOnly": True})
    made["spec"]["volumes"].append({"name": "extenders", "hostPath": {"path": CONFIG, "type": "File"}})
    return made


def is_ready(pod: Mapping[str, Any], with_extenders: bool) -> bool:
    """Return whether that pod is one of the kind that is awaited, and ready."""
    has = f"--config={CONFIG}" in pod["spec"]["containers"][0]["command"]
    ready = (condition_of(pod, "Ready") or {}).get("status") == "True"
    return has is with_extenders and ready and not is_deleting(pod)
