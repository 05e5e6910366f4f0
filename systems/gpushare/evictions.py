"""Sending pods away from a GPU, by the eviction API and by its rules: never one that a budget protects."""

from __future__ import annotations

from collections.abc import Sequence

from mews.kube.api.errors import ApiError, NotFoundError, TooManyRequestsError
from mews.kube.api.objects import Object, is_deleting, key_of, labels_of, name_of, namespace_of, phase_of, uid_of
from mews.kube.api.resources import DISRUPTION_BUDGETS
from mews.kube.api.selectors import match_expressions
from mews.kube.client.port import DeleteOptions, KubeApi, Preconditions
from mews.kube.component import Context, record


def protection(pods: Sequence[Object], budgets: Sequence[Object]) -> str:
    """Return which of these pods a budget protects, given that all of them are to go; "" where none does.

    The eviction API looks at one pod at a time: asked so, it would let some go before it keeps the last.
    """
    left = {key_of(budget): _allowed(budget) for budget in budgets}
    for pod in pods:
        if is_deleting(pod) or phase_of(pod) == "Pending":
            continue
        for budget in budgets:
            if _covers(budget, pod):
                left[key_of(budget)] -= 1
                if left[key_of(budget)] < 0:
                    return f"{key_of(pod)} is protected by PodDisruptionBudget {name_of(budget)}"
    return ""


def _allowed(budget: Object) -> int:
    """Return how many of its pods may go; none while its numbers are older than itself."""
    status = budget.get("status") or {}
    current = int(status.get("observedGeneration", 0)) >= int(budget["metadata"].get("generation", 0))
    return int(status.get("disruptionsAllowed", 0)) if current else 0


def _covers(budget: Object, pod: Object) -> bool:
    selector = (budget.get("spec") or {}).get("selector")
    same = namespace_of(budget) == namespace_of(pod)
    return selector is not None and same and match_expressions(selector, labels_of(pod))


async def evict(context: Context, pods: Sequence[Object]) -> str:
    """Evict those that do not end already; why not, where one must stay, else "".

    Raises ApiError, UnavailableError.
    """
    going = [pod for pod in pods if not is_deleting(pod)]
    text = protection(going, await _budgets(context.kube, going))
    for pod in () if text else going:
        text = await _evict(context, pod)
        if text:
            break
    return text


async def _budgets(kube: KubeApi, pods: Sequence[Object]) -> list[Object]:
    found: list[Object] = []
    for namespace in sorted({namespace_of(pod) for pod in pods}):
        found += (await kube.list(DISRUPTION_BUDGETS, namespace=namespace)).items
    return found


async def _evict(context: Context, pod: Object) -> str:
    options = DeleteOptions(preconditions=Preconditions(uid=uid_of(pod)))
    try:
        await context.kube.evict(namespace_of(pod), name_of(pod), options=options)
    except NotFoundError:
        return ""
    except TooManyRequestsError as refusal:
        return f"{key_of(pod)} cannot be evicted: {_why(refusal)}"
    record(context.log, "evicted", pod=key_of(pod))
    return ""


def _why(refusal: ApiError) -> str:
    causes = refusal.details.get("causes") or ()
    texts = [str(cause["message"]) for cause in causes if cause.get("message")]
    return texts[0] if texts else str(refusal)
