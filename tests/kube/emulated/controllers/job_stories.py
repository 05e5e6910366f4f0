"""Lives of Jobs."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import (
    annotations_of,
    condition_of,
    is_terminal,
    name_of,
)
from mews.kube.api.resources import (
    JOBS,
    PODS,
)
from mews.kube.client.port import DeleteOptions
from mews.kube.emulated.controllers.job.indexes import IGNORED_FAILURES
from tests.kube.emulated.controllers.puppet import ENDS, ENDS_BY_INDEX, SLOW
from tests.kube.emulated.controllers.staging import Stage, template


def job(end: str | None, **spec: Any) -> dict[str, Any]:
    body = template("job", policy="Never", **({} if end is None else {ENDS: end}))
    del body["metadata"]["labels"]
    return {"spec": {"template": body, **spec}}


def ended(stage: Stage, kind: str) -> Callable[[], Awaitable[bool]]:
    async def holds() -> bool:
        return (condition_of(await stage.get(JOBS, "job"), kind) or {}).get("status") == "True"

    return holds


async def completes(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Succeeded", completions=4, parallelism=2))
    await stage.until("complete", ended(stage, "Complete"))


async def completes_by_index(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Succeeded", completions=3, parallelism=3, completionMode="Indexed"))
    await stage.until("complete", ended(stage, "Complete"))


async def fails(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Failed", backoffLimit=1))
    await stage.until("failed", ended(stage, "Failed"))


async def fails_by_rule(stage: Stage) -> None:
    rule = {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}}
    await stage.make(JOBS, "job", **job("Failed", backoffLimit=3, podFailurePolicy={"rules": [rule]}))
    await stage.until("failed", ended(stage, "Failed"))


async def runs_out_of_time(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job(None, parallelism=2, activeDeadlineSeconds=3))
    await stage.until("failed", ended(stage, "Failed"))


async def is_suspended(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job(None, parallelism=2, completions=2, suspend=True))
    await stage.until("born suspended", ended(stage, "Suspended"))
    await stage.change(JOBS, "job", {"spec": {"suspend": False}})
    await stage.until("running", lambda: stage.status(JOBS, "job", ready=2))
    await stage.change(JOBS, "job", {"spec": {"suspend": True}})
    await stage.until("suspended", ended(stage, "Suspended"))


async def is_not_kept(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Succeeded", ttlSecondsAfterFinished=1))

    async def gone() -> bool:
        return not await stage.all(JOBS) and not await stage.all(PODS)

    await stage.until("gone", gone)


def indexed(ends: Mapping[str, str], **spec: Any) -> dict[str, Any]:
    """A Job whose indexes end so; the others run on."""
    body = job(None, completionMode="Indexed", **spec)
    body["spec"]["template"]["metadata"] = {"annotations": {ENDS_BY_INDEX: json.dumps(ends)}}
    return body


async def fails_by_index(stage: Stage) -> None:
    ends = {"0": "Succeeded", "1": "Failed", "2": "Succeeded"}
    await stage.make(JOBS, "job", **indexed(ends, completions=3, parallelism=3, backoffLimitPerIndex=1))
    await stage.until("failed once", lambda: stage.status(JOBS, "job", succeeded=2, active=0))
    await stage.until("failed", ended(stage, "Failed"))


async def fails_in_too_many_indexes(stage: Stage) -> None:
    ends = dict.fromkeys("0123", "Failed")
    limits = {"backoffLimitPerIndex": 0, "maxFailedIndexes": 1}
    await stage.make(JOBS, "job", **indexed(ends, completions=4, parallelism=1, **limits))
    await stage.until("failed", ended(stage, "Failed"))


async def fails_an_index_by_rule(stage: Stage) -> None:
    rule = {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [1]}}
    body = indexed({"0": "Failed", "1": "Succeeded"}, completions=2, parallelism=1, backoffLimitPerIndex=3)
    body["spec"]["podFailurePolicy"] = {"rules": [rule]}
    await stage.make(JOBS, "job", **body)
    await stage.until("failed", ended(stage, "Failed"))


async def passes_over_failures(stage: Stage) -> None:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}
    body = indexed({"0": "Failed"}, completions=1, parallelism=1, backoffLimitPerIndex=0)
    body["spec"]["podFailurePolicy"] = {"rules": [rule]}
    await stage.make(JOBS, "job", **body)

    async def again() -> bool:
        counts = [annotations_of(pod).get(IGNORED_FAILURES) for pod in await stage.all(PODS) if is_terminal(pod)]
        return "1" in counts and await stage.status(JOBS, "job", active=0)

    await stage.until("again", again)


async def has_succeeded_enough(stage: Stage) -> None:
    rules = [{"succeededIndexes": "0,3"}, {"succeededIndexes": "1-2", "succeededCount": 1}]
    body = indexed({"2": "Succeeded"}, completions=4, parallelism=4, successPolicy={"rules": rules})
    await stage.make(JOBS, "job", **body)
    await stage.until("complete", ended(stage, "Complete"))


async def is_someone_elses(stage: Stage) -> None:
    await stage.make(JOBS, "job", **job("Succeeded", managedBy="example.com/other"))
    await stage.make(JOBS, "mine", **job("Succeeded", managedBy="kubernetes.io/job-controller"))
    await stage.until("left alone", lambda: stage.status(JOBS, "mine", succeeded=1))


async def replaces_what_has_ended(stage: Stage) -> None:
    body = job(None, podReplacementPolicy="Failed", backoffLimit=3)
    body["spec"]["template"]["metadata"] = {"annotations": {SLOW: "yes"}}
    await stage.make(JOBS, "job", **body)
    await stage.until("running", lambda: stage.status(JOBS, "job", ready=1))
    pod = name_of((await stage.all(PODS))[0])
    await stage.kube.delete(PODS, pod, namespace=stage.namespace, options=DeleteOptions(grace_period_s=30))
    await stage.until("going", lambda: stage.status(JOBS, "job", terminating=1, active=0))
    await stage.until("replaced", lambda: stage.status(JOBS, "job", failed=1, ready=1))


async def replaces_what_goes(stage: Stage) -> None:
    body = job(None, backoffLimit=3)
    body["spec"]["template"]["metadata"] = {"annotations": {SLOW: "yes"}}
    await stage.make(JOBS, "job", **body)
    await stage.until("running", lambda: stage.status(JOBS, "job", ready=1))
    pod = name_of((await stage.all(PODS))[0])
    await stage.kube.delete(PODS, pod, namespace=stage.namespace, options=DeleteOptions(grace_period_s=30))
    await stage.until("replaced", lambda: stage.status(JOBS, "job", failed=1, ready=1))


STORIES: Sequence[Callable[[Stage], Awaitable[None]]] = (
    *(completes, completes_by_index, fails, fails_by_rule, runs_out_of_time, is_suspended, is_not_kept),
    *(fails_by_index, fails_in_too_many_indexes, fails_an_index_by_rule, passes_over_failures, has_succeeded_enough),
    *(is_someone_elses, replaces_what_has_ended, replaces_what_goes),
)
