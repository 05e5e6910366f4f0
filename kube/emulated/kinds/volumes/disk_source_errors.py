"""What is wrong with disks whose secret is in another namespace when a persistent volume names them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.common import Part
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError

_IQN = re.compile(r"iqn\.\d{4}-\d{2}\.([A-Za-z0-9.-]+)(:[^,;*&$|\s]+)$")
_EUI = re.compile(r"eui.[A-Za-z0-9]{16}$")
_NAA = re.compile(r"naa.([A-Za-z0-9]{16}|[A-Za-z0-9]{32})$")
_FORM = "must be valid format"


def needed(part: Part, path: str, *fields: str) -> Iterator[FieldError]:
    """Fields that may not be empty."""
    for name in fields:
        if not part.get(name):
            yield refusals.required(f"{path}.{name}")


def cinder_errors(source: Part, path: str) -> Iterator[FieldError]:
    """Yield a disk of Cinder, of a pod."""
    yield from needed(source, path, "volumeID")
    yield from _secret_errors(source, path, "name")


def _secret_errors(source: Part, path: str, *fields: str) -> Iterator[FieldError]:
    if source.get("secretRef") is not None:
        yield from needed(source["secretRef"], f"{path}.secretRef", *fields)


def _persistent_cinder_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from needed(source, path, "volumeID")
    yield from _secret_errors(source, path, "name", "namespace")


def _persistent_storage_os_errors(source: Part, path: str) -> Iterator[FieldError]:
    name, space = source.get("volumeName", ""), source.get("volumeNamespace", "")
    yield from common.label(f"{path}.volumeName", name) if name else [refusals.required(f"{path}.volumeName")]
    if space:
        yield from common.label(f"{path}.volumeNamespace", space)
    yield from _secret_errors(source, path, "name", "namespace")


def iscsi_errors(source: Part, path: str) -> Iterator[FieldError]:
    """Return a disk of iSCSI, of a pod."""
    return _iscsi_errors(source, path, f"{_FORM} starting with iqn, eui, or naa")


def _persistent_iscsi_errors(source: Part, path: str) -> Iterator[FieldError]:
    return _iscsi_errors(source, path, _FORM)


def _iscsi_errors(source: Part, path: str, form: str) -> Iterator[FieldError]:
    yield from needed(source, path, "targetPortal")
    name = source.get("iqn", "")
    yield from _iqn_errors(name, f"{path}.iqn", form) if name else [refusals.required(f"{path}.iqn")]
    if not 0 <= source.get("lun", 0) <= 255:
        yield refusals.bad(f"{path}.lun", source["lun"], "must be between 0 and 255, inclusive")
    if (source.get("chapAuthDiscovery") or source.get("chapAuthSession")) and source.get("secretRef") is None:
        yield refusals.required(f"{path}.secretRef")
    yield from _secret_errors(source, path, "name")
    initiator = source.get("initiatorName")
    if initiator is not None:
        yield from _iqn_errors(initiator, f"{path}.initiatorname", form)


def _iqn_errors(name: str, path: str, form: str) -> Iterator[FieldError]:
    if not name.startswith(("iqn", "eui", "naa")):
        yield refusals.bad(path, name, form)
    elif not any(pattern.match(name) for pattern in (_IQN, _EUI, _NAA)):
        yield refusals.bad(path, name, _FORM)


PERSISTENT_SOURCES: Mapping[str, Callable[[Part, str], Iterator[FieldError]]] = {
    "cinder": _persistent_cinder_errors,
    "iscsi": _persistent_iscsi_errors,
    "storageos": _persistent_storage_os_errors,
}
