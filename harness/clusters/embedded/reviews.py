"""Kinds that are answered and never stored: who am I, whose token is this, who may do what, a token for an account.

Source: contract apiserver.md section 1; the answers of Kubernetes 1.34.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mews.harness.clusters.embedded import refusals
from mews.harness.clusters.embedded.authentication import SERVICE_ACCOUNT, groups_of
from mews.harness.clusters.embedded.refusals import Fault
from mews.kube.api.errors import BadRequest, Invalid
from mews.kube.api.objects import Object, timestamp

if TYPE_CHECKING:
    from mews.harness.clusters.embedded.call import Call

AUDIENCE = "https://kubernetes.default.svc"
_HOUR_S = 3600
_SHORTEST_S = 600
_EVERYTHING = {
    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
    "incomplete": False,
}


def review(call: Call, body: Mapping[str, Any]) -> Object:
    """The answer to a review.

    Raises ``BadRequest`` or ``Invalid`` for a question that cannot be answered.
    """
    return _ANSWERS[call.kind.resource.kind](call, body.get("spec") or {})


def _answer(call: Call, *, spec: Any = None, status: Any, metadata: Any = None) -> Object:
    resource = call.kind.resource
    head = {"kind": resource.kind, "apiVersion": resource.api_version, "metadata": metadata or {}}
    return {**head, **({} if spec is None else {"spec": spec}), "status": status}


def _user_info(user: str) -> dict[str, Any]:
    return {"username": user, "uid": user, "groups": list(groups_of(user))}


def _myself(call: Call, _spec: Mapping[str, Any]) -> Object:
    now = {"creationTimestamp": call.world.store.timestamp()}
    return _answer(call, metadata=now, status={"userInfo": _user_info(call.user)})


def _token(call: Call, spec: Mapping[str, Any]) -> Object:
    if not spec.get("token"):
        raise BadRequest("token is required for TokenReview in authentication")
    user = call.world.authenticator.owner_of(spec["token"])
    if user is None:
        return _answer(call, spec=spec, status={"user": {}, "error": "invalid bearer token"})
    found = {"authenticated": True, "user": _user_info(user), "audiences": [AUDIENCE]}
    return _answer(call, spec=spec, status=found)


def _my_access(call: Call, spec: Mapping[str, Any]) -> Object:
    _check_attributes(call, spec)
    return _answer(call, spec=spec, status={"allowed": call.world.authenticator.allows(call.user)})


def _access(call: Call, spec: Mapping[str, Any]) -> Object:
    _check_attributes(call, spec)
    if not spec.get("user") and not spec.get("groups"):
        raise _refused(refusals.bad("spec.user", "", "at least one of user or group must be specified"))
    return _answer(call, spec=spec, status={"allowed": call.world.authenticator.allows(spec.get("user", ""))})


def _local_access(call: Call, spec: Mapping[str, Any]) -> Object:
    place = (spec.get("resourceAttributes") or {}).get("namespace", "")
    if place != call.namespace:
        text = f"spec.resourceAttributes.namespace must match namespace: {call.namespace}"
        raise BadRequest(text)
    return {**_access(call, spec), "metadata": {"namespace": call.namespace}}


def _check_attributes(_call: Call, spec: Mapping[str, Any]) -> None:
    if bool(spec.get("resourceAttributes")) == bool(spec.get("nonResourceAttributes")):
        text = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
        raise _refused(refusals.bad("spec.resourceAttributes", spec.get("resourceAttributes"), text))


def _refused(fault: Fault) -> Invalid:
    """Upstream forgets the kind's name here."""
    causes = [{"reason": fault.reason, "message": fault.message(), "field": fault.path}]
    group = "authorization.k8s.io"
    return Invalid(f'.{group} "" is invalid: {fault}', details={"group": group, "causes": causes})


def _rules(call: Call, spec: Mapping[str, Any]) -> Object:
    if not spec.get("namespace"):
        raise BadRequest("no namespace on request")
    nothing = {"resourceRules": [], "nonResourceRules": [], "incomplete": False}
    return _answer(call, spec={}, status=_EVERYTHING if call.world.authenticator.allows(call.user) else nothing)


_ANSWERS: Mapping[str, Callable[[Call, Mapping[str, Any]], Object]] = {
    "SelfSubjectReview": _myself,
    "TokenReview": _token,
    "SelfSubjectAccessReview": _my_access,
    "SubjectAccessReview": _access,
    "LocalSubjectAccessReview": _local_access,
    "SelfSubjectRulesReview": _rules,
}


def issue_token(call: Call, body: Mapping[str, Any]) -> Object:
    """POST serviceaccounts/token: a bearer token that this server knows from now on; its end is told, not enforced."""
    store = call.world.store
    account = store.get(call.kind, call.namespace, call.route.name)
    spec = body.get("spec") or {}
    lifetime_s = spec.get("expirationSeconds", _HOUR_S)
    if lifetime_s < _SHORTEST_S:
        text = "may not specify a duration less than 10 minutes"
        raise _short_lived(refusals.bad("spec.expirationSeconds", lifetime_s, text))
    user = f"{SERVICE_ACCOUNT}{call.namespace}:{call.route.name}"
    audiences = spec.get("audiences") or [AUDIENCE]
    now_s = int(store.now())
    claims = {"aud": audiences, "exp": now_s + lifetime_s, "iat": now_s, "iss": AUDIENCE, "jti": store.new_uid()}
    token = _token_text({**claims, "nbf": now_s, "sub": user})
    call.world.authenticator.issue(token, user)
    metadata = {key: account["metadata"][key] for key in ("name", "namespace", "uid")}
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {**metadata, "creationTimestamp": store.timestamp()},
        "spec": {
            "audiences": audiences,
            "expirationSeconds": lifetime_s,
            "boundObjectRef": spec.get("boundObjectRef"),
        },
        "status": {"token": token, "expirationTimestamp": timestamp(now_s + lifetime_s)},
    }


def _short_lived(fault: Fault) -> Invalid:
    causes = [{"reason": fault.reason, "message": fault.message(), "field": fault.path}]
    details = {"group": "authentication.k8s.io", "kind": "TokenRequest", "causes": causes}
    return Invalid(f'TokenRequest.authentication.k8s.io "" is invalid: {fault}', details=details)


def _token_text(claims: Mapping[str, Any]) -> str:
    """In the form of a JSON web token, without a signature: the server knows its tokens by heart."""
    parts = ({"alg": "none", "typ": "JWT"}, claims)
    coded = (base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
    return ".".join(coded) + ".mews"
