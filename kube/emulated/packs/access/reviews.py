"""Kinds that are answered and never stored: who am I, whose token is this, who may do what, a token for an account.

Source: contract apiserver.md section 1; the answers of Kubernetes 1.34.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.errors import BadRequestError, InvalidError
from mews.kube.api.objects import Object, node_name_of, timestamp
from mews.kube.api.resources import NODES, PODS
from mews.kube.emulated.core.objects.creation import SERVERS_OWN
from mews.kube.emulated.core.objects.recording import record
from mews.kube.emulated.core.objects.update import METADATA_ORDER
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.core.store.users import User
from mews.kube.emulated.kinds.later_rules import revision
from mews.kube.emulated.packs.access.account_tokens import AUDIENCE, BOUND, WrongAudienceError
from mews.kube.emulated.packs.access.authorization import Attributes
from mews.kube.emulated.packs.access.review_errors import access_errors
from mews.kube.emulated.packs.access.server_access import access_of

if TYPE_CHECKING:
    from mews.kube.emulated.core.wire.call import Call

_HOUR_S = 3600
_LONGEST_S = 1 << 32
_SHORTEST_S = 600


def review(call: Call, body: Object, request: WriteRequest) -> Object:
    """Return the answer to a review.

    Raises ``BadRequestError`` or ``InvalidError`` for a question that cannot be answered.
    """
    asked, spec = _ANSWERS[call.kind.resource.kind], body.get("spec") or {}
    if call.kind.resource.kind in _OF_USERS:
        local = call.kind.resource.namespaced
        found = [*access_errors(spec, user=_OF_USERS[call.kind.resource.kind], space=call.namespace if local else None)]
        found += _metadata_errors(call, body, request)
        revise = revision(call.kind.release, call.kind.qualified)
        found = revise(found) if revise is not None else found
        if found:
            raise _refused(found)
    return asked(call, spec)


_OF_USERS = {"SelfSubjectAccessReview": False, "SubjectAccessReview": True, "LocalSubjectAccessReview": True}
"""Kinds of questions who may do what, and whether they name who."""


def _metadata_errors(call: Call, body: Object, request: WriteRequest) -> list[FieldError]:
    """A question has no metadata; a local one has a namespace."""
    metadata = body["metadata"]
    for name in (*(name for name in SERVERS_OWN if name != "generation"), "managedFields"):
        metadata.pop(name, None)
    given = [name for name, value in metadata.items() if value and name != "namespace"]
    if not given:
        return []
    record(call.world.store, call.kind, None, body, subresource="", request=request)
    shown = {name: metadata[name] for name in METADATA_ORDER if metadata.get(name)}
    if "managedFields" in shown:
        shown["managedFields"] = [_sorted(entry) for entry in shown["managedFields"]]
    text = "must be empty except for namespace" if call.kind.resource.namespaced else "must be empty"
    return [refusals.bad("metadata", shown, text)]


def _sorted(entry: Mapping[str, Any]) -> dict[str, Any]:
    order = ("manager", "operation", "apiVersion", "time", "fieldsType", "fieldsV1", "subresource")
    return {name: _deep(entry[name]) for name in order if name in entry}


def _deep(value: Any) -> Any:
    return {name: _deep(value[name]) for name in sorted(value)} if isinstance(value, Mapping) else value


def _answer(call: Call, *, spec: Any = None, status: Any, metadata: Any = None) -> Object:
    resource = call.kind.resource
    head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata or {}}
    return {**head, **({} if spec is None else {"spec": spec}), "status": status}


def _myself(call: Call, _spec: Mapping[str, Any]) -> Object:
    now = {"creationTimestamp": call.world.store.timestamp()}
    return _answer(call, metadata=now, status={"userInfo": call.user.info()})


def _token(call: Call, spec: Mapping[str, Any]) -> Object:
    if not spec.get("token"):
        raise BadRequestError("token is required for TokenReview in authentication")
    try:
        user, audiences = access_of(call.world).authenticator.reviewed(spec["token"], spec.get("audiences") or ())
    except WrongAudienceError as error:
        return _answer(call, spec=spec, status={"user": {}, "error": str(error)})
    if user is None:
        return _answer(call, spec=spec, status={"user": {}, "error": "invalid bearer token"})
    found = {"authenticated": True, "user": user.info(), "audiences": audiences}
    return _answer(call, spec=spec, status=found)


def _my_access(call: Call, spec: Mapping[str, Any]) -> Object:
    return _answer(call, spec=spec, status=_verdict(call, call.user, spec))


def _access(call: Call, spec: Mapping[str, Any]) -> Object:
    user = User(spec.get("user") or "", tuple(spec.get("groups") or ()))
    return _answer(call, spec=spec, status=_verdict(call, user, spec))


def _verdict(call: Call, user: User, spec: Mapping[str, Any]) -> dict[str, Any]:
    verdict = access_of(call.world).authorizer.decide(user, _attributes(spec))
    return {"allowed": verdict.allowed, **({"reason": verdict.reason} if verdict.reason else {})}


def _attributes(spec: Mapping[str, Any]) -> Attributes:
    given = spec.get("resourceAttributes") or spec.get("nonResourceAttributes") or {}
    names = ("verb", "group", "resource", "subresource", "namespace", "name", "path")
    return Attributes(**{name: given[name] for name in names if given.get(name)} | {"verb": given.get("verb") or ""})


def _local_access(call: Call, spec: Mapping[str, Any]) -> Object:
    user = User(spec.get("user") or "", tuple(spec.get("groups") or ()))
    return _answer(call, spec=spec, status=_verdict(call, user, spec), metadata={"namespace": call.namespace})


def _refused(errors: list[FieldError]) -> InvalidError:
    """Upstream forgets the kind's name here."""
    causes = [{"reason": error.reason, "message": error.message(), "field": error.path} for error in errors]
    group, texts = "authorization.k8s.io", [str(error) for error in errors]
    text = texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"
    return InvalidError(f'.{group} "" is invalid: {text}', details={"group": group, "causes": causes})


