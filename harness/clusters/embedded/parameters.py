"""Query parameters and bodies that steer a request (contract apiserver.md section 2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mews.harness.clusters.embedded import refusals
from mews.harness.clusters.embedded.refusals import Fault
from mews.harness.clusters.embedded.request import Request
from mews.kube.api.errors import BadRequest, Invalid
from mews.kube.client.port import DeleteOptions, Preconditions

_FIELD_VALIDATION = ("", "Ignore", "Strict", "Warn")
_PROPAGATION = ("Foreground", "Background", "Orphan")

Query = Mapping[str, str]


def options_error(name: str, fault: Fault) -> Invalid:
    """422 for an option of the request itself."""
    details = {
        "group": "meta.k8s.io",
        "kind": name,
        "causes": [{"reason": fault.reason, "message": fault.message(), "field": fault.path}],
    }
    return Invalid(f'{name}.meta.k8s.io "" is invalid: {fault}', details=details)


def write_request(query: Query, *, user: str, user_agent: str, options: str) -> Request:
    """Who writes, and how; 422 for a value that is not allowed."""
    dry_run = query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise options_error(
            options, Fault("dryRun", "FieldValueNotSupported", f'["{dry_run}"]: supported values: "All"')
        )
    validation = query.get("fieldValidation", "")
    if validation not in _FIELD_VALIDATION:
        raise options_error(options, refusals.unsupported("fieldValidation", validation, _FIELD_VALIDATION))
    manager = query.get("fieldManager") or user_agent.partition("/")[0]
    return Request(user, manager, dry_run == "All", validation or "Warn")


def delete_options(query: Query, body: Any) -> DeleteOptions:
    """Options of a deletion, from the body or else the query."""
    given = body if isinstance(body, Mapping) else {}
    grace = given.get("gracePeriodSeconds", number(query, "gracePeriodSeconds"))
    propagation = given.get("propagationPolicy") or query.get("propagationPolicy") or None
    orphan = given.get("orphanDependents")
    if propagation is None and orphan is not None:
        propagation = "Orphan" if orphan else "Background"
    if propagation is not None and propagation not in _PROPAGATION:
        fault = refusals.unsupported("propagationPolicy", propagation, (*_PROPAGATION, "nil"))
        raise options_error("DeleteOptions", fault)
    wanted = given.get("preconditions") or {}
    preconditions = Preconditions(wanted.get("uid"), wanted.get("resourceVersion"))
    return DeleteOptions(None if grace is None else int(grace), preconditions, propagation)


def is_dry(query: Query, body: Any) -> bool:
    """Whether a deletion is to be tried only."""
    return query.get("dryRun") == "All" or (isinstance(body, Mapping) and "All" in (body.get("dryRun") or ()))


def number(query: Query, name: str) -> int | None:
    """A whole number among the parameters, None when absent; 400 for anything else."""
    text = query.get(name)
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise BadRequest(f'strconv.ParseInt: parsing "{text}": invalid syntax') from None


def flag(query: Query, name: str) -> bool:
    """A boolean among the parameters: present and empty counts as true."""
    return query.get(name, "false").lower() in ("", "1", "t", "true")
