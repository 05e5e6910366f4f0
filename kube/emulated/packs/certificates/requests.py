"""Certificate requests: who asks is written by the server, and when they were decided.

Source: k8s.io/kubernetes/pkg/registry/certificates/certificates/strategy.go, pkg/apis/certificates/validation.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from typing import Any

from mews.kube.api.objects import Object, clone
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks, anyhow_named
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of
from mews.kube.emulated.core.tables.durations import human
from mews.kube.emulated.kinds.pods.pod_volume_errors import signer_errors

_SHORTEST_CERTIFICATE_S = 600
_USAGES = (
    "any", "cert sign", "client auth", "code signing", "content commitment", "crl sign", "data encipherment",
    "decipher only", "digital signature", "email protection", "encipher only", "ipsec end system", "ipsec tunnel",
    "ipsec user", "key agreement", "key encipherment", "microsoft sgc", "netscape sgc", "ocsp signing", "s/mime",
    "server auth", "signing", "timestamping",
)  # fmt: skip
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_DECISIONS = ("Approved", "Denied")
_BLOCK = re.compile(rb"-----BEGIN ([^\n-]*)-----\r?\n(.*?)-----END \1-----", re.DOTALL)
_IDENTITY = ("username", "uid", "groups", "extra")


def _prepare_create(request: Object, user: User) -> None:
    """What it says of its author itself does not count."""
    spec = {name: value for name, value in request["spec"].items() if name not in _IDENTITY}
    request["spec"] = {**spec, **user.info()}


def _prepare_update(new: Object, old: Object) -> None:
    new["spec"] = clone(old["spec"])


def _stamp_update(new: Object, old: Object, now: str) -> None:
    """Conditions that do not say since when they hold have held for as long as the old one of that status."""
    known = {(each.get("type"), each.get("status")): each for each in (old.get("status") or {}).get("conditions") or ()}
    for condition in (new.get("status") or {}).get("conditions") or ():
        before = known.get((condition.get("type"), condition.get("status")), {})
        condition["lastUpdateTime"] = condition.get("lastUpdateTime") or now
        since = condition.get("lastTransitionTime") or before.get("lastTransitionTime")
        condition["lastTransitionTime"] = since or now


def _errors(request: Object) -> list[FieldError]:
    return [*_whole_errors(request, None)]


# Complex: upstream's order of errors, which clients see.
def _whole_errors(request: Object, old: Object | None) -> Iterator[FieldError]:  # noqa: C901
    """Yield what is wrong with a request; what an old one has is let be."""
    spec, before = part_of(request, "spec"), part_of(old or {}, "spec")
    given = spec.get("request") or ""
    if _types(given)[:1] != ["CERTIFICATE REQUEST"]:
        yield refusals.bad("spec.request", given or None, "PEM block type must be CERTIFICATE REQUEST")
    usages, known = items(spec, "usages"), items(before, "usages")
    if not usages:
        yield refusals.required("spec.usages")
    if all(usage in _USAGES for usage in known):
        for index, usage in enumerate(usages):
            if usage not in _USAGES:
                yield refusals.unsupported(f"spec.usages[{index}]", usage, _USAGES)
    if len({*known}) == len(known):
        for index, usage in enumerate(usages):
            if usage in usages[:index]:
                yield refusals.duplicate(f"spec.usages[{index}]", usage)
    signer = spec.get("signerName", "")
    if signer == _LEGACY_SIGNER != before.get("signerName"):
        yield refusals.bad("spec.signerName", signer, "the legacy signerName is not allowed via this API version")
    else:
        yield from signer_errors(signer, "spec.signerName")
    lifetime = spec.get("expirationSeconds")
    if lifetime is not None and lifetime < _SHORTEST_CERTIFICATE_S:
        text = "may not specify a duration less than 600 seconds (10 minutes)"
        yield refusals.bad("spec.expirationSeconds", lifetime, text)
    yield from _condition_errors(_conditions(request), _conditions(old or {}))
    certificate, former = _certificate(request), _certificate(old or {})
    is_new = certificate and certificate != former and not (former and _certificate_error(former))
    if is_new and (text := _certificate_error(certificate)):
        yield refusals.bad("status.certificate", "<certificate data>", text)


def _types(coded: str) -> list[str]:
    """Return the types of the blocks of a PEM text."""
    return [found[1].decode() for found in _BLOCK.finditer(base64.b64decode(coded))]


def _certificate_error(coded: str) -> str:
    types = _types(coded)
    other = next((name for name in types if name != "CERTIFICATE"), None)
    if other is not None:
        return f"only CERTIFICATE PEM blocks are allowed, found {refusals.shown(other)}"
    return "" if types else "must contain at least one CERTIFICATE PEM block"


def _conditions(request: Part) -> Sequence[Part]:
    return items(part_of(request, "status"), "conditions")


def _certificate(request: Part) -> str:
    found: str = part_of(request, "status").get("certificate") or ""
    return found


def _condition_errors(conditions: Sequence[Part], before: Sequence[Part]) -> Iterator[FieldError]:
    known = [condition.get("type", "") for condition in before]
    seen: list[Any] = []
    for index, condition in enumerate(conditions):
        path, kind, status = f"status.conditions[{index}]", condition.get("type", ""), condition.get("status", "")
        if not kind and "" not in known:
            yield refusals.required(f"{path}.type")
        allowed = ("True",) if kind in (*_DECISIONS, "Failed") else ("False", "True", "Unknown")
        if not status:
            yield refusals.required(f"{path}.status")
        elif status not in allowed:
            yield refusals.unsupported(f"{path}.status", status, allowed)
        if kind in _DECISIONS and {*_DECISIONS} - {kind} <= {*seen} and not {*_DECISIONS} <= {*known}:
            text = "Approved and Denied conditions are mutually exclusive"
            yield refusals.bad("status.conditions", kind, text)
        if kind in seen and len({*known}) == len(known):
            yield refusals.duplicate(f"{path}.type", kind)
        seen.append(kind)


def _change_errors(new: Object, old: Object, subresource: str) -> list[FieldError]:
    return [*_whole_errors(new, old), *_decision_errors(new, old, subresource)]


def _status_errors(new: Object, old: Object) -> list[FieldError]:
    """Decisions that a status repeats stay as they were made."""
    for kind in _DECISIONS:
        before = _of_type(old, kind)
        if len(_of_type(new, kind)) == len(before):
            kept = iter(before)
            conditions = [next(kept) if each.get("type") == kind else each for each in _conditions(new)]
            if conditions:
                new["status"] = {**new["status"], "conditions": clone(conditions)}
    return _change_errors(new, old, "status")


def _decision_errors(new: Object, old: Object, subresource: str) -> Iterator[FieldError]:
    """Yield what a decision may change, and what a status."""
    path = "status.conditions"
    for kind in (*_DECISIONS, "Failed"):
        if len(_of_type(new, kind)) < len(_of_type(old, kind)):
            yield refusals.forbidden_field(path, f'updates may not remove a condition of type "{kind}"')
    for kind in () if subresource == "approval" else _DECISIONS:
        now, before = _of_type(new, kind), _of_type(old, kind)
        if len(now) > len(before):
            yield refusals.forbidden_field(path, f'updates may not add a condition of type "{kind}"')
        elif len(now) == len(before) and now != before:
            yield refusals.forbidden_field(path, f'updates may not modify a condition of type "{kind}"')
    if _certificate(new) == _certificate(old):
        return
    if subresource != "status":
        yield refusals.forbidden_field("status.certificate", "updates may not set certificate content")
    elif _certificate(old):
        yield refusals.forbidden_field("status.certificate", "updates may not modify existing certificate content")


def _of_type(request: Object, kind: str) -> list[Part]:
    return [condition for condition in _conditions(request) if condition.get("type") == kind]


def _signing(obj: Object, _: float) -> Row:
    spec, status = spec_of(obj), status_of(obj)
    types = {condition["type"] for condition in status.get("conditions") or ()}
    words = ["Denied" if "Denied" in types else "Approved" if "Approved" in types else "Pending"]
    words += ["Failed"] if "Failed" in types else []
    words += ["Issued"] if status.get("certificate") else []
    lasts = human(spec["expirationSeconds"]) if spec.get("expirationSeconds") is not None else "<none>"
    return [spec.get("signerName") or "<none>", spec.get("username", ""), lasts, ",".join(words)]


def _approved(old: Object, new: Object) -> Object:
    """Return a decision about a certificate request: its conditions are written, nothing else of it."""
    merged: Object = {**clone(old), "metadata": new["metadata"]}
    status = {**clone(old.get("status") or {}), "conditions": (new.get("status") or {}).get("conditions") or []}
    merged["status"] = {name: value for name, value in status.items() if name != "conditions" or value}
    return merged


RULES = Rules(
    parts={"approval": _approved},
    printer=Printer(_signing, is_part=True),
    prepare_create=_prepare_create,
    prepare_update=_prepare_update,
    stamp_update=_stamp_update,
    validate=_errors,
    validate_update=_change_errors,
    validate_status_update=_status_errors,
    metadata=MetadataChecks(
        name_texts=anyhow_named, on_update=(METADATA, METADATA_UPDATE), on_status=(METADATA, METADATA_UPDATE)
    ),
)
