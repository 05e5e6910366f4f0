"""Mutating and validating webhooks (k8s.io/apiserver pkg/admission/plugin/webhook; AdmissionReview v1).

A webhook's answer is asked for outside of the write (``PendingCallsError``): whoever hangs delays one request only.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from mews.kube.api.errors import ApiError, BadRequestError, ServerError
from mews.kube.api.objects import Object
from mews.kube.api.patches import json_patch
from mews.kube.api.resources import Resource
from mews.kube.cel.values import CelError
from mews.kube.emulated.core.admission.plugin import AdmissionPlugin, refused
from mews.kube.emulated.core.admission.reinvocation import Reinvocation
from mews.kube.emulated.core.objects.creation import received
from mews.kube.emulated.core.store.admission import (
    AdmissionAttributes,
    AdmissionOperation,
    PendingCallsError,
    WebhookCall,
    WebhookError,
)
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.selection import EVERYTHING
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.packs.policies.expressions import options_of, request_of, shown_as, unmet, variables_of
from mews.kube.emulated.packs.policies.matching import GROUP, is_configuration, matched_kind, selects

VALIDATING = Resource(
    GROUP, "v1", "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", namespaced=False
)
MUTATING = Resource(GROUP, "v1", "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", namespaced=False)

_REVIEW = {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1"}
_DEFAULT_TIMEOUT_S = 10
_REFUSED = 400


class _Asked(Struct, frozen=True):
    """A webhook that a request meets, and as which kind."""

    configuration: str
    position: int
    webhook: Mapping[str, Any]
    matched: Kind

    @property
    def name(self) -> str:
        return str(self.webhook["name"])

    @property
    def ignores(self) -> bool:
        """Whether the request goes on when the webhook cannot be asked."""
        return bool(self.webhook.get("failurePolicy", "Fail") == "Ignore")


def _handles(kind: Kind, _operation: AdmissionOperation, _subresource: str) -> bool:
    return not is_configuration(kind)


def _asked(store: Store, attributes: AdmissionAttributes, resource: Resource) -> Iterator[_Asked]:
    shelf = store.filled(GROUP, resource.plural)
    if shelf is None or attributes.request.answers is None:
        return
    for configuration in shelf.select(EVERYTHING):
        for position, webhook in enumerate(configuration.get("webhooks") or ()):
            matched = matched_kind(store, attributes, webhook.get("rules") or (), webhook.get("matchPolicy"))
            if matched is None or not selects(store, attributes, webhook):
                continue
            if not _conditions_met(store, attributes, webhook, matched):
                continue
            yield _Asked(configuration["metadata"]["name"], position, webhook, matched)


def _conditions_met(store: Store, attributes: AdmissionAttributes, webhook: Mapping[str, Any], matched: Kind) -> bool:
    conditions = webhook.get("matchConditions") or ()
    if not conditions:
        return True
    try:
        return not unmet(conditions, variables_of(store, attributes, matched))
    except CelError as error:
        if webhook.get("failurePolicy", "Fail") == "Ignore":
            return False
        raise refused(attributes, str(error)) from None


def _call(store: Store, attributes: AdmissionAttributes, asked: _Asked) -> WebhookCall:
    """Return what a webhook is asked; 400 for one that must not be asked in a dry run."""
    webhook = asked.webhook
    if attributes.request.dry_run and webhook.get("sideEffects") not in ("None", "NoneOnDryRun"):
        raise BadRequestError(f'admission webhook "{asked.name}" does not support dry run')
    body = attributes.body_kind is not None
    request = {
        "uid": store.review_uid(),
        **request_of(attributes, asked.matched),
        "object": shown_as(asked.matched, attributes.obj, body=body),
        "oldObject": shown_as(asked.matched, attributes.old, body=body),
        "dryRun": attributes.request.dry_run,
        "options": options_of(attributes),
    }
    review = {**_REVIEW, "request": request}
    timeout_s = webhook.get("timeoutSeconds") or _DEFAULT_TIMEOUT_S
    return WebhookCall(asked.name, webhook.get("clientConfig") or {}, review, timeout_s)


def _answers(
    store: Store, attributes: AdmissionAttributes, asked: list[tuple[Hashable, _Asked]]
) -> list[tuple[_Asked, Any]]:
    """Return the answers, or ``PendingCallsError`` for those that are not there yet."""
    known = attributes.request.answers
    assert known is not None
    missing = {}
    for key, each in asked:
        if key not in known:
            call = _call(store, attributes, each)
            missing[key] = lambda call=call: _performed(store, call)
    if missing:
        raise PendingCallsError(missing)
    return [(each, known[key]) for key, each in asked]


async def _performed(store: Store, call: WebhookCall) -> Any:
    """Return the response of a webhook, or the ``WebhookError`` that kept it from one."""
    try:
        if store.webhooks is None:
            raise WebhookError(f'Post "{call.url}": no webhook can be called from here')
        answer = await store.webhooks.review(call)
        return _checked(answer, call)
    except WebhookError as error:
        return error


def _checked(answer: Any, call: WebhookCall) -> Mapping[str, Any]:
    """Return the response in an AdmissionReview; ``WebhookError`` for what is none."""
    invalid = "received invalid webhook response: "
    if not isinstance(answer, Mapping):
        raise WebhookError(f"{invalid}webhook response is not an object", is_call=False)
    found = (answer.get("apiVersion"), answer.get("kind"))
    if found != (_REVIEW["apiVersion"], _REVIEW["kind"]):
        shown = f"{str(found[0] or '/').replace('/', '/', 1)}, Kind={found[1] or ''}"
        text = f"expected webhook response of admission.k8s.io/v1, Kind=AdmissionReview, got {shown}"
        raise WebhookError(f"{invalid}{text}", is_call=False)
    response = answer.get("response")
    if not isinstance(response, Mapping):
        raise WebhookError("received invalid webhook response: webhook response was absent", is_call=False)
    uid = call.review["request"]["uid"]
    if response.get("uid") != uid:
        text = f'expected response.uid="{uid}", got "{response.get("uid") or ""}"'
        raise WebhookError(f"{invalid}{text}", is_call=False)
    patch, kind = response.get("patch"), response.get("patchType")
    if patch and kind != "JSONPatch":
        text = "webhook returned response.patch but not response.patchType"
        if kind:
            text = f'webhook returned invalid response.patchType of "{kind}"'
        raise WebhookError(f"{invalid}{text}", is_call=False)
    if kind and not patch:
        text = "webhook returned response.patchType but not response.patch"
        raise WebhookError(f"{invalid}{text}", is_call=False)
    return response


def _failed(asked: _Asked, error: WebhookError) -> ServerError:
    how = "failed to call webhook: " if error.is_call else ""
    text = f'failed calling webhook "{asked.name}": {how}{error}'
    return _internal(text)


def _internal(text: str) -> ServerError:
    causes = [{"message": text}]
    return ServerError(f"Internal error occurred: {text}", reason="InternalError", details={"causes": causes})


def _judged(attributes: AdmissionAttributes, asked: _Asked, answer: Any) -> ApiError | None:
    """Return why a request is refused after a webhook's answer, None when it is not. Its warnings are passed on."""
    if isinstance(answer, WebhookError):
        return None if asked.ignores else _failed(asked, answer)
    attributes.request.warnings.extend(str(each) for each in answer.get("warnings") or ())
    if answer.get("allowed") is True:
        return None
    return _denied(asked.name, answer.get("status") or answer.get("result") or {})


