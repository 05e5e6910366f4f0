"""What is wrong with a container's own restart policy, and with variables from files (ContainerRestartRules, EnvFiles).
While these features are off their fields are gone before this looks (pkg/apis/core/validation of 1.36)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.store import refusals
from mews.kube.emulated.core.store.refusals import FieldError

Part = Mapping[str, Any]

_POLICIES = ("Always", "Never", "OnFailure")
_ACTIONS = ("Restart", "RestartAllContainers")
_MOST_RULES, _MOST_CODES = 20, 255


def restart_errors(container: Part, path: str, *, initial: bool) -> Iterator[FieldError]:
    """Yield the errors of the policy of a container that is no sidecar's, and of the rules beside it; of an ``initial``
    one the rules are looked at where there is a policy."""
    policy, rules = container.get("restartPolicy"), common.items(container, "restartPolicyRules")
    if policy is None:
        if rules:
            yield refusals.required(f"{path}.restartPolicy", "must specify restartPolicy when restart rules are used")
            if initial:
                return
    else:
        yield from common.option(f"{path}.restartPolicy", policy, _POLICIES)
    if len(rules) > _MOST_RULES:
        yield common.too_many(f"{path}.restartPolicyRules", len(rules), _MOST_RULES)
    for index, rule in enumerate(rules):
        yield from _rule_errors(rule or {}, f"{path}.restartPolicyRules[{index}]")


def _rule_errors(rule: Part, path: str) -> Iterator[FieldError]:
    yield from common.option(f"{path}.action", rule.get("action", ""), _ACTIONS)
    codes = rule.get("exitCodes")
    if codes is None:
        yield refusals.required(f"{path}.exitCodes", "must be specified")
        return
    yield from common.option(f"{path}.exitCodes.operator", codes.get("operator", ""), ("In", "NotIn"))
    if len(codes.get("values") or ()) > _MOST_CODES:
        yield common.too_many(f"{path}.exitCodes.values", len(codes["values"]), _MOST_CODES)


def file_key_errors(reference: Part, path: str) -> Iterator[FieldError]:
    """Yield the errors of a variable that comes from a file of a volume."""
    for name in ("key", "volumeName", "path"):
        if not reference.get(name):
            yield refusals.required(f"{path}.{name}")
    if reference.get("volumeName"):
        yield from common.label(f"{path}.volumeName", reference["volumeName"])
    if ".." in str(reference.get("path", "")).split("/"):
        yield refusals.bad(f"{path}.path", reference["path"], "must not contain '..'")


def file_volume_errors(containers: Sequence[Part], path: str, volumes: Mapping[str, Part]) -> Iterator[FieldError]:
    """Yield the errors of the volumes that variables of these containers name: there must be such a one."""
    for number, container in enumerate(containers):
        for index, variable in enumerate(common.items(container, "env")):
            reference = (variable.get("valueFrom") or {}).get("fileKeyRef")
            name = (reference or {}).get("volumeName", "")
            if reference is not None and name not in volumes:
                here = f"{path}[{number}].env[{index}].valueFrom.fileKeyRef.volumeName"
                yield FieldError(here, "FieldValueNotFound", refusals.shown(name))
