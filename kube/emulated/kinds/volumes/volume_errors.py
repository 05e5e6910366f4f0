"""What is wrong with the sources of volumes, of pods and of persistent volumes (pkg/apis/core/validation)."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from mews.kube.api.quantities import parse
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.affinity_errors import node_selector_errors
from mews.kube.emulated.core.checks.common import Part, items
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.kinds.volumes.disk_source_errors import PERSISTENT_SOURCES, cinder_errors, iscsi_errors, needed

_ONE_TYPE = "may not specify more than 1 volume type"
_MODE_TEXT = "must be a number between 0 and 0777 (octal), both inclusive"
_PARTITION_TEXT = "must be between 1 and 255, inclusive"
_DISK_BY_SUBSCRIPTION = (
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}"
)
_DISK_BY_URL = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd"
_HOST_PATH_TYPES = ("", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket")
_HOST_PORT = re.compile(r"(\[[^\[\]]*\]|[^:\[\]]*):[^:\[\]]*")


def no_steps_back(path: str, text: str) -> Iterator[FieldError]:
    """Yield a path without ``..``."""
    if ".." in text.split("/"):
        yield refusals.bad(path, text, "must not contain '..'")


def descending(path: str, text: str) -> Iterator[FieldError]:
    """Yield a relative path without ``..``."""
    if text.startswith("/"):
        yield refusals.bad(path, text, "must be a relative path")
    yield from no_steps_back(path, text)


def unreserved(path: str, text: str) -> Iterator[FieldError]:
    """Yield a relative path that does not begin with two dots."""
    yield from descending(path, text)
    if text.startswith("..") and not text.startswith("../"):
        yield refusals.bad(path, text, "must not start with '..'")


def mode_errors(part: Part, path: str, name: str) -> Iterator[FieldError]:
    """Yield a file's mode, if it is given."""
    mode = part.get(name)
    if mode is not None and not 0 <= mode <= 0o777:
        yield refusals.bad(f"{path}.{name}", mode, _MODE_TEXT)


def key_errors(part: Part, path: str) -> Iterator[FieldError]:
    """Yield the keys that are shown as files."""
    for index, item in enumerate(items(part, "items")):
        here = f"{path}.items[{index}]"
        yield from needed(item, here, "key", "path")
        yield from unreserved(f"{here}.path", item.get("path", ""))
        yield from mode_errors(item, here, "mode")


def host_path_errors(source: Part, path: str) -> Iterator[FieldError]:
    """Yield a path of the node."""
    if not source.get("path"):
        yield refusals.required(f"{path}.path")
        return
    yield from no_steps_back(f"{path}.path", source["path"])
    kind = source.get("type")
    if kind is not None and kind not in _HOST_PATH_TYPES:
        yield refusals.unsupported(f"{path}.type", kind, _HOST_PATH_TYPES)


def _named_disk(name: str) -> Callable[[Part, str], Iterator[FieldError]]:
    def errors(source: Part, path: str) -> Iterator[FieldError]:
        path = path.replace("gcePersistentDisk", "persistentDisk")
        yield from needed(source, path, name)
        if not 0 <= source.get("partition", 0) <= 255:
            yield refusals.bad(f"{path}.partition", source["partition"], _PARTITION_TEXT)

    return errors


def _with(*fields: str) -> Callable[[Part, str], Iterator[FieldError]]:
    return lambda source, path: needed(source, path, *fields)


def _nfs_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from needed(source, path, "server", "path")
    if not source.get("path", "").startswith("/"):
        yield refusals.bad(f"{path}.path", source.get("path", ""), "must be an absolute path")


def _flocker_errors(source: Part, path: str) -> Iterator[FieldError]:
    name, uuid = source.get("datasetName", ""), source.get("datasetUUID", "")
    if not name and not uuid:
        yield refusals.required(path, "one of datasetName and datasetUUID is required")
    if name and uuid:
        text = "resource"
        yield FieldError(
            path, "FieldValueInvalid", f'"{text}": datasetName and datasetUUID can not be specified simultaneously'
        )
    if "/" in name:
        yield refusals.bad(f"{path}.datasetName", name, "must not contain '/'")


def _fc_errors(source: Part, path: str) -> Iterator[FieldError]:
    targets, wwids, lun = items(source, "targetWWNs"), items(source, "wwids"), source.get("lun")
    if not targets and not wwids:
        yield refusals.required(f"{path}.targetWWNs", "must specify either targetWWNs or wwids, but not both")
    if targets and wwids:
        text = "targetWWNs and wwids can not be specified simultaneously"
        yield refusals.bad(f"{path}.targetWWNs", [*targets], text)
    if targets and lun is None:
        yield refusals.required(f"{path}.lun", "lun is required if targetWWNs is specified")
    elif targets and not 0 <= lun <= 255:  # type: ignore[operator]
        yield refusals.bad(f"{path}.lun", lun, "must be between 0 and 255, inclusive")


