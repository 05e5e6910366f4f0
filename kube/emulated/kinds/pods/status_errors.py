"""What is wrong with the status of a pod that is written (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import addresses, common
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.feature_status_errors import extended_claim_errors, health_errors

_SYSTEM_CONDITIONS = ("PodScheduled", "Ready", "Initialized")
_LISTS = ("containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses")
_LAST_ID = 2**31 - 1
_NOT_AGAIN = "may not be transitioned to non-terminated state"
_NO_COUNT = "must be a non-negative integer"


def pod_status_errors(new: Object, old: Object) -> list[FieldError]:
    """Return what is wrong with a pod's status, of which an old one tells what may stay."""
    return list(_status_errors(part_of(new, "status"), part_of(old, "status"), new["spec"]))


def _status_errors(status: Part, before: Part, spec: Part) -> Iterator[FieldError]:
    yield from _condition_errors(items(status, "conditions"))
    nominated = status.get("nominatedNodeName", "")
    if nominated and nominated != before.get("nominatedNodeName", ""):
        yield from names.subdomain_errors("status.nominatedNodeName", nominated)
    if status.get("observedGeneration", 0) < 0:
        yield refusals.bad("status.observedGeneration", status["observedGeneration"], _NO_COUNT)
    yield from common.fixed("status.qosClass", status.get("qosClass", ""), before.get("qosClass", ""))
    for name in _LISTS:
        yield from _transition_errors(items(status, name), items(before, name), name, spec)
    yield from _claim_errors(items(status, "resourceClaimStatuses"), spec)
    yield from extended_claim_errors(status, spec)
    for name in ("initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"):
        yield from health_errors(items(status, name), f"status.{name}", ephemeral=name.startswith("ephemeral"))
    yield from _address_errors("podIPs", _pod_addresses(status), _pod_addresses(before))
    hosts = _addresses(status, "hostIPs")
    if hosts and status.get("hostIP", "") != hosts[0]:
        yield refusals.bad("status.hostIPs[0].ip", hosts[0], "must be equal to `hostIP`")
    yield from _address_errors("hostIPs", hosts, _addresses(before, "hostIPs"))
    if part_of(spec, "os").get("name", "linux") == "linux":
        for name in _LISTS:
            yield from _user_errors(items(status, name), f"status.{name}")


def _condition_errors(conditions: Sequence[Part]) -> Iterator[FieldError]:
    for index, condition in enumerate(conditions):
        path, kind = f"status.conditions[{index}]", (condition or {}).get("type", "")
        generation = (condition or {}).get("observedGeneration", 0)
        if generation < 0:
            yield refusals.bad(f"{path}.observedGeneration", generation, _NO_COUNT)
        if kind not in _SYSTEM_CONDITIONS:
            yield from names.qualified_errors(f"{path}.Type", kind)


def _transition_errors(given: Sequence[Part], before: Sequence[Part], name: str, spec: Part) -> Iterator[FieldError]:
    """Yield a container that has ended stays so, unless the pod's policy starts it again."""
    ended_again = {status.get("name", ""): status for status in given if status}
    for index, old in enumerate(before):
        ended = part_of(old, "state").get("terminated")
        new = ended_again.get(old.get("name", ""))
        if ended is None or new is None or part_of(new, "state").get("terminated") is not None:
            continue
        if name == _LISTS[2] or not _restarts(ended, old.get("name", ""), name, spec):
            yield refusals.forbidden_field(f"status.{name}[{index}].state", _NOT_AGAIN)


def _restarts(ended: Part, container: str, name: str, spec: Part) -> bool:
    policy = spec.get("restartPolicy", "Always")
    if policy == "Always" or (policy == "OnFailure" and ended.get("exitCode", 0) != 0):
        return True
    beside = [each for each in items(spec, "initContainers") if each.get("restartPolicy") == "Always"]
    return name == _LISTS[1] and any(each.get("name") == container for each in beside)


def _claim_errors(given: Sequence[Part], spec: Part) -> Iterator[FieldError]:
    known = [claim.get("name") for claim in items(spec, "resourceClaims")]
    seen: set[str] = set()
    for index, claim in enumerate(given):
        path, name = f"status.resourceClaimStatuses[{index}]", (claim or {}).get("name", "")
        if name not in known:
            text = "must match the name of an entry in `spec.resourceClaims`"
            yield refusals.bad(f"{path}.name", name, text)
        generated = (claim or {}).get("resourceClaimName")
        if generated is not None:
            yield from names.subdomain_errors(f"{path}.resourceClaimName", generated)
        if name in seen:
            yield refusals.duplicate(f"{path}.name", name)
        seen.add(name)


def _addresses(status: Part, name: str) -> list[str]:
    return [(entry or {}).get("ip", "") for entry in items(status, name)]


def _pod_addresses(status: Part) -> list[str]:
    """The one address wins over the list, where they differ."""
    one, several = status.get("podIP", ""), _addresses(status, "podIPs")
    return [one] if one and one != (several[0] if several else "") else several


def _address_errors(name: str, given: list[str], known: list[str]) -> Iterator[FieldError]:
    path = f"status.{name}"
    for index, address in enumerate(given):
        if address not in known:
            yield from addresses.address(f"{path}[{index}]", address)
    families = [addresses.family(address) for address in given]
    if len(given) > 2 or (len(given) == 2 and 0 not in families and families[0] == families[1]):
        shown: list[dict[str, Any]] = [{"IP": address} for address in given]
        yield refusals.bad(path, shown, "may specify no more than one IP for each IP family")


def _user_errors(statuses: Sequence[Part], path: str) -> Iterator[FieldError]:
    for index, status in enumerate(statuses):
        user, here = part_of(part_of(status or {}, "user"), "linux"), f"{path}[{index}].user.linux"
        ids = [(f"{here}.{name}", user.get(name, 0)) for name in ("uid", "gid")]
        groups = enumerate(items(user, "supplementalGroups"))
        for at, number in (*ids, *((f"{here}.supplementalGroups[{at}]", group or 0) for at, group in groups)):
            if not 0 <= number <= _LAST_ID:
                yield refusals.bad(at, number, f"must be between 0 and {_LAST_ID}, inclusive")
