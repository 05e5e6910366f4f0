"""What ``mews simulate SCENARIO`` does with each key of the scenario: a trace has jobs, machines and a policy, and all
else that would change its numbers is refused."""

from __future__ import annotations

from collections.abc import Mapping

from mews.harness.scenario.accounts.account import HONOURED, KeyAccount, KeyRule, harmless, ignored, refused
from mews.harness.scenario.model import Scenario
from mews.kube.system.simulation import TracePolicy
from mews.systems import registry

_NOT_JUDGED = ignored("nothing is judged here: mews run judges")
_NO_POD = "jobs of a trace have no pods"
_OF_A_CLUSTER = harmless("said of clusters; a trace has the machines of its hardware file")
_READ = harmless("names and texts, put in place as the file is read")
_NO_LIMIT = harmless("nothing waits for long in a trace")

_FIXED: Mapping[str, KeyRule] = {
    **dict.fromkeys(("apiVersion", "kind", "metadata.**", "bindings.**", "templates.**"), _READ),
    **dict.fromkeys(("hardware", "seed", "stack.profile"), HONOURED),
    **dict.fromkeys(("timeout", "stepTimeout", "steps.*.timeout"), _NO_LIMIT),
    **dict.fromkeys(("bounds.**", "metrics.**", "invariants", "expects"), _NOT_JUDGED),
    "requires.**": _OF_A_CLUSTER,
    "objects": refused("a trace has no API to apply them to"),
    "images": refused(f"{_NO_POD}; they last as long as the trace says"),
    "unknownImages": harmless(_NO_POD),
    "stack.dialect": refused("the chassis of a trace are asked in no dialect"),
    "stack.storage": harmless("jobs of a trace have no claims"),
    "stack.controllers.**": harmless("no controller makes or changes jobs of a trace"),
    "stack.kubelet.**": refused("no kubelet runs in a trace"),
    **dict.fromkeys(
        ("stack.kubernetes", "stack.featureGates.**", "stack.runtimeConfig.**"), harmless("a trace has no API")
    ),
    "stack.metrics": harmless("no policy asks for pods' use"),
    "stack.replace.**": refused("programs and plugins of yours place no jobs of a trace"),
    "stack.extenders.**": refused("no extender is asked in a trace"),
    **dict.fromkeys(
        ("workload.trace", "workload.select", "workload.types.**", "workload.duration", "workload.durationPerGpu"),
        HONOURED,
    ),
    **dict.fromkeys(("workload.gate.pending", "workload.gate.every"), HONOURED),
    "workload.jobs.**": refused("jobs come from a file here: name it in workload.trace"),
    "workload.pod.schedulerName": HONOURED,
    "workload.pod.namespace": harmless("names change no result"),
    "workload.pod.labels": ignored(_NO_POD),
    **dict.fromkeys(
        ("workload.pod.image", "workload.pod.command", "workload.pod.annotations"),
        refused(f"{_NO_POD}; they last as long as the trace says"),
    ),
    "workload.pod.priorityClassName": refused("all jobs of a trace have one priority"),
    "steps.*.name": harmless("names change no result"),
    "steps.*.outputs.**": harmless("no later step uses it"),
    "steps.*.workload": HONOURED,
    "steps.*.wait.*.settled.**": HONOURED,
    "steps.*.*.**": refused("a trace has no steps but the workload's"),
    "disruptions.**": refused("a trace has no steps but the workload's"),
    **dict.fromkeys(("tail", "quiet", "judgedBy"), _NOT_JUDGED),
    "order": harmless("jobs of a trace come in the order of its lines"),
    **dict.fromkeys(("catch.**", "finally.**"), ignored("a trace has no steps but the workload's")),
}


def account_of(scenario: Scenario, policy: TracePolicy | None, system: str | None, chosen: str | None) -> KeyAccount:
    """Return the rules. ``policy`` places the scenario's jobs, of the ``system`` of its stack, None for the default
    scheduler; ``chosen`` is ``--policy`` where it names others."""
    rules = {**_FIXED, "workload.pod.resource": _resource(scenario)}
    rules |= _default_scheduler(system, chosen)
    for name in (*scenario.stack.systems, *registry.DEFAULT):
        rules[f"stack.{name}.**"] = _other(name, system, chosen)
    if policy is not None and system is not None and chosen is None:
        rules |= _of_policy(policy, system)
    return KeyAccount("mews simulate", rules)


def _resource(scenario: Scenario) -> KeyRule:
    pooled = scenario.stack.pooled
    whole = () if pooled is None else (pooled.resource,)
    return refused(
        f"jobs of a trace ask for whole devices of the pool ({', '.join(whole) or 'there is none'})", but=whole
    )


def _of_policy(policy: TracePolicy, system: str) -> dict[str, KeyRule]:
    return {
        f"stack.{system}.**": refused(f"no part of what --policy {policy.name} plays"),
        **{f"stack.{system}.{key}": HONOURED for key in policy.honours},
        **{f"stack.{system}.{key}": harmless(why) for key, why in policy.indifferent.items()},
    }


def _default_scheduler(system: str | None, chosen: str | None) -> dict[str, KeyRule]:
    if chosen is not None:
        return {"stack.defaultScheduler.**": _chosen(chosen)}
    if system is not None:
        return {"stack.defaultScheduler.**": harmless("it places none of these jobs")}
    return {
        "stack.defaultScheduler.ignoredResourceGroups": harmless("every node has what its policy counts"),
        "stack.defaultScheduler.**": refused("--policy default has the scores of an unchanged kube-scheduler"),
    }


def _other(name: str, system: str | None, chosen: str | None) -> KeyRule:
    """Return what is said of a system whose policy does not place the jobs. Where the user wants another policy than
    the stack's, it is named and does not count."""
    if chosen is not None:
        return _chosen(chosen)
    if system is None and name in registry.DEFAULT:
        return harmless("it places none of these jobs, and moves nothing for them")
    return refused(f"no part of what --policy {system or 'default'} plays")


def _chosen(chosen: str) -> KeyRule:
    return ignored(f"--policy {chosen} is played")
