"""What is wrong with a CustomResourceDefinition, in upstream's order.

Source: k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation. Upstream checks its internal form, in which
what all versions share stands in the spec: the paths of refusals show it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from mews.kube.api.objects import Object
from mews.kube.api.quoted_text import quoted
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.packs.definitions.conversion_errors import conversion_errors
from mews.kube.emulated.types.custom import field_paths, go_text, internal, structural
from mews.kube.emulated.types.custom.definition_rules import version_schema_errors

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_APPROVED = "api-approved.kubernetes.io"
_SEE = "see https://github.com/kubernetes/enhancements/pull/1111"
_MAX_SELECTABLE = 8
_ROOT_FIELDS = [
    "Description",
    "Type",
    "Format",
    "Title",
    "Maximum",
    "ExclusiveMaximum",
    "Minimum",
    "ExclusiveMinimum",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "MultipleOf",
    "Required",
    "Items",
    "Properties",
    "ExternalDocs",
    "Example",
    "XPreserveUnknownFields",
    "XValidations",
]


def definition_errors(crd: Object, old: Object | None = None) -> list[FieldError]:
    """Return what is wrong with a definition; of one that is changed ``old`` is what it was."""
    found: list[FieldError] = []
    found += _spec_errors(crd["spec"], old)
    if old is not None:
        found += _immutable_errors(crd, old)
    found += _stored_errors((crd.get("status") or {}).get("storedVersions") or [], crd["spec"].get("versions") or [])
    found += _approval_errors(crd, old)
    if crd["spec"].get("preserveUnknownFields") and not (old and old["spec"].get("preserveUnknownFields")):
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        found.append(go_text.wrong("spec.preserveUnknownFields", True, text))
    return found


def _spec_errors(spec: Mapping[str, Any], old: Object | None) -> Iterator[FieldError]:
    versions = spec.get("versions") or []
    common = internal.shared(versions)
    group = spec.get("group") or ""
    if not group:
        yield refusals.required("spec.group")
    elif wrong := [error.text.partition(": ")[2] for error in names.subdomain_errors("", group)]:
        yield go_text.wrong("spec.group", group, ",".join(wrong))
    elif "." not in group:
        yield go_text.wrong("spec.group", group, "should be a domain with at least one dot")
    yield from _enumerated("spec.scope", spec.get("scope") or "", ("Cluster", "Namespaced"))
    if _schema_of(common.schema) is None:
        for index, version in enumerate(versions):
            if _schema_of(version.get("schema")) is None or common.schema is not None:
                yield refusals.required(f"spec.versions[{index}].schema.openAPIV3Schema")
    if spec.get("preserveUnknownFields") and _has_default(versions):
        text = "must be false in order to use defaults in the schema"
        yield go_text.wrong("spec.preserveUnknownFields", True, text)
    yield from _version_errors(versions, common, old)
    yield from _together_errors(spec.get("versions"), common)
    yield from _names_errors(spec.get("names") or {})
    yield from _shared_errors(versions, common, old)
    conversion = spec.get("conversion") or {}
    if conversion.get("strategy", "None") != "None" and spec.get("preserveUnknownFields"):
        text = "must be None if spec.preserveUnknownFields is true"
        yield go_text.wrong("spec.conversion.strategy", conversion.get("strategy"), text)
    yield from conversion_errors(conversion, old)


def _schema_of(given: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    schema = (given or {}).get("openAPIV3Schema")
    return schema if isinstance(schema, Mapping) else None


def _has_default(versions: Sequence[Mapping[str, Any]]) -> bool:
    schemas = (_schema_of(version.get("schema")) for version in versions)
    return any(part.get("default") is not None for schema in schemas for part in internal.parts(schema))


def _enumerated(path: str, value: str, allowed: tuple[str, ...]) -> Iterator[FieldError]:
    if not value:
        yield refusals.required(path)
    elif value not in allowed:
        yield go_text.unsupported(path, value, allowed)


def _version_errors(
    versions: Sequence[Mapping[str, Any]], common: internal.Shared, old: Object | None
) -> Iterator[FieldError]:
    for index, version in enumerate(versions):
        path, name = f"spec.versions[{index}]", version.get("name") or ""
        if wrong := names.dns_1035_errors(name):
            yield go_text.wrong(f"{path}.name", name, ",".join(wrong))
        yield from _deprecation_errors(version, f"{path}.deprecationWarning")
        subresources = version.get("subresources") or {}
        if common.schema is None:
            schema, has_status = _schema_of(version.get("schema")), subresources.get("status") is not None
            yield from _root_errors(schema, f"{path}.schema", has_status, old, name)
        if common.subresources is None:
            yield from _scale_errors(subresources, f"{path}.subresources")
        if common.columns is None:
            yield from _column_errors(version.get("additionalPrinterColumns") or [], path)
        if common.fields is None and version.get("selectableFields"):
            schema = _schema_of(version.get("schema"))
            if common.schema is not None or schema is None:
                text = "may only be set when `version.schema.openAPIV3Schema` is not included"
                yield go_text.wrong(f"{path}.selectableFields", "", text)
            else:
                yield from _selectable_errors(version["selectableFields"], schema, f"{path}.selectableFields")


def _deprecation_errors(version: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    text = version.get("deprecationWarning")
    if text is None:
        return
    if not version.get("deprecated"):
        yield go_text.wrong(path, text, "can only be set for deprecated versions")
        return
    if len(text.encode()) > 256:
        yield go_text.wrong(path, text, "must be <= 256 characters long")
    if not text:
        yield go_text.wrong(path, text, "must not be an empty string")
    at = 0
    for char in text:
        if not char.isprintable():
            found = f"must only contain printable UTF-8 characters; non-printable character found at index {at}"
            yield go_text.wrong(path, text, found)
            break
        at += len(char.encode())


def _root_errors(
    schema: Mapping[str, Any] | None, path: str, has_status: bool, old: Object | None, version: str
) -> Iterator[FieldError]:
    if schema is None:
        return
    here = f"{path}.openAPIV3Schema"
    above = list(_root_with_status_errors(schema, here)) if has_status else []
    if schema.get("nullable"):
        above.append(refusals.forbidden_field(f"{here}.nullable", "nullable cannot be true at the root"))
    yield from above
    unchanged = _is_unchanged(schema, version, old)
    yield from version_schema_errors(schema, here, unchanged=unchanged, above=bool(above))


def _is_unchanged(schema: Mapping[str, Any], version: str, old: Object | None) -> bool:
    known = [one for one in (old["spec"].get("versions") or [] if old else []) if one.get("name") == version]
    return any(_schema_of(one.get("schema")) == schema for one in known)


def _root_with_status_errors(schema: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """The status is checked apart, so nothing but the ways to it may stand at the root."""
    given_state = internal.schema_struct(schema)
    for name, value in given_state.items():
        if not value and (value is None or isinstance(value, (str, bool))):
            continue
        if name == "Type" and value != "object":
            text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            yield go_text.wrong(f"{path}.type", value, text)
            return
        if name not in _ROOT_FIELDS:
            fields = " ".join(_ROOT_FIELDS)
            text = f"only [{fields}] fields are allowed at the root of the schema if the status subresource is enabled"
            yield FieldError(path, "FieldValueInvalid", f"{go_text.struct_text(given_state)}: {text}")
            return


def _together_errors(given: Sequence[Mapping[str, Any]] | None, common: internal.Shared) -> Iterator[FieldError]:
    versions = given or ()
    structs = [internal.version_struct(version, common) for version in versions]
    shown = go_text.struct_text(None if given is None else structs)
    if len({version.get("name") for version in versions}) != len(versions):
        yield FieldError("spec.versions", "FieldValueInvalid", f"{shown}: must contain unique version names")
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = f"{shown}: must have exactly one version marked as storage version"
        yield FieldError("spec.versions", "FieldValueInvalid", text)
    first = versions[0].get("name") if versions else ""
    if first and (wrong := names.dns_1035_errors(first)):
        yield go_text.wrong("spec.version", first, ",".join(wrong))


def _names_errors(given: Mapping[str, Any]) -> Iterator[FieldError]:
    for key in ("plural", "singular", "kind", "listKind"):
        if not given.get(key):
            yield refusals.required(f"spec.names.{key}")
    yield from name_errors(given, "spec.names")


def name_errors(given: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    """Yield what is wrong with names, asked for or accepted, as far as they are there."""
    for key in ("plural", "singular", "kind", "listKind"):
        value = given.get(key) or ""
        mixed = key in ("kind", "listKind")
        if value and (wrong := names.dns_1035_errors(value.lower() if mixed else value)):
            prefix = "may have mixed case, but should otherwise match: " if mixed else ""
            yield go_text.wrong(f"{path}.{key}", value, prefix + ",".join(wrong))
    for index, name in enumerate(given.get("shortNames") or ()):
        if wrong := names.dns_1035_errors(name):
            yield go_text.wrong(f"{path}.shortNames[{index}]", name, ",".join(wrong))
    if given.get("kind") and given["kind"] == given.get("listKind"):
        yield go_text.wrong(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same")
    for index, name in enumerate(given.get("categories") or ()):
        if wrong := names.dns_1035_errors(name):
            yield go_text.wrong(f"{path}.categories[{index}]", name, ",".join(wrong))


def _shared_errors(
    versions: Sequence[Mapping[str, Any]], common: internal.Shared, old: Object | None
) -> Iterator[FieldError]:
    schema = _schema_of(common.schema)
    has_status = any((version.get("subresources") or {}).get("status") is not None for version in versions)
    name = versions[0].get("name", "") if versions else ""
    yield from _root_errors(schema, "spec.validation", has_status, old, name)
    yield from _scale_errors(common.subresources or {}, "spec.subresources")
    yield from _column_errors(common.columns or [], "spec")
    if common.fields:
        if common.schema is None:
            yield go_text.wrong("spec.selectableFields", "", "may only be set when validations.schema is included")
        else:
            yield from _selectable_errors(common.fields, schema or {}, "spec.selectableFields")


def _scale_errors(subresources: Mapping[str, Any], path: str) -> Iterator[FieldError]:
    scale = subresources.get("scale")
    if scale is None:
        return
    for key, root in (("specReplicasPath", ".spec."), ("statusReplicasPath", ".status.")):
        value, where = scale.get(key) or "", f"{path}.scale.{key}"
        if not value:
            yield refusals.required(where)
        elif not value.startswith("."):
            yield go_text.wrong(where, value, "must be a simple json path starting with .")
        elif not value.startswith(root):
            yield go_text.wrong(where, value, f"should be a json path under {root[:-1]}")
    value, where = scale.get("labelSelectorPath") or "", f"{path}.scale.labelSelectorPath"
    if value and not value.startswith("."):
        yield go_text.wrong(where, value, "must be a simple json path starting with .")
    elif value and not value.startswith((".spec.", ".status.")):
        yield go_text.wrong(where, value, "should be a json path under either .spec or .status")


def _column_errors(columns: Sequence[Mapping[str, Any]], place: str) -> Iterator[FieldError]:
    for index, column in enumerate(columns):
        path = f"{place}.additionalPrinterColumns[{index}]"
        if not column.get("name"):
            yield refusals.required(f"{path}.name")
        types = f"must be one of {','.join(_COLUMN_TYPES)}"
        if not column.get("type"):
            yield refusals.required(f"{path}.type", types)
        elif column["type"] not in _COLUMN_TYPES:
            yield go_text.wrong(f"{path}.type", column["type"], types)
        if column.get("format") and column["format"] not in _COLUMN_FORMATS:
            yield go_text.wrong(f"{path}.format", column["format"], f"must be one of {','.join(_COLUMN_FORMATS)}")
        if not column.get("jsonPath"):
            yield refusals.required(f"{path}.JSONPath")
        elif not column["jsonPath"].startswith("."):
            text = "must be a simple json path starting with ."
            yield go_text.wrong(f"{path}.JSONPath", column["jsonPath"], text)


def _selectable_errors(
    fields: Sequence[Mapping[str, Any]], schema: Mapping[str, Any], path: str
) -> Iterator[FieldError]:
    if text := structural.unsupported(schema):
        where = f"{path.removesuffix('.selectableFields')}.schema.openAPIV3Schema"
        yield go_text.wrong(where, "", text)
        schema = {}  # upstream goes on without one
    seen = set()
    for index, field in enumerate(fields):
        given, where = field.get("jsonPath") or "", f"{path}[{index}].jsonPath"
        if not given:
            yield refusals.required(where)
            continue
        try:
            found, part = field_paths.resolve(given, schema, arrays=False)
        except field_paths.FieldPathError as error:
            yield go_text.wrong(where, given, f"is an invalid path: {error}")
            continue
        if found.partition(".")[0] == "metadata":
            yield go_text.wrong(where, given, "must not point to fields in metadata")
        if part.get("type") not in ("string", "boolean", "integer"):
            text = "must point to a field of type string, boolean or integer. Enum string fields and strings with "
            yield go_text.wrong(where, given, f"{text}formats are allowed.")
        if found in seen:
            yield refusals.duplicate(where, given)
        seen.add(found)
    if len(seen) > _MAX_SELECTABLE:
        text = f"{len(seen)}: must have at most {_MAX_SELECTABLE} items"
        yield FieldError(path, "FieldValueTooMany", text)


def _immutable_errors(crd: Object, old: Object) -> Iterator[FieldError]:
    conditions = (old.get("status") or {}).get("conditions") or ()
    is_established = any(one["type"] == "Established" and one["status"] == "True" for one in conditions)
    paths: list[tuple[str, ...]] = [("scope",), ("names", "kind")] if is_established else []
    for path in [*paths, ("group",), ("names", "plural")]:
        before, after = old["spec"], crd["spec"]
        for name in path:
            before, after = (before or {}).get(name), (after or {}).get(name)
        if before != after:
            yield go_text.wrong(f"spec.{'.'.join(path)}", after or "", "field is immutable")


def _stored_errors(stored: Sequence[str], versions: Sequence[Mapping[str, Any]]) -> Iterator[FieldError]:
    path = "status.storedVersions"
    if not stored:
        yield FieldError(path, "FieldValueInvalid", "null: must have at least one stored version")
        return
    left = {name: index for index, name in enumerate(stored)}
    for version in versions:  # a version that is named twice is found once
        if left.pop(version.get("name", ""), None) is None and version.get("storage"):
            yield go_text.wrong(path, list(stored), f"must have the storage version {version.get('name', '')}")
    for name, index in left.items():
        text = (
            f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
            f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
            "status.storedVersions"
        )
        yield go_text.wrong(f"{path}[{index}]", name, text)


def approval(crd: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return the state of a protected group's approval and why it is that; None for a group of one's own."""
    group = crd["spec"].get("group") or ""
    if not any(group == root or group.endswith(f".{root}") for root in ("k8s.io", "kubernetes.io")):
        return None
    given = (crd["metadata"].get("annotations") or {}).get(_APPROVED) or ""
    if not given:
        return "Missing", f'protected groups must have approval annotation "{_APPROVED}", {_SEE}'
    if given.startswith("unapproved"):
        return "Unapproved", f"not approved: {quoted(given)}"
    try:
        parts = urlsplit(given)
    except ValueError:
        parts = urlsplit("")
    if parts.scheme and parts.netloc:
        return "Approved", f"approved in {given}"
    text = f'protected groups must have approval annotation "{_APPROVED}" with either a URL or a reason starting with '
    return "Invalid", f'{text}"unapproved", {_SEE}'


def _approval_errors(crd: Object, old: Object | None) -> Iterator[FieldError]:
    state = approval(crd)
    if state is None or (old is not None and (known := approval(old)) is not None and known[0] == state[0]):
        return
    path = f"metadata.annotations[{_APPROVED}]"
    if state[0] == "Missing":
        yield refusals.required(path, state[1])
    elif state[0] == "Invalid":
        yield go_text.wrong(path, crd["metadata"]["annotations"][_APPROVED], state[1])
