"""Bodies of writes: decoded by the types of their kind, with what they should not hold told or refused.

Source: contract apiserver.md section 2 (bad body, unknown fields).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from mews.kube.api.errors import ApiError, BadRequestError, InvalidError
from mews.kube.api.objects import Object, clone
from mews.kube.api.resources import Resource
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.request import WriteRequest
from mews.kube.emulated.types import strictness
from mews.kube.emulated.types.decoding import decode_patched, decoder
from mews.kube.emulated.types.gotypes import Field, Struct, root_of

_META = "meta/v1.ObjectMeta"

Refuse = Callable[[Kind, str], ApiError]
"""How a complaint is put: ``refused`` for bodies, ``unpatchable`` for what a patch makes."""


def refused(kind: Kind, text: str) -> ApiError:
    """400: the body cannot be decoded."""
    return _cannot_handle(kind.resource, text)


def _cannot_handle(resource: Resource, text: str) -> BadRequestError:
    name = resource.kind
    return BadRequestError(f'{name} in version "{resource.version}" cannot be handled as a {name}: {text}')


def unpatchable(shown: str) -> Refuse:
    """422: what the patch makes cannot be decoded; ``shown`` is the patch or its result, as Go prints it."""

    def refuse(_kind: Kind, text: str) -> ApiError:
        message = f'Invalid value: "{shown}": {text}'
        causes = [{"reason": "FieldValueInvalid", "message": message, "field": "patch"}]
        return InvalidError(f' "" is invalid: patch: {message}', details={"causes": causes})

    return refuse


def decode(
    kind: Kind,
    body: Mapping[str, Any],
    request: WriteRequest,
    refuse: Refuse = refused,
    stored: Object | None = None,
) -> Object:
    """Return the object that the server makes of a body, which may be what a patch made of a ``stored`` one; the body
    itself stays as it is.

    Raises what ``refuse`` makes for a value of a wrong type, and in strict validation for an unknown or repeated field.
    """
    root = shape_of(kind)
    unknown: list[str] = []
    try:
        if kind.custom:
            obj: Object = _decode_custom(kind, body, unknown, refuse)
        else:
            obj = (
                decoder(root.ref)(body, unknown) if stored is None else decode_patched(root.ref, body, stored, unknown)
            )
    except ValueError:
        text = strictness.mismatch(body, root)
        raise refuse(kind, text.replace("ObjectMeta.metadata.", "ObjectMeta.") if kind.custom else text) from None
    if request.validation != "Ignore" and (unknown or request.duplicates):
        errors = _errors(kind, body, unknown, request)
        if request.validation == "Strict":
            raise refuse(kind, f"strict decoding error: {', '.join(errors)}")
        request.warnings.extend(errors)
    return obj


def _decode_action(resource: Resource, release: str, body: Mapping[str, Any], request: WriteRequest) -> Object:
    """Return the body of a subresource's own kind (Binding, Eviction, Scale, TokenRequest); refused as ``decode``
    does."""
    root = root_of(resource, release)
    if root is None:
        return dict(body)
    unknown: list[str] = []
    try:
        obj: Object = decoder(root.ref)(body, unknown)
    except ValueError:
        raise _cannot_handle(resource, strictness.mismatch(body, root)) from None
    if request.validation != "Ignore" and (unknown or request.duplicates):
        errors = strictness.strict_errors(request.raw or body, root)
        if request.validation == "Strict":
            raise _cannot_handle(resource, f"strict decoding error: {', '.join(errors)}")
        request.warnings.extend(errors)
    return obj


def decode_subresource(kind: Kind, name: str, body: Mapping[str, Any], request: WriteRequest) -> Object:
    """Return the body of a subresource of this kind, decoded by the kind that travels through it."""
    sub = kind.subresource(name)
    assert sub is not None
    return _decode_action(Resource(sub.group, sub.version, sub.name, sub.kind), kind.release, body, request)


def shape_of(kind: Kind) -> Struct:
    """Return the struct of a kind; of a custom one only the metadata is typed."""
    found = None if kind.custom else root_of(kind.resource, kind.release)
    if found is not None:
        return found
    name = f"{kind.resource.version}.{kind.resource.kind}"
    return Struct(name, {"metadata": Field("metadata", _META)})


def _decode_custom(kind: Kind, body: Mapping[str, Any], unknown: list[str], refuse: Refuse) -> Object:
    obj: Object = clone(body)
    if obj.get("metadata") is not None:
        lost: list[str] = []
        obj["metadata"] = decoder(_META)(obj["metadata"], lost)
        unknown += [f"metadata.{name}" for name in lost]
    else:
        obj["metadata"] = {}
    if kind.schema is not None:
        from mews.kube.emulated.types.custom import embedded, trees

        # As upstream decodes: heads of embedded resources, unknown fields, nulls; defaults come after conversion.
        wrong, lost = embedded.coerce(obj, kind.schema)
        if wrong:
            raise refuse(kind, str(wrong[0]))
        unknown += sorted({*trees.prune(obj, kind.schema), *lost})
        trees.drop_nulls(obj, kind.schema)
    return obj


def _errors(kind: Kind, body: Mapping[str, Any], unknown: list[str], request: WriteRequest) -> list[str]:
    if kind.custom:
        return [*request.duplicates, *(f'unknown field "{path}"' for path in unknown)]
    if request.raw:
        return strictness.strict_errors(request.raw, shape_of(kind))
    return [*request.duplicates, *strictness.strict_errors(body, shape_of(kind))]
