"""Resource claims in a run's journal. Pure.

The lines of layer ``api`` that everybody may rely on, in addition to the lines of every run
(``mews.harness.journal``)::

    actor              event            fields
    claim/default/c    claim-allocated  claim, uid, devices [driver/pool/device], alone [those that no other claim may
                                        have]
                       claim-reserved   claim, uid, pods [name]
                       claim-freed      claim, uid
"""

from __future__ import annotations

from collections.abc import Iterator

from mews.kube.api.objects import Object, key_of, uid_of
from mews.kube.api.resource_claims import allocation_of, consumers_of, results_of
from mews.kube.system.system import KindLine

ALLOCATED, RESERVED, FREED = "claim-allocated", "claim-reserved", "claim-freed"


def claim_news(old: Object | None, new: Object | None) -> Iterator[KindLine]:
    """Yield lines for a claim that gets devices or pods, or loses its devices."""
    claim = new or old
    if claim is None:
        return
    actor, named = f"claim/{key_of(claim)}", {"claim": key_of(claim), "uid": uid_of(claim)}
    was = old is not None and allocation_of(old) is not None
    now = new is not None and allocation_of(new) is not None
    if was and not now:
        yield actor, FREED, named
    if new is not None and now and not was:
        results = results_of(new)
        names = [f"{each['driver']}/{each['pool']}/{each['device']}" for each in results]
        alone = [
            name
            for name, each in zip(names, results, strict=True)
            if not each.get("adminAccess") and not each.get("shareID")
        ]
        yield actor, ALLOCATED, {**named, "devices": names, "alone": alone}
    before, after = _pods(old), _pods(new)
    if after and before != after:
        yield actor, RESERVED, {**named, "pods": after}


def _pods(claim: Object | None) -> list[str]:
    return sorted(str(each["name"]) for each in consumers_of(claim or {}))
