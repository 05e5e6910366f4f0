"""Which names of a CustomResourceDefinition are accepted, and the conditions that follow.

Source: k8s.io/apiextensions-apiserver/pkg/controller (status, establish, apiapproval).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, clone
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import EVERYTHING
from mews.kube.emulated.packs.definitions.definition_errors import approval

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

_APPROVAL_REASONS = {
    "Missing": "MissingAnnotation",
    "Invalid": "InvalidAnnotation",
    "Approved": "ApprovedAnnotation",
    "Unapproved": "UnapprovedAnnotation",
}


def status(store: Store, kind: Kind, crd: Object) -> Object:
    """Return the status that a definition has now: accepted names and conditions; what else it has stays."""
    wanted, before = crd["spec"].get("names") or {}, crd.get("status") or {}
    accepted, reason, text = _accepted(wanted, before.get("acceptedNames") or {}, *_taken(store, kind, crd))
    conditions = {one["type"]: one for one in before.get("conditions") or ()}
    now = store.timestamp()
    _set(conditions, "NamesAccepted", (not reason, reason or "NoConflicts", text or "no conflicts found"), now)
    if conditions.get("Established", {}).get("status") != "True":
        if reason:
            _set(conditions, "Established", (False, "NotAccepted", "not all names are accepted"), now)
        else:
            given_state = (True, "InitialNamesAccepted", "the initial names have been accepted")
            _set(conditions, "Established", given_state, now)
    if (state := approval(crd)) is not None:
        given_state = (state[0] == "Approved", _APPROVAL_REASONS[state[0]], state[1])
        _set(conditions, "KubernetesAPIApprovalPolicyConformant", given_state, now)
    return {**before, "conditions": [*conditions.values()], "acceptedNames": accepted}


def _set(conditions: dict[str, dict[str, str]], kind: str, given_state: tuple[bool, str, str], now: str) -> None:
    state, known = str(given_state[0]), conditions.get(kind)
    since = known["lastTransitionTime"] if known is not None and known["status"] == state else now
    conditions[kind] = {
        "type": kind,
        "status": state,
        "lastTransitionTime": since,
        "reason": given_state[1],
        "message": given_state[2],
    }


def is_established(crd: Mapping[str, Any]) -> bool:
    """Return whether the kinds of a definition are served."""
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def accepted_of(crd: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the names under which a definition's kinds are known."""
    given = (crd.get("status") or {}).get("acceptedNames")
    return given if isinstance(given, Mapping) else {}


def _taken(store: Store, kind: Kind, crd: Object) -> tuple[set[str], set[str]]:
    """Return the resource names and the kinds that the group has given away; a definition's own names count too."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others(store, kind, crd):
        given = (other.get("status") or {}).get("acceptedNames") or {}
        resources |= {given.get("plural", ""), given.get("singular", ""), *(given.get("shortNames") or ())}
        kinds |= {given.get("kind", ""), given.get("listKind", "")}
    return resources, kinds


def others(store: Store, kind: Kind, crd: Object) -> Iterator[Object]:
    """Yield the other definitions of the group."""
    for other in store.list(kind, EVERYTHING).items:
        if other["spec"]["group"] == crd["spec"].get("group") and other["metadata"]["name"] != crd["metadata"]["name"]:
            yield other


def _accepted(
    wanted: Mapping[str, Any], before: Mapping[str, Any], resources: set[str], kinds: set[str]
) -> tuple[dict[str, Any], str, str]:
    """Return the names that are accepted, and the reason and the text of the last conflict, "" when there is none."""
    found, reason, text = dict(before), "", ""
    for key, used in (("plural", resources), ("singular", resources)):
        reason, text = _take(found, wanted, key, used) or (reason, text)
    short = list(wanted.get("shortNames") or ())
    if short != list(before.get("shortNames") or ()):
        clashes = [name for name in short if name not in (before.get("shortNames") or ()) and name in resources]
        if clashes:
            texts = list(dict.fromkeys(f'"{name}" is already in use' for name in clashes))
            reason, text = "ShortNamesConflict", texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
        else:
            found["shortNames"] = short
    for key, used in (("kind", kinds), ("listKind", kinds)):
        reason, text = _take(found, wanted, key, used) or (reason, text)
    found["categories"] = list(wanted.get("categories") or ())
    return named(found), reason, text


def _take(found: dict[str, Any], wanted: Mapping[str, Any], key: str, used: set[str]) -> tuple[str, str] | None:
    name = wanted.get(key, "")
    if name == found.get(key, "") or name not in used:
        found[key] = name
        return None
    return f"{key[0].upper()}{key[1:]}Conflict", f'"{name}" is already in use'


def named(found: Mapping[str, Any]) -> dict[str, Any]:
    """Return them as Go writes names: plural and kind always, the rest when there is something."""
    shown: dict[str, Any] = {"plural": found.get("plural", "")}
    for key in ("singular", "shortNames"):
        if found.get(key):
            shown[key] = found[key]
    shown["kind"] = found.get("kind", "")
    for key in ("listKind", "categories"):
        if found.get(key):
            shown[key] = found[key]
    return shown


def settle(store: Store, kind: Kind, crd: Object) -> Object:
    """Return the definition with the status that its names have now, stored when that is another."""
    new = clone(crd)
    new["status"] = status(store, kind, crd)
    if new == crd:
        return crd
    return store.commit(kind, ("", crd["metadata"]["name"]), new)
