"""What storage classes and their like share: provisioners and parameters."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError

MOST_PARAMETERS = 512


LARGEST_PARAMETERS = 256 * 1024


def provisioner_errors(name: str, path: str) -> list[FieldError]:
    """Return what is wrong with the name of a provisioner."""
    if not name:
        return [refusals.required(path)]
    return names.qualified_errors(path, name.lower())


def parameter_errors(parameters: Mapping[str, str], path: str, *, needed: bool = False) -> Iterator[FieldError]:
    """Yield what is wrong with parameters of a provisioner."""
    if len(parameters) > MOST_PARAMETERS:
        yield common.too_long(path, MOST_PARAMETERS)
        return
    for key in parameters:
        if not key:
            yield refusals.bad(path, key, "field can not be empty.")
    if sum(len(key) + len(value) for key, value in parameters.items()) > LARGEST_PARAMETERS:
        yield common.too_long(path, LARGEST_PARAMETERS)
    if needed and not parameters:
        yield refusals.required(path, "must contain at least one key/value pair")