def _flex_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from needed(source, path, "driver")
    for key in source.get("options") or ():
        if f".{key.partition('/')[0].lower()}".endswith((".kubernetes.io", ".k8s.io")):
            yield refusals.bad(f"{path}.options[{key}]", key, "kubernetes.io and k8s.io namespaces are reserved")


def _quobyte_errors(source: Part, path: str) -> Iterator[FieldError]:
    registry = source.get("registry", "")
    text = "must be a host:port pair or multiple pairs separated by commas"
    if not registry:
        yield refusals.required(f"{path}.registry", text)
    elif len(source.get("tenant", "")) > 64:
        yield refusals.required(f"{path}.tenant", "must be a UUID and may not exceed a length of 64 characters")
    else:
        for pair in registry.split(","):
            if not _HOST_PORT.fullmatch(pair):
                yield refusals.bad(f"{path}.registry", registry, text)
    yield from needed(source, path, "volume")


def _ceph_errors(source: Part, path: str) -> Iterator[FieldError]:
    return needed(source, path, "monitors")


def _azure_file_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from needed(source, path, "secretName", "shareName")
    if source.get("secretNamespace") == "":
        yield refusals.required(f"{path}.secretNamespace")


def _azure_disk_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from needed(source, path, "diskName", "diskURI")
    place, kind = source.get("diskURI", ""), source.get("kind")
    if "cachingMode" in source:
        yield from common.option(f"{path}.cachingMode", source["cachingMode"], ("None", "ReadOnly", "ReadWrite"))
    if kind is not None:
        yield from common.option(f"{path}.kind", kind, ("Dedicated", "Managed", "Shared"))
    if kind == "Managed" and not place.startswith("/subscriptions/"):
        yield refusals.unsupported(f"{path}.diskURI", place, (_DISK_BY_SUBSCRIPTION,))
    if kind is not None and kind != "Managed" and not place.startswith("https://"):
        yield refusals.unsupported(f"{path}.diskURI", place, (_DISK_BY_URL,))


def _storage_os_errors(source: Part, path: str) -> Iterator[FieldError]:
    for name in ("volumeName", "volumeNamespace"):
        if source.get(name):
            yield from common.label(f"{path}.{name}", source[name])
        elif name == "volumeName":
            yield refusals.required(f"{path}.{name}")
    reference = source.get("secretRef")
    if reference is not None:
        yield from needed(
            reference, f"{path}.secretRef", *(("name", "namespace") if "namespace" in reference else ("name",))
        )


def driver_name_errors(name: str, path: str) -> list[FieldError]:
    """Return the name of a CSI driver (ValidateCSIDriverName)."""
    found = [refusals.required(path)] if not name else []
    found += [common.too_long(path, 63)] if len(name) > 63 else []
    texts = [text.partition(": ")[2] for text in (error.text for error in names.subdomain_errors(path, name.lower()))]
    return found + common.bads(path, name, texts)


def _csi_volume_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from driver_name_errors(source.get("driver", ""), f"{path}.driver")
    secret = source.get("nodePublishSecretRef")
    if secret is not None and not secret.get("name"):
        yield refusals.required(f"{path}.nodePublishSecretRef.name")
    elif secret is not None:
        yield from names.subdomain_errors(f"{path}.name", secret["name"])


_CSI_SECRETS = (
    "controllerPublishSecretRef",
    "controllerExpandSecretRef",
    "nodePublishSecretRef",
    "nodeExpandSecretRef",
)


def _csi_persistent_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from driver_name_errors(source.get("driver", ""), f"{path}.driver")
    yield from needed(source, path, "volumeHandle")
    for name in _CSI_SECRETS:
        secret = source.get(name)
        for field in ("name", "namespace") if secret is not None else ():
            value = secret.get(field, "")  # type: ignore[union-attr]
            if not value:
                yield refusals.required(f"{path}.{name}.{field}")
            elif field == "name":
                yield from names.subdomain_errors(f"{path}.{name}.{field}", value)
            else:
                yield from common.label(f"{path}.{name}.{field}", value)


def _local_errors(source: Part, path: str) -> Iterator[FieldError]:
    if not source.get("path"):
        yield refusals.required(f"{path}.path")
        return
    yield from no_steps_back(f"{path}.path", source["path"])


def _claim_errors(source: Part, path: str) -> Iterator[FieldError]:
    return needed(source, path, "claimName")


