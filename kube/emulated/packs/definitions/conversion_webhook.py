"""Convert objects between versions by a definition's webhook: ConversionReview v1 over TLS.

Source: k8s.io/apiextensions-apiserver pkg/apiserver/conversion (webhook_converter.go). A request that needs an object
in another version stops with ``PendingCallsError`` and begins anew when the webhook has answered: one that hangs delays
those who need it, and nobody else. Objects that are shown together are converted by one review.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.errors import ServerError
from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.admission import PendingCallsError, WebhookCall, WebhookError

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

_TIMEOUT_S = 30
_KNOWN = ("v1", "v1beta1")
_REMEMBERED = 4096
_CONTENT = ("name", "namespace", "labels", "annotations")
"""What a conversion may depend on in an object's metadata; the rest of it changes with every write, and stays."""

Convert = Callable[[Object, str], Object]
"""``(object, apiVersion)`` -> the object in that version."""


class WebhookConverter:
    """The converter of a definition whose strategy is Webhook; it remembers what the webhook answered."""

    def __init__(self, store: Store, crd: Mapping[str, Any]) -> None:
        webhook = crd["spec"]["conversion"]["webhook"]
        self._store = store
        self._name = crd["metadata"]["name"]
        self._client: Mapping[str, Any] = webhook["clientConfig"]
        self._review = next(version for version in webhook["conversionReviewVersions"] if version in _KNOWN)
        self._known: OrderedDict[str, Object | WebhookError] = OrderedDict()

    def convert(self, obj: Object, api_version: str) -> Object:
        """Return the object in that version.

        Raises ``PendingCallsError`` where the webhook has not been asked yet, ``ServerError`` where it does not convert
        it.
        """
        key = _content(obj, api_version)
        found = self._known.get(key)
        if found is None:
            raise PendingCallsError({(id(self), api_version): ConversionCall(self, api_version, {key: obj})})
        if isinstance(found, WebhookError):
            del self._known[key]  # the next one asks again
            raise ServerError(f"{self._prefix(obj)}{found}", reason="")
        metadata = dict(obj["metadata"])
        for name in ("labels", "annotations"):
            metadata.pop(name, None)
            if given := (found.get("metadata") or {}).get(name):
                metadata[name] = given
        return {**found, "metadata": metadata}

    def _prefix(self, obj: Object) -> str:
        return f"conversion webhook for {obj['apiVersion']}, Kind={obj['kind']} failed: "

    async def ask(self, api_version: str, objects: Mapping[str, Object]) -> None:
        """Remember what the webhook makes of the objects, or why it does not."""
        request = {
            "uid": self._store.review_uid(),
            "desiredAPIVersion": api_version,
            "objects": list(objects.values()),
        }
        review = {
            "kind": "ConversionReview",
            "apiVersion": f"apiextensions.k8s.io/{self._review}",
            "request": request,
        }
        call = WebhookCall(self._name, self._client, review, _TIMEOUT_S)
        try:
            if self._store.webhooks is None:
                raise WebhookError(f'Post "{call.url}": no webhook can be called from here')
            converted = _converted(await self._store.webhooks.review(call), request)
            self._known.update(zip(objects, converted, strict=True))
        except WebhookError as error:
            self._known.update(dict.fromkeys(objects, error))
        while len(self._known) > max(_REMEMBERED, 2 * len(objects)):
            self._known.popitem(last=False)


class ConversionCall:
    """One review for all the objects that a request needs in one version."""

    def __init__(self, converter: WebhookConverter, api_version: str, objects: dict[str, Object]) -> None:
        self._converter = converter
        self._api_version = api_version
        self._objects = objects

    def join(self, other: ConversionCall) -> None:
        """Ask for the other's objects too."""
        self._objects.update(other._objects)

    async def __call__(self) -> None:
        """Ask the webhook."""
        await self._converter.ask(self._api_version, self._objects)


def _content(obj: Object, api_version: str) -> str:
    metadata = {name: obj["metadata"][name] for name in _CONTENT if name in obj["metadata"]}
    return json.dumps([api_version, {**obj, "metadata": metadata}], sort_keys=True, default=dict)


def _converted(answer: Any, request: Mapping[str, Any]) -> list[Object]:
    """Return the objects in the answer; ``WebhookError`` for what is none."""
    response = answer.get("response") if isinstance(answer, Mapping) else None
    if not isinstance(response, Mapping):
        raise WebhookError("invalid response: the answer is no ConversionReview with a response", is_call=False)
    if response.get("uid") != request["uid"]:
        raise WebhookError(f"invalid response: expected response.uid={request['uid']}", is_call=False)
    result = response.get("result")
    if not isinstance(result, Mapping) or result.get("status") != "Success":
        text = result.get("message") if isinstance(result, Mapping) else None
        raise WebhookError(str(text or "response.result.status was not Success"), is_call=False)
    found, given = response.get("convertedObjects"), request["objects"]
    if not isinstance(found, list) or len(found) != len(given):
        number = len(found) if isinstance(found, list) else 0
        raise WebhookError(f"webhook returned {number} objects, expected {len(given)}", is_call=False)
    for index, (obj, before) in enumerate(zip(found, given, strict=True)):
        _check_converted(index, obj, before, request["desiredAPIVersion"])
    return found


def _check_converted(index: int, obj: Any, before: Object, api_version: str) -> None:
    wrong = f"webhook returned an invalid object at index {index}"
    if not isinstance(obj, Mapping) or not isinstance(obj.get("metadata") or {}, Mapping):
        raise WebhookError(f"{wrong}: it is no object", is_call=False)
    for key, wanted in (("apiVersion", api_version), ("kind", before["kind"])):
        if obj.get(key) != wanted:
            raise WebhookError(f"{wrong}: invalid {key}: {obj.get(key)!r}, expected {wanted!r}", is_call=False)
