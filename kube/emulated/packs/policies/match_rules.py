"""What admission policies and webhooks match: defaults and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mews.kube.emulated.core.checks.affinity_errors import selector_errors
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.refusals import FieldError, bad, required, unsupported

Spec = Mapping[str, Any]


MATCH_POLICIES = ("Equivalent", "Exact")


OPERATIONS = ("*", "CONNECT", "CREATE", "DELETE", "UPDATE")


SCOPES = ("*", "Cluster", "Namespaced")


_MESSAGES = frozenset(("Object", "JSONPatch"))
"""What the expressions of mutations may make."""


def default_limits(limits: dict[str, Any], rules: Sequence[str]) -> None:
    """What a limit of what is matched means that says nothing."""
    limits.setdefault("matchPolicy", "Equivalent")
    limits.setdefault("namespaceSelector", {})
    limits.setdefault("objectSelector", {})
    for name in rules:
        for rule in limits.get(name) or ():
            rule.setdefault("scope", "*")


def choice_errors(path: str, value: str | None, allowed: Sequence[str]) -> Iterator[FieldError]:
    """Yield one of several, if it is said."""
    if value is not None and value not in allowed:
        yield unsupported(path, value, allowed)


def limit_errors(limits: Spec, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with the limits of what is matched."""
    yield from choice_errors(f"{path}.matchPolicy", limits.get("matchPolicy"), MATCH_POLICIES)
    for name in ("namespaceSelector", "objectSelector"):
        yield from selector_errors(limits.get(name) or {}, f"{path}.{name}")
    for name in ("resourceRules", "excludeResourceRules"):
        for index, rule in enumerate(limits.get(name) or ()):
            yield from named_errors(rule.get("resourceNames") or [], f"{path}.{name}[{index}].resourceNames")
            yield from rule_errors(rule, f"{path}.{name}[{index}]")


def named_errors(given: Sequence[str], path: str) -> Iterator[FieldError]:
    """Yield what is wrong with names of resources."""
    for index, name in enumerate(given):
        for text in names.segment_texts(name):
            yield bad(f"{path}[{index}]", name, text)
        if name in given[:index]:
            yield refusals.duplicate(f"{path}[{index}]", name)


def rule_errors(rule: Spec, path: str) -> Iterator[FieldError]:
    """Yield what is wrong with what a rule matches."""
    operations = rule.get("operations") or []
    if not operations:
        yield required(f"{path}.operations")
    elif "*" in operations and len(operations) > 1:
        yield bad(f"{path}.operations", operations, "if '*' is present, must not specify other operations")
    for index, operation in enumerate(operations):
        if operation not in OPERATIONS:
            yield unsupported(f"{path}.operations[{index}]", operation, OPERATIONS)
    for name, words in (("apiGroups", "API groups"), ("apiVersions", "API versions")):
        values = rule.get(name) or []
        if not values:
            yield required(f"{path}.{name}")
        elif "*" in values and len(values) > 1:
            yield bad(f"{path}.{name}", values, f"if '*' is present, must not specify other {words}")
        for index, value in enumerate(values):
            if name == "apiVersions" and not value:
                yield required(f"{path}.{name}[{index}]")
    yield from resource_errors(rule.get("resources") or [], f"{path}.resources")
    yield from choice_errors(f"{path}.scope", rule.get("scope"), SCOPES)


# Complex: upstream's order of errors, which clients see.
def resource_errors(resources: list[str], path: str) -> Iterator[FieldError]:  # noqa: C901
    """Yield what is wrong with the resources of a rule."""
    if not resources:
        yield required(path)
    whole, below, plain = set[str](), set[str](), False
    for index, each in enumerate(resources):
        resource, slash, sub = each.partition("/")
        if not each:
            yield required(f"{path}[{index}]")
        elif not slash:
            plain = each != "*"
        else:
            if resource in whole:
                yield bad(f"{path}[{index}]", each, f"if '{resource}/*' is present, must not specify {each}")
            if sub in below:
                yield bad(f"{path}[{index}]", each, f"if '*/{sub}' is present, must not specify {each}")
            if sub == "*":
                whole.add(resource)
            if resource == "*":
                below.add(sub)
    if len(resources) > 1 and "*/*" in resources:
        yield bad(path, resources, "if '*/*' is present, must not specify other resources")
    if "*" in resources and plain:
        yield bad(path, resources, "if '*' is present, must not specify other resources without subresources")