def _empty_dir_errors(source: Part, path: str) -> Iterator[FieldError]:
    if "sizeLimit" in source and parse(source["sizeLimit"]) < 0:
        yield refusals.forbidden_field(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _git_errors(source: Part, path: str) -> Iterator[FieldError]:
    yield from needed(source, path, "repository")
    yield from descending(f"{path}.directory", source.get("directory", ""))


def _keyed(name: str) -> Callable[[Part, str], Iterator[FieldError]]:
    def errors(source: Part, path: str) -> Iterator[FieldError]:
        yield from needed(source, path, name)
        yield from mode_errors(source, path, "defaultMode")
        yield from key_errors(source, path)

    return errors


_COMMON: Mapping[str, Callable[[Part, str], Iterator[FieldError]]] = {
    "hostPath": host_path_errors,
    "gcePersistentDisk": _named_disk("pdName"),
    "awsElasticBlockStore": _named_disk("volumeID"),
    "glusterfs": _with("endpoints", "path"),
    "flocker": _flocker_errors,
    "nfs": _nfs_errors,
    "rbd": _with("monitors", "image"),
    "quobyte": _quobyte_errors,
    "cephfs": _ceph_errors,
    "iscsi": iscsi_errors,
    "cinder": cinder_errors,
    "fc": _fc_errors,
    "flexVolume": _flex_errors,
    "azureFile": _azure_file_errors,
    "vsphereVolume": _with("volumePath"),
    "photonPersistentDisk": _with("pdID"),
    "portworxVolume": _with("volumeID"),
    "azureDisk": _azure_disk_errors,
    "storageos": _storage_os_errors,
    "scaleIO": _with("gateway", "system", "volumeName"),
}
_POD_ORDER = (
    "emptyDir", "hostPath", "gitRepo", "gcePersistentDisk", "awsElasticBlockStore", "secret", "nfs", "iscsi",
    "glusterfs", "flocker", "persistentVolumeClaim", "rbd", "cinder", "cephfs", "quobyte", "downwardAPI", "fc",
    "flexVolume", "configMap", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume", "azureDisk",
    "storageos", "projected", "scaleIO", "csi", "ephemeral", "image",
)  # fmt: skip
_PERSISTENT_ORDER = (
    "hostPath", "gcePersistentDisk", "awsElasticBlockStore", "glusterfs", "flocker", "nfs", "rbd", "quobyte", "cephfs",
    "iscsi", "cinder", "fc", "flexVolume", "azureFile", "vsphereVolume", "photonPersistentDisk", "portworxVolume",
    "azureDisk", "scaleIO", "local", "storageos", "csi",
)  # fmt: skip
VOLUME_SOURCES = _PERSISTENT_ORDER
"""All fields of a persistent volume that say where it is."""

_SECOND_PATHS = {"cephfs": "cephFS", "downwardAPI": "downwarAPI"}
"""Where upstream complains of a second type under another name than that of the field."""

_OF_PODS: Mapping[str, Callable[[Part, str], Iterator[FieldError]]] = {
    **_COMMON,
    "emptyDir": _empty_dir_errors,
    "gitRepo": _git_errors,
    "secret": _keyed("secretName"),
    "configMap": _keyed("name"),
    "persistentVolumeClaim": _claim_errors,
    "csi": _csi_volume_errors,
}


def pod_source_errors(
    volume: Part, path: str, others: Mapping[str, Callable[[Part, str], Iterator[FieldError]]]
) -> Iterator[FieldError]:
    """Yield the source of a pod's volume; ``others``: the checks of sources that need more than themselves."""
    checked, given = {**_OF_PODS, **others}, [name for name in _POD_ORDER if volume.get(name) is not None]
    for index, name in enumerate(given):
        if index:
            yield refusals.forbidden_field(f"{path}.{_SECOND_PATHS.get(name, name)}", _ONE_TYPE)
        elif name in checked:
            yield from checked[name](volume[name], f"{path}.{name}")
    if not given:
        yield refusals.required(path, "must specify a volume type")


_ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")


def access_mode_errors(modes: Any, path: str) -> Iterator[FieldError]:
    """Yield how volumes may be used."""
    for mode in modes:
        if mode not in _ACCESS_MODES:
            yield refusals.unsupported(path, mode, _ACCESS_MODES)
    if "ReadWriteOncePod" in modes and set(modes) & set(_ACCESS_MODES[:3]):
        yield refusals.forbidden_field(path, "may not use ReadWriteOncePod with other access modes")


_INLINE = "in the context of inline volumes"


def persistent_volume_spec_errors(spec: Part, path: str, *, inline: bool = False) -> Iterator[FieldError]:
    """Yield what is wrong with a persistent volume, or with one in an attachment (ValidatePersistentVolumeSpec)."""
    if inline:
        for name in ("claimRef", "capacity"):
            if spec.get(name):
                yield refusals.forbidden_field(f"{path}.{name}", f"may not be specified {_INLINE}")
        if spec.get("csi") is None:
            yield refusals.required(f"{path}.csi", f"has to be specified {_INLINE}")
    if not items(spec, "accessModes"):
        yield refusals.required(f"{path}.accessModes")
    yield from access_mode_errors(items(spec, "accessModes"), f"{path}.accessModes")
    if not inline:
        yield from _capacity_errors(spec.get("capacity") or {}, f"{path}.capacity")
    yield from _reclaim_errors(spec, path, inline=inline)
    affinity = spec.get("nodeAffinity")
    if affinity is not None and inline:
        yield refusals.forbidden_field(f"{path}.nodeAffinity", f"may not be specified {_INLINE}")
    elif affinity is not None:
        yield from _affinity_errors(affinity, f"{path}.nodeAffinity")
    yield from _persistent_source_errors(spec, path)
    yield from _class_errors(spec, path, inline=inline)


def _capacity_errors(capacity: Mapping[str, str], path: str) -> Iterator[FieldError]:
    if not capacity:
        yield refusals.required(path)
    if set(capacity) != {"storage"}:
        yield refusals.unsupported(path, dict(sorted(capacity.items())) or None, ("storage",))
    for name, amount in capacity.items():
        if parse(amount) <= 0:
            yield refusals.bad(f"{path}[{name}]", amount, "must be greater than zero")


def _reclaim_errors(spec: Part, path: str, *, inline: bool) -> Iterator[FieldError]:
    policy, here = spec.get("persistentVolumeReclaimPolicy", ""), f"{path}.persistentVolumeReclaimPolicy"
    if policy and inline and policy != "Retain":
        yield refusals.forbidden_field(here, f"may only be Retain {_INLINE}")
    elif policy and not inline:
        yield from common.option(here, policy, ("Delete", "Recycle", "Retain"))


def _affinity_errors(affinity: Part, path: str) -> Iterator[FieldError]:
    required = affinity.get("required")
    if required is None:
        yield refusals.required(f"{path}.required", "must specify required node constraints")
    else:
        yield from node_selector_errors(required, f"{path}.required")


def _persistent_source_errors(spec: Part, path: str) -> Iterator[FieldError]:
    checked = {**_COMMON, **PERSISTENT_SOURCES, "local": _local_errors, "csi": _csi_persistent_errors}
    given = [name for name in _PERSISTENT_ORDER if spec.get(name) is not None]
    for index, name in enumerate(given):
        if index and name != "flexVolume":
            yield refusals.forbidden_field(f"{path}.{_SECOND_PATHS.get(name, name)}", _ONE_TYPE)
            continue
        yield from checked[name](spec[name], f"{path}.{name}")
        if name == "local" and spec.get("nodeAffinity") is None:
            yield refusals.required(f"{path}.nodeAffinity", "Local volume requires node affinity")
    if not given:
        yield refusals.required(path, "must specify a volume type")
    place = common.part_of(spec, "hostPath").get("path", "")
    is_root = "hostPath" in spec and posixpath.normpath(place or ".") == "/"
    if is_root and spec.get("persistentVolumeReclaimPolicy") == "Recycle":
        text = "may not be 'recycle' for a hostPath mount of '/'"
        yield refusals.forbidden_field(f"{path}.persistentVolumeReclaimPolicy", text)


def _class_errors(spec: Part, path: str, *, inline: bool) -> Iterator[FieldError]:
    storage_class, mode = spec.get("storageClassName", ""), spec.get("volumeMode")
    if storage_class and inline:
        yield refusals.forbidden_field(f"{path}.storageClassName", f"may not be specified {_INLINE}")
    elif storage_class:
        yield from names.subdomain_errors(f"{path}.storageClassName", storage_class)
    if mode is not None and inline and mode != "Filesystem":
        text = f"may not specify volumeMode other than Filesystem {_INLINE}"
        yield refusals.forbidden_field(f"{path}.volumeMode", text)
    elif mode is not None and not inline:
        yield from common.option(f"{path}.volumeMode", mode, ("Block", "Filesystem"))
    attributes = spec.get("volumeAttributesClassName")
    if attributes is None:
        return
    if not attributes:
        yield refusals.required(f"{path}.volumeAttributesClassName", "an empty string is disallowed")
    else:
        yield from names.subdomain_errors(f"{path}.volumeAttributesClassName", attributes)
    if spec.get("csi") is None:
        yield refusals.required(f"{path}.csi", "has to be specified when using volumeAttributesClassName")
