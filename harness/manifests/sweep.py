"""A sweep as an Indexed Job: each pod runs one shard of the seeds, and Kubernetes does the rest.

A pod whose scenarios fail has done its work: its index is failed and not tried again; bad input ends the whole Job; any
other end (an eviction, a lost node) is tried again, as often as ``backoff_per_index`` says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from mews.harness.manifests.parts import Object, config_map, config_volume, labels, metadata

COMPONENT_NAME = "sweep"
FOLDER = "/etc/mews-sweep"
"""Where pods find the scenarios."""
RESULTS = "/var/lib/mews-sweep"
"""Where they leave their results, one file per shard, where they have a claim."""
_FAILED, _BAD_INPUT, _LACKS = 1, 2, 3
"""Exit codes of ``mews run``."""


class SweepSpec(Struct, frozen=True):
    """``files``: name -> text of scenarios and of what they name beside them; ``scenarios`` are the names of those that
    run, ``words`` what else ``mews run`` is told. ``claim``: a PersistentVolumeClaim for results; None: pods' logs.
    ``folder``: where the files lie on every node, or in the image, already; None: a ConfigMap brings them."""

    name: str
    namespace: str
    image: str
    files: Mapping[str, str]
    scenarios: Sequence[str]
    words: Sequence[str]
    shards: int
    parallelism: int
    backoff_per_index: int = 3
    claim: str | None = None
    folder: str | None = None


def sweep_objects(spec: SweepSpec) -> list[Object]:
    """Return a ConfigMap with the files, unless they are there already, and the Job."""
    brought = [] if spec.folder is not None else [config_map(spec.name, COMPONENT_NAME, spec.namespace, spec.files)]
    return [*brought, _job(spec)]


def _job(spec: SweepSpec) -> Object:
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(spec.name, COMPONENT_NAME, spec.namespace),
        "spec": {
            "completionMode": "Indexed",
            "completions": spec.shards,
            "parallelism": spec.parallelism,
            "backoffLimitPerIndex": spec.backoff_per_index,
            "maxFailedIndexes": spec.shards,
            "podFailurePolicy": {
                "rules": [_on_exit("FailJob", _BAD_INPUT, _LACKS), _on_exit("FailIndex", _FAILED)],
            },
            "template": {"metadata": {"labels": labels(COMPONENT_NAME)}, "spec": _pod(spec)},
        },
    }


def _on_exit(action: str, *codes: int) -> Object:
    return {
        "action": action,
        "onExitCodes": {"containerName": COMPONENT_NAME, "operator": "In", "values": list(codes)},
    }


def _pod(spec: SweepSpec) -> Object:
    paths = [f"{spec.folder or FOLDER}/{name}" for name in spec.scenarios]
    # Kubernetes puts the index in place of the variable, which the process has as well.
    results = ["-"] if spec.claim is None else [f"{RESULTS}/$(JOB_COMPLETION_INDEX).jsonl", "--resume"]
    argv = ["run", *paths, *spec.words, "--shard", f"index/{spec.shards}", "--results", *results]
    pod: Object = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "containers": [
            {
                "name": COMPONENT_NAME,
                "image": spec.image,
                "workingDir": "/tmp",
                "command": ["python3", "-m", "mews.harness.cli", *argv],
                "volumeMounts": [],
            }
        ],
        "volumes": [],
    }
    if spec.folder is None:
        pod["containers"][0]["volumeMounts"].append({"name": "config", "mountPath": FOLDER, "readOnly": True})
        pod["volumes"].append(config_volume(spec.name))
    if spec.claim is not None:
        pod["containers"][0]["volumeMounts"].append({"name": "results", "mountPath": RESULTS})
        pod["volumes"].append({"name": "results", "persistentVolumeClaim": {"claimName": spec.claim}})
    return pod
