"""What later releases say otherwise than the first one: refusals in other words, and further warnings.

The refusals are data of the release (``words.json``). A row strikes the errors that all its patterns fit as a whole:
``kind`` the qualified plural, ``path``, ``reason``, ``text``; one that is left out fits all. With ``beside`` (``path``,
``text``) it strikes only where another error fits that. ``to`` has the error's new parts, in which ``\\1`` stands for
the part's own first group; null drops the error. With ``last`` the error comes after the others. Of kinds that
``once`` fits an error is reported once, however often validations find it. Rows of a base come first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError, shown
from mews.kube.releases.release_data import minor, read

Revise = Callable[[list[FieldError]], list[FieldError]]
Warn = Callable[[Object, "Object | None"], list[str]]
Validate = Callable[[Object], list[FieldError]]


class _Row(Struct, frozen=True):
    path: re.Pattern[str]
    text: re.Pattern[str]
    reason: str
    to: Mapping[str, str] | None
    beside: tuple[re.Pattern[str], re.Pattern[str]] | None
    is_last: bool

    def applied(self, errors: list[FieldError]) -> list[FieldError]:
        if self.beside is not None:
            path, text = self.beside
            if not any(path.fullmatch(error.path) and text.fullmatch(error.text) for error in errors):
                return errors
        struck = [self.strikes(error) for error in errors]
        found = [self.revised(error) if hit else error for error, hit in zip(errors, struck, strict=True)]
        if self.is_last:
            found = [each for _, each in sorted(zip(struck, found, strict=True), key=lambda pair: pair[0])]
        return [error for error in found if error is not None]

    def strikes(self, error: FieldError) -> bool:
        fits = self.path.fullmatch(error.path) and self.text.fullmatch(error.text)
        return bool(fits) and self.reason in ("", error.reason)

    def revised(self, error: FieldError) -> FieldError | None:
        if self.to is None:
            return None
        path = self.path.fullmatch(error.path)
        text = self.text.fullmatch(error.text)
        assert path is not None
        assert text is not None
        return FieldError(
            path.expand(self.to["path"]) if "path" in self.to else error.path,
            self.to.get("reason", error.reason),
            text.expand(self.to["text"]) if "text" in self.to else error.text,
        )


@cache
def revision(release: str, qualified: str) -> Revise | None:
    """Return how a release revises the errors about a kind, None where it does not."""
    found = list(_words(release))
    rows = tuple(_rows([row for words in found for row in words.get("errors", ())], qualified))
    once = any(re.fullmatch(words.get("once", ""), qualified) for words in found)
    if not rows and not once:
        return None

    def revise(errors: list[FieldError]) -> list[FieldError]:
        revised = errors
        for row in rows if errors else ():
            revised = row.applied(revised)
        return list(dict.fromkeys(revised)) if once else revised

    return revise


def _words(release: str) -> Iterator[Mapping[str, Any]]:
    base = read(release, "release.json").get("base")
    if base:
        yield from _words(base)
    yield read(release, "words.json")


def _rows(given: Iterable[Mapping[str, Any]], qualified: str) -> Iterator[_Row]:
    for row in given:
        if re.fullmatch(row.get("kind", ".*"), qualified):
            beside = _patterns(row["beside"]) if "beside" in row else None
            yield _Row(*_patterns(row), row.get("reason", ""), row["to"], beside, row.get("last", False))


def _patterns(row: Mapping[str, Any]) -> tuple[re.Pattern[str], re.Pattern[str]]:
    path, text = (re.compile(row.get(key, ".*"), re.DOTALL) for key in ("path", "text"))
    return path, text


def _warn_of_external_addresses(service: Object, old: Object | None) -> list[str]:
    """pkg/api/service/warnings.go of 1.36; a write of the status warns of nothing."""
    spec = service["spec"]
    if old is not None and old.get("status") != service.get("status"):
        return []
    if spec.get("externalIPs") and spec.get("clusterIP") != "None" and spec.get("type") != "ExternalName":
        return ["spec.externalIPs is deprecated and may no longer be implemented in some clusters"]
    return []


def _warn_of_tokens(driver: Object, old: Object | None) -> list[str]:
    """pkg/registry/storage/csidriver/strategy.go of 1.35."""
    spec = driver["spec"]
    if old is not None and old["spec"].get("tokenRequests") == spec.get("tokenRequests"):
        return []
    if spec.get("tokenRequests") and spec.get("serviceAccountTokenInSecrets") is None:
        return [
            "spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent "
            "possible logging of tokens in volume attributes"
        ]
    return []


_WARNINGS: Mapping[str, tuple[str, Warn]] = {
    "services": ("1.36", _warn_of_external_addresses),
    "csidrivers.storage.k8s.io": ("1.35", _warn_of_tokens),
}
"""Kind -> since which release there are further warnings, and which."""


def warnings_of(release: str, qualified: str, known: Warn | None) -> Warn | None:
    """Return the warnings of a kind in a release: the first one's, and what later ones added."""
    since, more = _WARNINGS.get(qualified, ("", None))
    if more is None or minor(release) < minor(since):
        return known
    if known is None:
        return more
    return lambda new, old: [*known(new, old), *more(new, old)]


