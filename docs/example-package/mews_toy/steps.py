"""A step and a check: ``toy-pods: {count: 2}`` creates pods, ``toy-marked: NAME`` looks for a mark."""

from pydantic import BaseModel, ConfigDict, Field

from mews.harness.scenario.extension import CheckKind, StepKind
from mews.harness.scenario.step_context import Finding
from mews.kube.api.errors import NotFoundError
from mews.kube.api.objects import annotations_of
from mews.kube.api.resources import PODS
from mews_toy.invariant import MARK


class Pods(BaseModel):
    """What stands after the step's name in the file."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    count: int = Field(ge=1)
    image: str = "registry.k8s.io/pause:3.10"


async def _create(stage, pods, timeout_s):
    for number in range(pods.count):
        spec = {"restartPolicy": "Never", "containers": [{"name": "main", "image": pods.image}]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"toy-{number}"}, "spec": spec}
        await stage.cluster.kube.create(PODS, pod, namespace="default")


async def _marked(stage, name):
    awaited = f"pod {name} to be marked"
    try:
        pod = await stage.cluster.kube.get(PODS, name, namespace="default")
    except NotFoundError:
        return Finding(False, awaited, "there is none")
    return Finding(MARK in annotations_of(pod), awaited, "it is not", (f"pod/default/{name}",))


PODS_STEP = StepKind(Pods, _create)
MARKED_CHECK = CheckKind(str, _marked)
