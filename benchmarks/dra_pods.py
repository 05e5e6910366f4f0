"""What a pod with a claim costs a virtual world, beside a pod that gets its GPU by a device plugin: CPU time a pod.

The same Job on hosts that have the GPUs for it, once with a claim template and the driver of ``stack.dra``, once with
the resource of the device plugin of ``stack.kubecomp``. What a world costs without pods is taken off.
"""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.common import in_turns, progress, report
from mews.harness.engine import Engine
from mews.harness.options import RunOptions
from mews.harness.scenario.loader import load_scenario

FEW, MANY = 2, 42
MOST_RATIO = 2.0
_TEMPLATE = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]}}
_CLASS = {"selectors": [{"cel": {"expression": "device.driver == 'gpu.nvidia.com'"}}]}


def _job(pods: int, *, with_claims: bool) -> dict[str, Any]:
    container: dict[str, Any] = {"name": "main", "image": "mews/train"}
    spec: dict[str, Any] = {"restartPolicy": "Never", "containers": [container]}
    if with_claims:
        spec["resourceClaims"] = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
        container["resources"] = {"claims": [{"name": "gpu"}]}
    else:
        container["resources"] = {"limits": {"falcon.com/gpu": "1"}}
    template = {"metadata": {"annotations": {"mews.dev/duration-s": "5"}}, "spec": spec}
    job = {"completions": pods, "parallelism": 2, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "work"}, "spec": job}


def _scenario(pods: int, *, with_claims: bool) -> dict[str, Any]:
    apply: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    if with_claims:
        steps.append({"wait": {"count": {"kind": "ResourceSlice", "is": 1}}, "timeout": "1m"})
        group = "resource.k8s.io/v1"
        named = {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": "gpu.nvidia.com"}, "spec": _CLASS}
        template = {"metadata": {"name": "one"}, "spec": {"spec": _TEMPLATE}}
        apply += [named, {"apiVersion": group, "kind": "ResourceClaimTemplate", **template}]
    else:
        steps.append({"wait": {"settled": {}}, "timeout": "2m"})
    apply.append(_job(pods, with_claims=with_claims))
    ended = {"kind": "Job", "metadata": {"name": "work"}, "status": {"succeeded": pods}}
    steps += [{"apply": apply}, {"wait": {"object": ended}, "timeout": "60m"}]
    stack: dict[str, Any] = {"kubecomp": None, "dra": {"nodes": ["n1"]}} if with_claims else {}
    hardware = "seed-001" if with_claims else "demo"
    head = {"apiVersion": "mews/v1", "kind": "Scenario", "metadata": {"name": "pods"}, "hardware": hardware}
    return {**head, "stack": stack, "steps": steps}


def _cost_s(pods: int, *, with_claims: bool) -> float:
    """CPU seconds of a world with so many pods."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pods.yaml"
        path.write_text(json.dumps(_scenario(pods, with_claims=with_claims)))
        scenario = load_scenario(path)
        begun_s = time.process_time()
        run = Engine(RunOptions()).run(scenario, 1)
        taken_s = time.process_time() - begun_s
    if run.result.verdict != "passed":
        raise RuntimeError(f"{'claims' if with_claims else 'device plugin'}: {run.result.reason}")
    return taken_s


def _of_a_pod(*, with_claims: bool) -> float:
    """Return milliseconds that one more pod costs."""
    few, many = (_cost_s(pods, with_claims=with_claims) for pods in (FEW, MANY))
    return 1000 * (many - few) / (MANY - FEW)


def main() -> None:
    """Both kinds of pods."""
    progress(f"a Job of {MANY} pods with one GPU each: by claim, and by device plugin")
    for with_claims in (True, False):
        _cost_s(FEW, with_claims=with_claims)  # what is imported once
    claims_ms, plugin_ms = in_turns(lambda: _of_a_pod(with_claims=True), lambda: _of_a_pod(with_claims=False))
    report("dra_pod", claims_ms, "ms of CPU", baseline=plugin_ms, baseline_name="a pod with a device plugin")
    report("dra_pod_ratio", claims_ms / plugin_ms, "", baseline=MOST_RATIO, baseline_name="target, at most")


if __name__ == "__main__":
    main()
