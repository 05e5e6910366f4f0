"""APIServices: other servers that answer for a group (kube-aggregator, pkg/apis/apiregistration/validation)."""

from __future__ import annotations

import base64
from collections.abc import Iterator

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import METADATA, METADATA_UPDATE, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of
from mews.kube.emulated.kinds.server_conditions import api_service_committed


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


def _service_conditions(obj: Object, _: float) -> Row:
    service = spec_of(obj).get("service")
    named = f"{service.get('namespace', '')}/{service.get('name', '')}" if service else "Local"
    available = next((c for c in status_of(obj).get("conditions") or () if c["type"] == "Available"), None)
    text = "Unknown" if available is None else available["status"]
    if available is not None and available["status"] != "True":
        text = f"{text} ({available.get('reason', '')})"
    return [named, text]


RULES = Rules(
    printer=Printer(_service_conditions, is_part=True),
    after_commit=api_service_committed,
    validate=_service_errors,
    validate_status_update=_service_status_errors,
    metadata=MetadataChecks(
        name_texts=named_by_group_and_version,
        on_update=(METADATA_UPDATE, METADATA),
        status_leaves=("labels", "annotations", "finalizers", "ownerReferences"),
    ),
)
