"""Rules of kinds that have few: revisions, runtime classes, services of other API servers, certificate requests."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import CHANGE, METADATA, METADATA_UPDATE, OBJECT, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.resource_errors import resource_errors
from mews.kube.emulated.kinds.pods.spec_errors import toleration_errors
from mews.kube.emulated.packs.aggregation.conditions import api_service_committed


def _revision_errors(revision: Object) -> list[FieldError]:
    data, found = revision.get("data"), common.not_negative("revision", revision.get("revision"))
    if data is None:
        found.append(refusals.required("data", "data is mandatory"))
    elif not isinstance(data, Mapping):
        found.append(refusals.required("data", "data must be a valid JSON object"))
    return found


def _compare_revision(new: Object, old: Object) -> list[FieldError]:
    return common.fixed("data", new.get("data"), old.get("data"))


def _runtime_errors(runtime: Object) -> list[FieldError]:
    found = common.label("handler", runtime.get("handler", ""))
    if runtime.get("overhead") is not None:
        found += resource_errors({"limits": part_of(runtime["overhead"], "podFixed")}, "overhead")
    scheduling = runtime.get("scheduling")
    if scheduling is None:
        return found
    for key, value in part_of(scheduling, "nodeSelector").items():
        found += names.label_pair_errors("scheduling.nodeSelector", key, value)
    path, seen = "scheduling.tolerations", list[Any]()
    for index, toleration in enumerate(items(scheduling, "tolerations")):
        found += toleration_errors(toleration, f"{path}.tolerations[{index}]")
    for index, toleration in enumerate(items(scheduling, "tolerations")):
        parts = tuple(toleration.get(name, "") for name in ("key", "operator", "value", "effect"))
        if parts in seen:
            shown = dict(zip(("Key", "Operator", "Value", "Effect"), parts, strict=True))
            shown["TolerationSeconds"] = toleration.get("tolerationSeconds")
            found.append(refusals.duplicate(f"{path}[{index}]", shown))
        seen.append(parts)
    return found


def _compare_runtime(new: Object, old: Object) -> list[FieldError]:
    return common.fixed("handler", new.get("handler", ""), old.get("handler", ""))


def named_by_group_and_version(service: Object, text: str, _prefix: bool) -> list[str]:
    """An APIService bears the name of what it serves."""
    spec = part_of(service, "spec")
    required = f"{spec.get('version', '')}.{spec.get('group', '')}"
    if found := names.segment_texts(text):
        return found
    return [] if text == required else [f'must be `spec.version+"."+spec.group`: {refusals.shown(required)}']


def _service_errors(service: Object) -> list[FieldError]:
    spec = part_of(service, "spec")
    version, group = spec.get("version", ""), spec.get("group", "")
    found: list[FieldError] = []
    if not group and version != "v1":
        text = "only v1 may have an empty group and it better be legacy kube"
        found.append(refusals.required("spec.group", text))
    if group:
        found += names.subdomain_errors("spec.group", group)
    found += common.bads("spec.version", version, names.dns_1035_errors(version))
    for field, most in (("groupPriorityMinimum", 20_000), ("versionPriority", 1_000)):
        if not 0 < spec.get(field, 0) <= most:
            text = f"must be positive and less than {most}"
            found.append(refusals.bad(f"spec.{field}", spec.get(field, 0), text))
    return [*found, *_backend_errors(spec)]


def _backend_errors(spec: Part) -> Iterator[FieldError]:
    backend, bundle, unchecked = spec.get("service"), spec.get("caBundle", ""), spec.get("insecureSkipTLSVerify")
    if backend is None:
        if bundle:
            shown = f"{len(base64.b64decode(bundle))} bytes"
            yield refusals.bad("spec.caBundle", shown, "local APIServices may not have a caBundle")
        if unchecked:
            text = "local APIServices may not have insecureSkipTLSVerify"
            yield refusals.bad("spec.insecureSkipTLSVerify", True, text)
        return
    for name in ("namespace", "name"):
        if not backend.get(name):
            yield refusals.required(f"spec.service.{name}")
    port = backend.get("port", 443)
    if not 1 <= port <= 65535:
        text = "port is not valid: must be between 1 and 65535, inclusive"
        yield refusals.bad("spec.service.port", port, text)
    if unchecked and bundle:
        yield refusals.bad("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")


def _service_status_errors(new: Object, _: Object) -> list[FieldError]:
    found: list[FieldError] = []
    for index, condition in enumerate(items(part_of(new, "status"), "conditions")):
        allowed = ("True", "False", "Unknown")
        found += common.option(f"status.conditions[{index}].status", condition.get("status", ""), allowed)
    return found


def _revision_change(new: Object, old: Object, _: str) -> list[FieldError]:
    return common.not_negative("revision", new.get("revision")) + _compare_revision(new, old)


SERVICE_ACCOUNTS = Rules(metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)))
REVISIONS = Rules(
    validate=_revision_errors,
    validate_update=_revision_change,
    metadata=MetadataChecks(on_update=(METADATA_UPDATE, METADATA)),
)
RUNTIME_CLASSES = Rules(
    validate=_runtime_errors,
    compare=_compare_runtime,
    metadata=MetadataChecks(on_update=(METADATA, OBJECT, METADATA_UPDATE, CHANGE)),
)
API_SERVICES = Rules(
    after_commit=api_service_committed,
    validate=_service_errors,
    validate_status_update=_service_status_errors,
    metadata=MetadataChecks(
        name_texts=named_by_group_and_version,
        on_update=(METADATA_UPDATE, METADATA),
        status_leaves=("labels", "annotations", "finalizers", "ownerReferences"),
    ),
)
