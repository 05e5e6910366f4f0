"""Which names, labels and annotations an object may have (k8s.io/apimachinery/pkg/util/validation)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mews.harness.clusters.embedded import refusals
from mews.harness.clusters.embedded.kinds import Kind
from mews.harness.clusters.embedded.refusals import Fault
from mews.kube.api.objects import Object

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
_MAX_SUBDOMAIN = 253
_MAX_LABEL = 63

_LABEL_NAMED = frozenset({"namespaces", "services"})
_PATH_NAMED = frozenset({"clusterrolebindings", "clusterroles", "rolebindings", "roles"})


DNS_1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is "
    "'[a-z]([-a-z0-9]*[a-z0-9])?')"
)


def is_dns_1035(text: str) -> bool:
    """An RFC 1035 label, as the names of custom kinds must be."""
    return len(text) <= _MAX_LABEL and re.fullmatch("[a-z]([-a-z0-9]*[a-z0-9])?", text) is not None


def is_label(text: str) -> bool:
    """An RFC 1123 label, as container and namespace names must be."""
    return len(text) <= _MAX_LABEL and re.fullmatch(_LABEL, text) is not None


def faults(kind: Kind, obj: Object) -> list[Fault]:
    """What is wrong with the metadata."""
    metadata = obj["metadata"]
    found = _name_faults(kind, metadata.get("name", ""))
    for key, value in (metadata.get("labels") or {}).items():
        found += _label_faults("metadata.labels", key, value)
    return found


def _name_faults(kind: Kind, name: str) -> list[Fault]:
    if not name:
        return [refusals.required("metadata.name", "name or generateName is required")]
    if kind.plural in _PATH_NAMED:
        return []
    pattern, limit, text = (
        (_LABEL, _MAX_LABEL, LABEL_TEXT)
        if kind.plural in _LABEL_NAMED and not kind.resource.group
        else (_SUBDOMAIN, _MAX_SUBDOMAIN, SUBDOMAIN_TEXT)
    )
    found = []
    if len(name) > limit:
        found.append(refusals.bad("metadata.name", name, f"must be no more than {limit} characters"))
    if not re.fullmatch(pattern, name):
        found.append(refusals.bad("metadata.name", name, text))
    return found


def qualified_faults(path: str, text: str) -> list[Fault]:
    """What is wrong with a qualified name: ``prefix/name`` or ``name``."""
    prefix, slash, name = text.rpartition("/")
    found = []
    if slash and not re.fullmatch(_SUBDOMAIN, prefix):
        found.append(refusals.bad(path, text, f"prefix part {SUBDOMAIN_TEXT}"))
    if not name:
        found.append(refusals.bad(path, text, "name part must be non-empty"))
    if not re.fullmatch(_QUALIFIED, name):
        found.append(refusals.bad(path, text, _QUALIFIED_TEXT))
    return found


def selector_faults(key: str, values: Sequence[str]) -> list[Fault]:
    """What is wrong with key and values of a label selector's requirement."""
    found = qualified_faults("<nil>", key)
    for index, value in enumerate(values):
        if not re.fullmatch(_VALUE, value):
            found.append(refusals.bad(f"values[{index}][{key}]", value, _VALUE_TEXT))
    return found


def _label_faults(path: str, key: str, value: str) -> list[Fault]:
    found = qualified_faults(path, key)
    if len(value) > _MAX_LABEL:
        found.append(refusals.bad(path, value, f"must be no more than {_MAX_LABEL} characters"))
    if not re.fullmatch(_VALUE, value):
        found.append(refusals.bad(path, value, _VALUE_TEXT))
    return found