def _level_errors(level: Object) -> list[FieldError]:
    """Return the parts of a union whose member the type does not name (zz_generated.validations.go of flowcontrol,
    1.37)."""
    spec: Mapping[str, Any] = level.get("spec") or {}
    limited = spec.get("limited")
    found = []
    if limited is not None and spec.get("type") not in ("Exempt", "Limited", "", None):
        found.append(FieldError("spec.limited", "FieldValueForbidden"))
    response: Mapping[str, Any] = (limited or {}).get("limitResponse") or {}
    if response.get("queuing") is not None and response.get("type") not in ("Queue", "Reject", "", None):
        found.append(FieldError("spec.limited.limitResponse.queuing", "FieldValueForbidden"))
    return found


def _slice_errors(resource_slice: Object) -> list[FieldError]:
    """Counter sets are in slices of their own (pkg/apis/resource/validation of 1.35)."""
    spec = resource_slice["spec"]
    if spec.get("sharedCounters") is None or spec.get("devices") is None:
        return []
    return [refusals.bad("spec", "", "only one of `sharedCounters` or `devices` is allowed")]


_FAULTS: Mapping[str, tuple[str, Validate]] = {
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io": ("1.37", _level_errors),
    "resourceslices.resource.k8s.io": ("1.35", _slice_errors),
}
"""Kind -> since which release there are further errors, and which; they come last."""


STAMPS: Mapping[str, tuple[str, str]] = {
    "devicetaintrules.resource.k8s.io": ("1.36", "packs.devices.device_taint_rules:stamp_update"),
}
"""Kind -> since which release an update stamps times, and the hook."""


def errors_of(release: str, qualified: str, known: Validate | None) -> Validate | None:
    """Return the validation of a kind in a release: the first one's, and what later ones added."""
    since, more = _FAULTS.get(qualified, ("", None))
    if more is None or minor(release) < minor(since):
        return known
    if known is None:
        return more
    return lambda obj: [*known(obj), *more(obj)]


ChangeErrors = Callable[[Object, Object, str], list[FieldError]]


def change_errors_of(release: str, qualified: str, known: ChangeErrors | None) -> ChangeErrors | None:
    """Return the same of an update, for a kind that judges updates by itself."""
    since, more = _FAULTS.get(qualified, ("", None))
    if known is None or more is None or minor(release) < minor(since):
        return known
    return lambda new, old, subresource: [*known(new, old, subresource), *more(new)]


StatusErrors = Callable[[Object, Object], list[FieldError]]
_HANDLES = '{"Driver":{},"Pool":{},"Device":{},"ShareID":{}}'


def status_errors_of(release: str, qualified: str, known: StatusErrors | None) -> StatusErrors | None:
    """Return how a status is judged in a release: since 1.36 upstream prints what a claim's devices are called."""
    if qualified != "resourceclaims.resource.k8s.io" or known is None or minor(release) < minor("1.36"):
        return known

    def named(new: Object, old: Object) -> list[FieldError]:
        devices = (new.get("status") or {}).get("devices") or ()
        return [_named(error, devices) for error in known(new, old)]

    return named


def _named(error: FieldError, devices: Sequence[Mapping[str, Any]]) -> FieldError:
    place = re.match(r"status\.devices\[(\d+)\]", error.path)
    if place is None or _HANDLES not in error.text:
        return error
    device = devices[int(place[1])] or {}
    words = (("Driver", "driver"), ("Pool", "pool"), ("Device", "device"), ("ShareID", "shareID"))
    name = shown({title: device.get(word) or "" for title, word in words})
    return FieldError(error.path, error.reason, error.text.replace(_HANDLES, name))