def _rules(call: Call, spec: Mapping[str, Any]) -> Object:
    if not spec.get("namespace"):
        raise BadRequestError("no namespace on request")
    rules = access_of(call.world).authorizer.rules_of(call.user, spec["namespace"])
    paths = [rule for rule in rules if rule.get("nonResourceURLs")]
    status = {"resourceRules": [rule for rule in rules if rule not in paths], "nonResourceRules": paths}
    return _answer(call, spec={}, status={**status, "incomplete": False})


_ANSWERS: Mapping[str, Callable[[Call, Mapping[str, Any]], Object]] = {
    "SelfSubjectReview": _myself,
    "TokenReview": _token,
    "SelfSubjectAccessReview": _my_access,
    "SubjectAccessReview": _access,
    "LocalSubjectAccessReview": _local_access,
    "SelfSubjectRulesReview": _rules,
}


def issue_token(call: Call, body: Mapping[str, Any], _request: WriteRequest) -> Object:
    """POST serviceaccounts/token: a bearer token that this server accepts while it is good.

    Raises ``InvalidError`` or, for what it is to be bound to, ``NotFoundError``.
    """
    store = call.world.store
    account = store.get(call.kind, call.namespace, call.route.name)
    for name, value, text in (
        ("name", call.route.name, "must match the service account name if specified"),
        ("namespace", call.namespace, "must match the service account namespace if specified"),
    ):
        given = (body.get("metadata") or {}).get(name) or value
        if given != value:
            raise _unfit(refusals.bad(f"metadata.{name}", given, text), call.route.name)
    spec = body.get("spec") or {}
    lifetime_s = spec.get("expirationSeconds") or _HOUR_S
    if lifetime_s < _SHORTEST_S:
        text = "may not specify a duration less than 10 minutes"
        raise _unfit(refusals.bad("spec.expirationSeconds", lifetime_s, text))
    if lifetime_s > _LONGEST_S:
        text = "may not specify a duration larger than 2^32 seconds"
        raise _unfit(refusals.bad("spec.expirationSeconds", lifetime_s, text))
    audiences = spec.get("audiences") or [AUDIENCE]
    bound = _bound(call, spec.get("boundObjectRef") or {})
    token = access_of(call.world).authenticator.accounts.issue(account, audiences, lifetime_s, bound)
    metadata = {key: account["metadata"][key] for key in ("name", "namespace", "uid")}
    ends_s = int(store.now()) + lifetime_s
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**metadata, "creationTimestamp": store.timestamp()},
        "spec": {
            "audiences": audiences,
            "expirationSeconds": lifetime_s,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": timestamp(ends_s)},
    }


def _bound(call: Call, reference: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    if not reference:
        return {}
    store, resource = call.world.store, BOUND.get(reference.get("kind") or "")
    if resource is None:
        group, _, version = (reference.get("apiVersion") or "").rpartition("/")
        shown = f"{group}/{version}, Kind={reference.get('kind') or ''}"
        raise BadRequestError(f"cannot bind token to object of type {shown}")
    place = call.namespace if resource.namespaced else ""
    obj = store.get(store.kinds.of(resource), place, reference.get("name") or "")
    found = obj["metadata"]
    if reference.get("uid") and reference["uid"] != found["uid"]:
        text = f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record."
        kind = store.kinds.of(resource)
        raise refusals.conflict(kind, found["name"], f"{text} The object might have been deleted and then recreated")
    bound = {resource.kind: {"name": found["name"], "uid": found["uid"]}}
    host = node_name_of(obj) if resource == PODS else ""
    if host:
        node = store.find(store.kinds.of(NODES), "", host)
        bound[NODES.kind] = {"name": host} if node is None else {"name": host, "uid": node["metadata"]["uid"]}
    return bound


def _unfit(error: FieldError, name: str = "") -> InvalidError:
    causes = [{"reason": error.reason, "message": error.message(), "field": error.path}]
    named = {"name": name} if name else {}
    details = {**named, "group": "authentication.k8s.io", "kind": "TokenRequest", "causes": causes}
    return InvalidError(f'TokenRequest.authentication.k8s.io "{name}" is invalid: {error}', details=details)
