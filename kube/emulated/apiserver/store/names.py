"""Which names, labels and annotations an object may have (k8s.io/apimachinery/pkg/util/validation)."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.apiserver.store import limits, refusals
from mews.kube.emulated.apiserver.store.kinds import Kind
from mews.kube.emulated.apiserver.store.refusals import FieldError

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"

SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    f"end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    f"an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '{_LABEL}')"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    f"'{_VALUE}')"
)
_QUALIFIED_TEXT = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    f"character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_QUALIFIED}')"
)
_TWICE_QUALIFIED_TEXT = (
    "a qualified name must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    f"'{_QUALIFIED}') with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_MAX_SUBDOMAIN = 253
_MAX_LABEL = 63
_MAX_QUALIFIED = _MAX_SUBDOMAIN + 1 + _MAX_LABEL
_NAMES_KNOWN = 4096

_LABEL_NAMED = frozenset({"namespaces", "services"})
_PATH_NAMED = frozenset({"apiservices", "clusterrolebindings", "clusterroles", "rolebindings", "roles"})
_ADDRESS_NAMED = "ipaddresses"


DNS_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def is_dns_1035(text: str) -> bool:
    """An RFC 1035 label, as the names of custom kinds must be."""
    return len(text) <= _MAX_LABEL and re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", text) is not None


def dns_1035_faults(text: str) -> list[str]:
    """Why a text is no RFC 1035 label, in the server's words."""
    found = [f"must be no more than {_MAX_LABEL} characters"] if len(text) > _MAX_LABEL else []
    return [*found, *([] if re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", text) else [DNS_1035_TEXT])]


def label_texts(text: str) -> list[str]:
    """Why a text is no RFC 1123 label."""
    found = [f"must be no more than {_MAX_LABEL} characters"] if len(text) > _MAX_LABEL else []
    if re.fullmatch(_LABEL, text):
        return found
    return [*found, "must not contain dots" if re.fullmatch(_SUBDOMAIN, text) else LABEL_TEXT]


def segment_texts(text: str) -> list[str]:
    """Why a text may not stand between the slashes of a path."""
    if text in (".", ".."):
        return [f"may not be '{text}'"]
    return [f"may not contain '{sign}'" for sign in "/%" if sign in text]


def is_label(text: str) -> bool:
    """An RFC 1123 label, as container and namespace names must be."""
    return len(text) <= _MAX_LABEL and re.fullmatch(_LABEL, text) is not None


def faults(kind: Kind, obj: Object) -> list[FieldError]:
    """What is wrong with the metadata."""
    metadata = obj["metadata"]
    found = _name_faults(kind, metadata.get("name", ""), metadata.get("generateName", ""))
    found += limits.faults(kind, obj)
    return found + metadata_part_faults(metadata, plain=has_plain_finalizers(kind))


_PLAIN_FINALIZERS = frozenset(
    (
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "apiregistration.k8s.io",
        "coordination.k8s.io",
        "node.k8s.io",
        "policy",
    )
)


def has_plain_finalizers(kind: Kind) -> bool:
    """Whether the kind's group asks no more of finalizers than that they are qualified names."""
    return kind.custom or kind.resource.group in _PLAIN_FINALIZERS


def metadata_part_faults(
    metadata: Mapping[str, Any],
    *,
    labels_and_annotations_only: bool = False,
    plain: bool = False,
    finalizers: bool = True,
) -> list[FieldError]:
    """What is wrong with labels, annotations, owners and finalizers; ``plain``: any qualified finalizer will do."""
    found: list[FieldError] = []
    for key, value in (metadata.get("labels") or {}).items():
        found += label_pair_faults("metadata.labels", key, value)
    for key in metadata.get("annotations") or ():
        found += [
            FieldError(fault.path, fault.reason, fault.text.replace(refusals.shown(key.lower()), refusals.shown(key)))
            for fault in qualified_faults("metadata.annotations", key.lower())
        ]
    if labels_and_annotations_only:
        return found
    if "ownerReferences" in metadata:
        found += _owner_faults(metadata["ownerReferences"])
    if not finalizers:
        return found
    return found + finalizer_faults(metadata, plain=plain)


def finalizer_faults(metadata: Mapping[str, Any], *, plain: bool = False) -> list[FieldError]:
    """What is wrong with finalizers; ``plain``: any qualified one will do."""
    found: list[FieldError] = []
    for index, name in enumerate(metadata.get("finalizers") or ()):
        found += qualified_faults("metadata.finalizers", name)
        if "/" not in name and name not in STANDARD_FINALIZERS and not plain:
            found.append(refusals.bad(f"metadata.finalizers[{index}]", name, NOT_FINAL))
    return found


def _address_faults(name: str) -> list[FieldError]:
    """An IPAddress is named by its address (networking validation.go ValidateIPAddressName)."""
    try:
        canonical = str(ipaddress.ip_address(name))
    except ValueError:
        text = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
        return [refusals.bad("metadata.name", name, text)]
    if canonical != name:
        return [refusals.bad("metadata.name", name, f'must be in canonical form ("{canonical}")')]
    return []


def _name_faults(kind: Kind, name: str, prefix: str) -> list[FieldError]:
    if kind.plural == _ADDRESS_NAMED and not kind.custom and name:
        return _address_faults(name)
    if not name:
        return [refusals.required("metadata.name", "name or generateName is required")]
    if kind.plural in _PATH_NAMED:
        return [refusals.bad("metadata.name", name, text) for text in segment_texts(name)]
    pattern, limit, text = (
        (_LABEL, _MAX_LABEL, LABEL_TEXT)
        if kind.plural in _LABEL_NAMED and not kind.resource.group
        else (_SUBDOMAIN, _MAX_SUBDOMAIN, SUBDOMAIN_TEXT)
    )
    found = []
    if prefix and not re.fullmatch(pattern, prefix.rstrip("-") + ("a" if prefix.endswith("-") else "")):
        found.append(refusals.bad("metadata.generateName", prefix, text))
    if limit == _MAX_LABEL and "." in name:
        return [*found, refusals.bad("metadata.name", name, "must not contain dots")]
    if kind.plural == "services" and not kind.resource.group and not is_dns_1035(name):
        return [*found, refusals.bad("metadata.name", name, DNS_1035_TEXT)]
    if len(name) > limit:
        found.append(refusals.bad("metadata.name", name, f"must be no more than {limit} characters"))
    if not re.fullmatch(pattern, name):
        found.append(refusals.bad("metadata.name", name, text))
    return found


def qualified_texts(text: str) -> list[str]:
    """Why a text is no qualified name."""
    return [fault.text.partition(": ")[2] for fault in qualified_faults("", text)]


def qualified_faults(path: str, text: str) -> list[FieldError]:
    """What is wrong with a qualified name: ``prefix/name`` or ``name``."""
    return [] if len(text) <= _MAX_QUALIFIED and _is_qualified(text) else _qualified_faults(path, text)


@lru_cache(maxsize=_NAMES_KNOWN)
def _is_qualified(text: str) -> bool:
    """The same few labels and resources are named by every pod."""
    return not _qualified_faults("", text)


def _qualified_faults(path: str, text: str) -> list[FieldError]:
    parts = text.split("/")
    if len(parts) > 2:
        return [refusals.bad(path, text, _TWICE_QUALIFIED_TEXT)]
    found, name = [], parts[-1]
    if len(parts) == 2 and not parts[0]:
        found.append(refusals.bad(path, text, "prefix part must be non-empty"))
    elif len(parts) == 2:
        found += [refusals.bad(path, text, f"prefix part {fault}") for fault in subdomain_texts(parts[0])]
    if not name:
        found.append(refusals.bad(path, text, "name part must be non-empty"))
    elif len(name) > _MAX_LABEL:
        found.append(refusals.bad(path, text, f"name part must be no more than {_MAX_LABEL} characters"))
    if not re.fullmatch(_QUALIFIED, name):
        found.append(refusals.bad(path, text, _QUALIFIED_TEXT))
    return found


def subdomain_texts(text: str) -> list[str]:
    """Why a text is no RFC 1123 subdomain."""
    found = [f"must be no more than {_MAX_SUBDOMAIN} characters"] if len(text) > _MAX_SUBDOMAIN else []
    return [*found, *([] if re.fullmatch(_SUBDOMAIN, text) else [SUBDOMAIN_TEXT])]


def selector_faults(key: str, values: Sequence[str]) -> list[FieldError]:
    """What is wrong with key and values of a label selector's requirement."""
    found = qualified_faults("<nil>", key)
    for index, value in enumerate(values):
        if not re.fullmatch(_VALUE, value):
            found.append(refusals.bad(f"values[{index}][{key}]", value, _VALUE_TEXT))
    return found


def label_value_faults(path: str, value: str) -> list[FieldError]:
    """What is wrong with a label's value."""
    found = []
    if len(value) > _MAX_LABEL:
        found.append(refusals.bad(path, value, f"must be no more than {_MAX_LABEL} characters"))
    if not re.fullmatch(_VALUE, value):
        found.append(refusals.bad(path, value, _VALUE_TEXT))
    return found


def label_pair_faults(path: str, key: str, value: str) -> list[FieldError]:
    """What is wrong with a label."""
    return [*qualified_faults(path, key), *label_value_faults(path, value)]


def subdomain_faults(path: str, text: str) -> list[FieldError]:
    """What is wrong with an RFC 1123 subdomain."""
    return [refusals.bad(path, text, fault) for fault in subdomain_texts(text)]


def _owner_faults(owners: Sequence[Mapping[str, Any]]) -> list[FieldError]:
    path, found = "metadata.ownerReferences", []
    for owner in owners:
        if not owner.get("apiVersion") or owner["apiVersion"].count("/") > 1:
            found.append(refusals.bad(f"{path}.apiVersion", owner.get("apiVersion", ""), "version must not be empty"))
        for name in ("kind", "name", "uid"):
            if not owner.get(name):
                found.append(refusals.bad(f"{path}.{name}", "", "must not be empty"))
    controllers = [owner for owner in owners if owner.get("controller")]
    if len(controllers) > 1:
        one, other = (f"{owner['kind']}/{owner['name']}" for owner in controllers[:2])
        text = f'Only one reference can have Controller set to true. Found "true" in references for {one} and {other}'
        shown = [{name: owner[name] for name in _OWNER_ORDER if name in owner} for owner in owners]
        found.append(refusals.bad(path, shown, text))
    return found


_OWNER_ORDER = ("apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion")
STANDARD_FINALIZERS = ("foregroundDeletion", "orphan", "kubernetes")
NOT_FINAL = "name is neither a standard finalizer name nor is it fully qualified"
