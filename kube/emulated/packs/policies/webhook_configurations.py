"""Configurations of webhooks: defaults and what is wrong with them (pkg/apis/admissionregistration/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.base import METADATA, Rules
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError, bad, required
from mews.kube.emulated.core.tables.cells import Printer, count_cell
from mews.kube.emulated.packs.policies.match_rules import MATCH_POLICIES, choice_errors, default_limits, rule_errors
from mews.kube.emulated.packs.policies.validating_policies import FAILURE_POLICIES, condition_errors
from mews.kube.emulated.packs.policies.webhook_urls import service_errors, url_errors
from mews.kube.emulated.types.policy_expressions import WEBHOOK_VARIABLES

Spec = Mapping[str, Any]

_LONGEST_TIMEOUT_S = 30


def _default_webhooks(configuration: Object) -> None:
    mutating = configuration.get("kind") == "MutatingWebhookConfiguration"
    for webhook in configuration.get("webhooks") or ():
        webhook.setdefault("failurePolicy", "Fail")
        webhook.setdefault("timeoutSeconds", 10)
        if mutating:
            webhook.setdefault("reinvocationPolicy", "Never")
        default_limits(webhook, ("rules",))
        service = (webhook.get("clientConfig") or {}).get("service")
        if service is not None:
            service.setdefault("port", 443)


def _webhook_errors(configuration: Object) -> list[FieldError]:
    found: list[FieldError] = []
    seen: set[str] = set()
    for index, webhook in enumerate(configuration.get("webhooks") or ()):
        path, name = f"webhooks[{index}]", webhook.get("name") or ""
        found += _one_webhook_errors(webhook, path)
        if name and name in seen:
            found.append(refusals.duplicate(f"{path}.name", name))
        seen.add(name)
    return found


def _one_webhook_errors(webhook: Spec, path: str) -> Iterator[FieldError]:
    yield from _webhook_name_errors(webhook.get("name") or "", f"{path}.name")
    for index, rule in enumerate(webhook.get("rules") or ()):
        yield from rule_errors(rule, f"{path}.rules[{index}]")
    yield from choice_errors(f"{path}.failurePolicy", webhook.get("failurePolicy"), FAILURE_POLICIES)
    yield from choice_errors(f"{path}.matchPolicy", webhook.get("matchPolicy"), MATCH_POLICIES)
    effects = webhook.get("sideEffects")
    if effects is None:
        yield required(f"{path}.sideEffects", "must specify one of None, NoneOnDryRun")
    else:
        yield from choice_errors(f"{path}.sideEffects", effects, ("None", "NoneOnDryRun"))
    timeout_s = webhook.get("timeoutSeconds")
    if timeout_s is not None and not 1 <= timeout_s <= _LONGEST_TIMEOUT_S:
        yield bad(f"{path}.timeoutSeconds", timeout_s, "the timeout value must be between 1 and 30 seconds")
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_errors(webhook.get(name) or {}, f"{path}.{name}")
    yield from choice_errors(f"{path}.reinvocationPolicy", webhook.get("reinvocationPolicy"), ("IfNeeded", "Never"))
    yield from _client_errors(webhook.get("clientConfig") or {}, f"{path}.clientConfig")
    yield from condition_errors(webhook, path, WEBHOOK_VARIABLES)
    yield from _review_version_errors(webhook.get("admissionReviewVersions") or [], f"{path}.admissionReviewVersions")


def _review_version_errors(versions: list[str], path: str) -> Iterator[FieldError]:
    if not versions:
        yield required(path, "must specify one of v1, v1beta1")
        return
    for index, version in enumerate(versions):
        for text in names.dns_1035_errors(version):
            yield bad(f"{path}[{index}]", version, text)
        if version in versions[:index]:
            yield bad(f"{path}[{index}]", version, "duplicate version")
    if not any(version in ("v1", "v1beta1") for version in versions):
        yield bad(path, versions, "must include at least one of v1, v1beta1")


_LEAST_PARTS = 3


def _webhook_name_errors(name: str, path: str) -> Iterator[FieldError]:
    if not name:
        yield required(path)
        return
    errors = names.subdomain_errors(path, name)
    yield from errors
    if not errors and len(name.split(".")) < _LEAST_PARTS:
        yield bad(path, name, "should be a domain with at least three segments separated by dots")


def _client_errors(client: Spec, path: str) -> Iterator[FieldError]:
    url, service = client.get("url"), client.get("service")
    if (url is None) == (service is None):
        yield required(path, "exactly one of url or service is required")
        return
    if url is not None:
        yield from url_errors(url, f"{path}.url")
        return
    yield from service_errors(service or {}, f"{path}.service")


WEBHOOKS = Rules(
    printer=Printer(count_cell("webhooks"), is_part=True),
    default=_default_webhooks,
    validate=_webhook_errors,
    metadata=MetadataChecks(on_update=(METADATA,)),
)
