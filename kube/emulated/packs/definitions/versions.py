"""The versions of a custom kind: objects are stored in one, and shown and taken in all that are served.

Source: k8s.io/apiextensions-apiserver/pkg/apiserver (conversion, customresource_handler.go): an object that comes from
another version is pruned and defaulted by the schema of the version that it becomes.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mews.kube.api.objects import Object, clone
from mews.kube.emulated.packs.definitions.conversion_webhook import WebhookConverter
from mews.kube.emulated.types.custom import trees

if TYPE_CHECKING:
    from mews.kube.emulated.core.store.store import Store

_REMEMBERED = 4096
"""Converted objects of a version that are kept: lists and watches show the same ones again and again."""

Form = Callable[[Object], Object]


def forms(store: Store, crd: Mapping[str, Any], version: Mapping[str, Any]) -> tuple[Form, Form] | None:
    """Return how a version shows stored objects, and how it makes them ready to be stored; None where they are stored
    as they are shown: it is the only one, and has been as it is since there have been objects."""
    spec = crd["spec"]
    has_changed = crd["metadata"].get("generation", 1) > 1
    if len(spec["versions"]) == 1 and not has_changed:
        return None
    by_webhook = (spec.get("conversion") or {}).get("strategy") == "Webhook"
    convert = WebhookConverter(store, crd).convert if by_webhook else _renamed
    storage = next(one for one in spec["versions"] if one.get("storage"))
    show = _form(convert, spec["group"], version)
    if has_changed:
        show = _read_through(_schemas(spec), show)
    return _shown(show), _form(convert, spec["group"], storage)


def _schemas(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{spec['group']}/{one['name']}": one["schema"]["openAPIV3Schema"] for one in spec["versions"]}


def _read_through(schemas: Mapping[str, Any], show: Form) -> Form:
    """Objects that were stored by an older definition are pruned and defaulted by the present one as they are read."""

    def read(obj: Object) -> Object:
        schema = schemas.get(obj["apiVersion"])
        return show(obj if schema is None else _reshaped(clone(obj), schema))

    return read


def _reshaped(obj: Object, schema: Mapping[str, Any]) -> Object:
    trees.prune(obj, schema)
    trees.drop_nulls(obj, schema)
    trees.default(obj, schema)
    return obj


def _renamed(obj: Object, api_version: str) -> Object:
    return {**clone(obj), "apiVersion": api_version}


def _form(convert: Callable[[Object, str], Object], group: str, version: Mapping[str, Any]) -> Form:
    api_version, schema = f"{group}/{version['name']}", version["schema"]["openAPIV3Schema"]

    def turn(obj: Object) -> Object:
        if obj["apiVersion"] == api_version:
            return obj
        return _reshaped(convert(obj, api_version), schema)

    return turn


def _shown(turn: Form) -> Form:
    known: OrderedDict[tuple[int, str], tuple[Object, Object]] = OrderedDict()

    def show(obj: Object) -> Object:
        # A commit gives the very object its version; kept with what it was turned into, no other is taken for it.
        key = (id(obj), obj["metadata"].get("resourceVersion", ""))
        stored, found = known.get(key, (None, obj))
        if stored is obj:
            return found
        found = turn(obj)
        if found is not obj:
            known[key] = (obj, found)
            if len(known) > _REMEMBERED:
                known.popitem(last=False)
        return found

    return show
