"""What is wrong with how a definition converts its versions (k8s.io/apiserver/pkg/util/webhook)."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.packs.policies.webhook_urls import service_errors, url_errors
from mews.kube.emulated.types.custom import go_text

_REVIEWS = ("v1", "v1beta1")
_PATH, _CONFIG = "spec.conversion", "spec.conversion.webhookClientConfig"


def conversion_errors(conversion: Mapping[str, Any], old: Object | None) -> Iterator[FieldError]:
    """Yield what is wrong with ``spec.conversion``."""
    if not conversion:
        return
    strategy, webhook = conversion.get("strategy") or "", conversion.get("webhook") or {}
    if not strategy:
        yield refusals.required(f"{_PATH}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield go_text.unsupported(f"{_PATH}.strategy", strategy, ("None", "Webhook"))
    config, reviews = webhook.get("clientConfig"), webhook.get("conversionReviewVersions") or []
    if strategy == "Webhook":
        if config is None:
            yield refusals.required(_CONFIG, "required when strategy is set to Webhook")
        else:
            yield from _client_errors(config)
            if old is not None and _is_established(old) and not _had_bad_bundle(old):
                yield from _bundle_errors(config.get("caBundle") or "")
        yield from _review_errors(reviews, must_be_known=old is None or _knew_reviews(old))
        return
    text = "should not be set when strategy is not set to Webhook"
    if config is not None:
        yield refusals.forbidden_field(_CONFIG, text)
    if reviews:
        yield refusals.forbidden_field(f"{_PATH}.conversionReviewVersions", text)


def _is_established(crd: Object) -> bool:
    conditions = (crd.get("status") or {}).get("conditions") or ()
    return any(one["type"] == "Established" and one["status"] == "True" for one in conditions)


def _old_webhook(crd: Object) -> Mapping[str, Any]:
    found = (crd["spec"].get("conversion") or {}).get("webhook")
    return found if isinstance(found, Mapping) else {}


def _knew_reviews(crd: Object) -> bool:
    versions = _old_webhook(crd).get("conversionReviewVersions") or []
    return not versions or any(version in _REVIEWS for version in versions)


def _had_bad_bundle(crd: Object) -> bool:
    bundle = (_old_webhook(crd).get("clientConfig") or {}).get("caBundle") or ""
    return bool(bundle) and any(_bundle_errors(bundle))


def _bundle_errors(bundle: str) -> Iterator[FieldError]:
    if not bundle:
        return
    try:
        text = base64.b64decode(bundle).decode(errors="replace")
    except (binascii.Error, ValueError):
        text = ""
    if not re.search(r"-----BEGIN CERTIFICATE-----\s[A-Za-z0-9+/=\s]+-----END CERTIFICATE-----", text):
        why = "unable to load root certificates: unable to parse bytes as PEM block"
        yield go_text.wrong(f"{_CONFIG}.caBundle", bundle, why)


def _client_errors(config: Mapping[str, Any]) -> Iterator[FieldError]:
    url, service = config.get("url"), config.get("service")
    if (url is None) == (service is None):
        yield refusals.required(_CONFIG, "exactly one of url or service is required")
    elif url is not None:
        yield from url_errors(url, f"{_CONFIG}.url")
    else:
        yield from service_errors(service or {}, f"{_CONFIG}.service")


def _review_errors(versions: Sequence[str], *, must_be_known: bool) -> Iterator[FieldError]:
    path = f"{_PATH}.conversionReviewVersions"
    if not versions:
        yield refusals.required(path)
        return
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield go_text.wrong(f"{path}[{index}]", version, "duplicate version")
            continue
        for text in names.dns_1035_errors(version):
            yield go_text.wrong(f"{path}[{index}]", version, text)
    if must_be_known and not any(version in _REVIEWS for version in versions):
        yield go_text.wrong(path, list(versions), f"must include at least one of {', '.join(_REVIEWS)}")