def _denied(name: str, status: Mapping[str, Any]) -> ApiError:
    text = f'admission webhook "{name}" denied the request'
    explained = status.get("message") or status.get("reason")
    code = status.get("code") if isinstance(status.get("code"), int) else 0
    return ApiError(
        f"{text}: {explained}" if explained else f"{text} without explanation",
        code=max(int(code or 0), _REFUSED),
        reason=str(status.get("reason") or ""),
        details=dict(status["details"]) if isinstance(status.get("details"), Mapping) else None,
    )


def _validate(store: Store, attributes: AdmissionAttributes) -> None:
    if store.filled(GROUP, VALIDATING.plural) is None:
        return
    asked: list[tuple[Hashable, _Asked]] = [
        (("validate", attributes.request.dry_run, each.configuration, each.position, _state(attributes)), each)
        for each in _asked(store, attributes, VALIDATING)
    ]
    if not asked:
        return
    errors = [_judged(attributes, each, answer) for each, answer in _answers(store, attributes, asked)]
    for error in errors:
        if error is not None:
            raise error


def _state(attributes: AdmissionAttributes) -> str:
    """Return the version of what is changed: an answer about another one is not used again."""
    return str(((attributes.old or {}).get("metadata") or {}).get("resourceVersion", ""))


def _mutate(store: Store, attributes: AdmissionAttributes) -> None:
    if store.filled(GROUP, MUTATING.plural) is None or attributes.request.answers is None:
        return
    again = Reinvocation.of(attributes)
    if again.is_second and again.last_output is not None and attributes.obj != again.last_output:
        again.require()
    for each in _asked(store, attributes, MUTATING):
        identity = f"webhook {each.configuration}/{each.position}"
        if again.is_second and not again.is_wanted(identity):
            continue
        key = ("mutate", again.is_second, attributes.request.dry_run, identity, _state(attributes))
        [(_, answer)] = _answers(store, attributes, [(key, each)])
        error = _judged(attributes, each, answer)
        if error is not None:
            raise error
        changed = not isinstance(answer, WebhookError) and _patch(store, attributes, each, answer)
        if changed:
            again.changed()
        if each.webhook.get("reinvocationPolicy") == "IfNeeded" and not again.is_second:
            again.remember(identity)
    again.last_output = attributes.obj


def _patch(store: Store, attributes: AdmissionAttributes, asked: _Asked, answer: Mapping[str, Any]) -> bool:
    """Apply a webhook's patch; whether it changed anything."""
    if not answer.get("patch") or attributes.obj is None:
        return False
    body = attributes.body_kind is not None
    before = shown_as(asked.matched, attributes.obj, body=body)
    try:
        operations = json.loads(base64.b64decode(answer["patch"]))
        patched = json_patch(before, operations)
    except (ValueError, binascii.Error, ApiError) as error:
        text = error.message if isinstance(error, ApiError) else str(error)
        raise _internal(text) from None
    return replace_object(store, attributes, asked.matched, patched)


def replace_object(store: Store, attributes: AdmissionAttributes, matched: Kind, patched: Object) -> bool:
    """Put what a webhook or policy made in the object's place, decoded and with defaults; whether it is another."""
    if attributes.body_kind is not None:
        new = patched
    else:
        new = received(matched, patched)
        new["apiVersion"], new["kind"] = attributes.kind.resource.api_version, attributes.kind.resource.kind
        if (default := store.rules(attributes.kind).default) is not None:
            default(new)
    if new == attributes.obj:
        return False
    attributes.obj = new
    attributes.changed = True
    return True


MUTATING_WEBHOOK = AdmissionPlugin("MutatingAdmissionWebhook", _handles, mutate=_mutate)
VALIDATING_WEBHOOK = AdmissionPlugin("ValidatingAdmissionWebhook", _handles, validate=_validate)
