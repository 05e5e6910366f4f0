"""Certificate requests: who asks is written by the server, and when they were decided.

Source: k8s.io/kubernetes/pkg/registry/certificates/certificates/strategy.go.
"""

from __future__ import annotations

from mews.kube.api.objects import Object, clone
from mews.kube.emulated.apiserver.objects.rules.base import Rules
from mews.kube.emulated.apiserver.store.users import User

_IDENTITY = ("username", "uid", "groups", "extra")


def _author(request: Object, user: User) -> None:
    """What it says of its author itself does not count."""
    spec = {name: value for name, value in request["spec"].items() if name not in _IDENTITY}
    request["spec"] = {**spec, **user.info()}


def _inherit(new: Object, old: Object) -> None:
    new["spec"] = clone(old["spec"])


def _stamp(new: Object, old: Object, now: str) -> None:
    """Conditions that do not say since when they hold have held for as long as the old one of that status."""
    known = {(each.get("type"), each.get("status")): each for each in (old.get("status") or {}).get("conditions") or ()}
    for condition in (new.get("status") or {}).get("conditions") or ():
        before = known.get((condition.get("type"), condition.get("status")), {})
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        since = condition.get("lastTransitionTime") or before.get("lastTransitionTime")
        condition["lastTransitionTime"] = since or now


RULES = Rules(author=_author, inherit=_inherit, stamp=_stamp)
