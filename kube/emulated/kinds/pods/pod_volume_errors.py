"""What is wrong with sources of volumes that only pods have (pkg/apis/core/validation)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import part_errors
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.pods.field_references import IN_FILES, field_reference_errors, resource_reference_errors
from mews.kube.emulated.kinds.volumes.disk_source_errors import needed
from mews.kube.emulated.kinds.volumes.persistent_volume_claims import claim_spec_errors
from mews.kube.emulated.kinds.volumes.volume_errors import key_errors, mode_errors, unreserved

_SHORTEST_TOKEN_S, _LONGEST_TOKEN_S = 600, 1 << 32
_TWICE = "conflicting duplicate paths"


def _downward_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from mode_errors(source, path, "defaultMode")
    for file in items(source, "items"):
        yield from _file_errors(file, path)


def _file_errors(file: Part, path: str) -> Iterator[FieldError]:
    if not file.get("path"):
        yield refusals.required(f"{path}.path")
    yield from unreserved(f"{path}.path", file.get("path", ""))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        yield from field_reference_errors(field, f"{path}.fieldRef", IN_FILES)
        if resource is not None:
            text = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield refusals.bad(path, "resource", text)
    elif resource is not None:
        yield from resource_reference_errors(resource, f"{path}.resourceFieldRef", named=True)
    else:
        yield refusals.required(path, "one of fieldRef and resourceFieldRef is required")
    yield from mode_errors(file, path, "mode")


def _projected_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from mode_errors(source, path, "defaultMode")
    seen: set[str] = set()
    for index, part in enumerate(items(source, "sources")):
        here = f"{path}.sources[{index}]"
        given = [name for name in _PROJECTIONS if part.get(name) is not None]
        for name in given:
            yield from _PROJECTIONS[name](part[name], f"{here}.{name}", path)
            yield from _path_errors(part[name], name, path, seen)
        if len(given) > 1:
            yield refusals.forbidden_field(here, "may not specify more than 1 volume type per source")


def _path_errors(part: Part, name: str, path: str, seen: set[str]) -> Iterator[FieldError]:
    files = [part] if name == "clusterTrustBundle" else items(part, "items")
    for file in files:
        place = file.get("path", "")
        if place in seen and place:
            yield refusals.bad(path, part.get("name", "") if name in ("secret", "configMap") else place, _TWICE)
        seen.add(place)


def _keyed_errors(part: Part, here: str, _: str) -> Iterator[FieldError]:
    yield from needed(part, here, "name")
    yield from key_errors(part, here)


def _own_errors(part: Part, here: str, _: str) -> Iterator[FieldError]:
    for file in items(part, "items"):
        yield from _file_errors(file, here)


def _token_errors(part: Part, here: str, path: str) -> Iterator[FieldError]:
    lifetime = part.get("expirationSeconds", 3600)
    if lifetime < _SHORTEST_TOKEN_S:
        yield refusals.bad(f"{here}.expirationSeconds", lifetime, "may not specify a duration less than 10 minutes")
    if lifetime > _LONGEST_TOKEN_S:
        text = "may not specify a duration larger than 2^32 seconds"
        yield refusals.bad(f"{here}.expirationSeconds", lifetime, text)
    if not part.get("path"):
        yield refusals.required(f"{path}.path")
    else:
        yield from unreserved(f"{path}.path", part["path"])


def _bundle_errors(part: Part, here: str, _: str) -> Iterator[FieldError]:
    name, signer = part.get("name"), part.get("signerName")
    if name is not None and signer is not None:
        yield refusals.bad(here, _bundle_shown(part), "only one of name and signerName may be used")
    elif name is not None:
        if not name:
            yield refusals.required(f"{here}.name", "must be a valid object name")
        for text in names.subdomain_texts(name):
            yield refusals.bad(f"{here}.name", name, f"not a valid clustertrustbundlename: {text}")
        if part.get("labelSelector") is not None:
            text = "labelSelector must be unset if name is specified"
            yield refusals.bad(f"{here}.labelSelector", part["labelSelector"], text)
    elif signer is not None:
        if not signer:
            yield refusals.required(f"{here}.signerName", "must be a valid signer name")
        yield from signer_errors(signer, f"{here}.signerName")
        yield from selector_errors(part_of(part, "labelSelector"), f"{here}.labelSelector")
    else:
        yield refusals.required(here, "either name or signerName must be specified")
    if not part.get("path"):
        yield refusals.required(f"{here}.path")
    yield from unreserved(f"{here}.path", part.get("path", ""))


def _bundle_shown(part: Part) -> dict[str, object]:
    fields = ("name", "signerName", "labelSelector", "optional", "path")
    return {f"{field[0].upper()}{field[1:]}": part.get(field) for field in fields}


_LONGEST_DOMAIN = 253
_LONGEST_SIGNER = 2 * _LONGEST_DOMAIN + 63 + 2


def signer_errors(signer: str, path: str) -> Iterator[FieldError]:
    """Yield the name of a signer: a domain and a path (ValidateSignerName)."""
    if not signer:
        yield refusals.required(path)
        return
    if signer.count("/") != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield refusals.bad(path, signer, text)
        return
    domain, _, rest = signer.partition("/")
    if len(domain) > _LONGEST_DOMAIN:
        yield FieldError(path, "FieldValueTooLong", f"may not be more than {_LONGEST_DOMAIN} bytes")
    yield from _part_errors(path, domain, names.label_texts)
    if "." not in domain:
        yield refusals.bad(path, domain, "should be a domain with at least two segments separated by dots")
    yield from _part_errors(path, rest, names.subdomain_texts)
    if len(signer) > _LONGEST_SIGNER:
        yield FieldError(path, "FieldValueTooLong", f"may not be more than {_LONGEST_SIGNER} bytes")


def _part_errors(path: str, part: str, texts: Callable[[str], list[str]]) -> Iterator[FieldError]:
    """Yield what is wrong with the first wrong one of the labels of a part."""
    wrong = next((label for label in part.split(".") if texts(label)), None)
    if wrong is not None:
        for text in texts(wrong):
            yield refusals.bad(path, part, f"validating label {refusals.shown(wrong)}: {text}")


_PROJECTIONS: Mapping[str, Callable[[Part, str, str], Iterator[FieldError]]] = {
    "secret": _keyed_errors,
    "configMap": _keyed_errors,
    "downwardAPI": _own_errors,
    "serviceAccountToken": _token_errors,
    "clusterTrustBundle": _bundle_errors,
}


def _ephemeral_errors(source: Part, path: str) -> Iterator[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        yield refusals.required(f"{path}.volumeClaimTemplate")
        return
    here = f"{path}.volumeClaimTemplate"
    for error in part_errors(part_of(template, "metadata")):
        yield FieldError(f"{here}.{error.path}", error.reason, error.text)
    yield from claim_spec_errors(part_of(template, "spec"), f"{here}.spec")


def _image_errors(source: Part, path: str) -> Iterator[FieldError]:
    policy = source.get("pullPolicy", "")
    if not source.get("reference"):
        yield refusals.required(f"{path}.reference")
    if not policy:
        yield refusals.required(f"{path}.pullPolicy")
    else:
        yield from common.option(f"{path}.pullPolicy", policy, ("Always", "IfNotPresent", "Never"))


POD_SOURCES: Mapping[str, Callable[[Part, str], Iterator[FieldError]]] = {
    "downwardAPI": _downward_errors,
    "projected": _projected_errors,
    "ephemeral": _ephemeral_errors,
    "image": _image_errors,
}
