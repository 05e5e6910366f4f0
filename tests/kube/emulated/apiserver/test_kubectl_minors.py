"""Several minors of kubectl against the embedded API: each does the same, and says the same.

``MEWS_KUBECTLS`` names further kubectls than the one that all tests use (paths, as in PATH).
"""

from __future__ import annotations

import asyncio
import os
import re
from pathlib import Path

import pytest

from mews.harness.clusters.programs.finding import find
from tests.kube.emulated.apiserver.real_parts import ClusterAdmin, ground

KUBECTLS = [path for path in (find("kubectl"), *os.environ.get("MEWS_KUBECTLS", "").split(os.pathsep)) if path]
pytestmark = [
    pytest.mark.wall,
    pytest.mark.skipif(len(KUBECTLS) < 2, reason="MEWS_KUBECTLS names no second kubectl"),
]
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: "nginx:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: a, labels: {app: one}}
spec: {containers: [{name: c, image: "busybox:1"}]}
"""
COMMANDS = (
    "create namespace n",
    "-n n apply -f manifest.yaml",
    "-n n apply -f manifest.yaml",
    "-n n apply --server-side --force-conflicts -f manifest.yaml",
    "-n n get pods,deployments",
    "-n n get pod a -o jsonpath={.spec.containers[0].image}",
    "-n n scale deployment web --replicas=3",
    "-n n set image deployment/web c=nginx:2",
    "-n n get deployment web -o jsonpath={.spec.replicas},{.spec.template.spec.containers[0].image}",
    "-n n label pod a tier=front",
    "-n n annotate pod a note=yes",
    """-n n patch pod a -p {"metadata":{"labels":{"app":"two"}}}""",
    "-n n get pods --show-labels -l app=two",
    "-n n create configmap c --from-literal=k=v",
    "-n n create secret generic s --from-literal=k=v",
    "-n n get configmap c -o yaml",
    "-n n describe pod a",
    "-n n wait --for=delete pod/nobody --timeout=1s",
    "-n n create -f manifest.yaml",
    "-n n get nothing",
    "auth can-i create pods -n n",
    "explain pod.spec.containers.image",
    "api-resources --api-group=batch -o name",
    "-n n delete pod a --wait=true --timeout=20s",
    "-n n diff -f manifest.yaml",
    "delete namespace n --wait=true --timeout=20s",
)
_VOLATILE = (
    (re.compile(r"\b\d+(s|ms)\b"), "<age>"),
    (re.compile(r"[0-9a-f]{8}-[0-9a-f-]{27}"), "<uid>"),
    (re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+Z"), "<time>"),
    (re.compile(r'resourceVersion: "\d+"'), "<version>"),
    (re.compile(r"(LIVE|MERGED)-\d+"), "<folder>"),
    (re.compile(r" from \S+ namespace$", re.MULTILINE), ""),  # said from 1.34 on
    (re.compile(r"^(diff -u|---|\+\+\+) .*$", re.MULTILINE), "<files>"),
)


async def said(on: ClusterAdmin, kubectl: str) -> list[tuple[str, int, str]]:
    (on.folder / "manifest.yaml").write_text(MANIFEST)
    environment = {"HOME": str(on.folder), "KUBECONFIG": str(on.kubeconfig), "PATH": os.defpath}
    answers = []
    for command in COMMANDS:
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            kubectl, *command.split(" "), stdout=pipe, stderr=asyncio.subprocess.STDOUT, env=environment, cwd=on.folder
        )
        out, _ = await asyncio.wait_for(process.communicate(), 90)
        text = out.decode()
        for pattern, word in _VOLATILE:
            text = pattern.sub(word, text)
        assert process.returncode is not None
        answers.append((command, process.returncode, re.sub(r" +", " ", text)))
    return answers


def test_all_kubectls_do_and_say_the_same(tmp_path: Path) -> None:
    async def main() -> list[list[tuple[str, int, str]]]:
        answers = []
        for number, kubectl in enumerate(KUBECTLS):
            folder = tmp_path / str(number)
            folder.mkdir()
            async with ground(folder) as on:
                answers.append(await said(on, kubectl))
        return answers

    first, *others = asyncio.run(main())
    failed = {command for command, code, _ in first if code != 0}
    assert failed == {"-n n create -f manifest.yaml", "-n n get nothing", "-n n diff -f manifest.yaml"}
    for other in others:
        assert other == first
