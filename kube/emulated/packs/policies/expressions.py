"""What the expressions of policies and match conditions see of a request, and what they make of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from mews.kube.api.objects import Object
from mews.kube.cel.values import CelError, LazyMap, Receiver, Variables
from mews.kube.emulated.core.store import names
from mews.kube.emulated.core.store.admission import AdmissionAttributes, AdmissionOperation
from mews.kube.emulated.core.store.kinds import Kind
from mews.kube.emulated.core.store.long_work import on_loop, sliced
from mews.kube.emulated.core.store.store import Store
from mews.kube.emulated.core.store.users import User, account_groups
from mews.kube.emulated.core.store.views import view_of
from mews.kube.emulated.packs.access.authorization import AccessDecision, Attributes, Authorizer
from mews.kube.emulated.packs.policies.matching import namespace_of

_OPTIONS = {
    AdmissionOperation.CREATE: "CreateOptions",
    AdmissionOperation.UPDATE: "UpdateOptions",
    AdmissionOperation.DELETE: "DeleteOptions",
}


def shown_as(kind: Kind, obj: Object | None, *, body: bool = False) -> Object | None:
    """Return an object as the kind shows it that a rule has met; ``body`` of a subresource is shown as it is."""
    if obj is None or body:
        return obj
    resource = kind.resource
    return {**view_of(kind).show(obj), "apiVersion": resource.api_version, "kind": resource.kind}


def request_of(attributes: AdmissionAttributes, matched: Kind) -> dict[str, Any]:
    """Return the request, as AdmissionReview has it, without objects and uid."""
    asked, found = attributes.kind.resource, matched.resource
    request_kind = attributes.body_kind or (asked.group, asked.version, asked.kind)
    kind = attributes.body_kind or (found.group, found.version, found.kind)
    shown: dict[str, Any] = {
        "kind": _gvk(*kind),
        "resource": {"group": found.group, "version": found.version, "resource": found.plural},
        "requestKind": _gvk(*request_kind),
        "requestResource": {"group": asked.group, "version": asked.version, "resource": asked.plural},
    }
    if attributes.subresource:
        shown |= {"subResource": attributes.subresource, "requestSubResource": attributes.subresource}
    name = attributes.name or ((attributes.obj or {}).get("metadata") or {}).get("name", "")
    if name:
        shown["name"] = name
    if attributes.namespace or asked.plural == "namespaces":
        shown["namespace"] = attributes.namespace or name
    shown["operation"] = str(attributes.operation)
    shown["userInfo"] = attributes.user.info()
    return shown


def options_of(attributes: AdmissionAttributes) -> dict[str, Any] | None:
    """Return the options of the request, as its verb has them."""
    if attributes.options or attributes.operation not in _OPTIONS:
        return dict(attributes.options) or None
    request = attributes.request
    shown = {"kind": _OPTIONS[attributes.operation], "apiVersion": "meta.k8s.io/v1"}
    more: dict[str, Any] = {"dryRun": ["All"]} if request.dry_run else {}
    if request.manager:
        more["fieldManager"] = request.manager
    return {**shown, **more}


def _gvk(group: str, version: str, kind: str) -> dict[str, str]:
    return {"group": group, "version": version, "kind": kind}


def variables_of(store: Store, attributes: AdmissionAttributes, matched: Kind) -> Variables:
    """Return the variables that every expression has: object, oldObject, request, namespaceObject, authorizer."""
    body = attributes.body_kind is not None
    request = {
        **request_of(attributes, matched),
        "dryRun": attributes.request.dry_run,
        "options": options_of(attributes),
    }
    return {
        "object": shown_as(matched, attributes.obj, body=body),
        "oldObject": shown_as(matched, attributes.old, body=body),
        "request": request,
        "namespaceObject": namespace_of(store, attributes),
        "authorizer": _authorizer(store, attributes.user, attributes),
    }


POLICY_STEPS, CONDITION_STEPS = 10_000_000, 2_500_000
"""Steps of all expressions of one policy with one binding, and of all match conditions (apiserver pkg/apis/cel)."""


class OutOfBudgetError(CelError):
    """Nothing of the policy is evaluated any more."""


_SPENT = "validation failed due to running out of cost budget, no further validation rules will be run"


class PolicyVariable(Struct, frozen=True):
    """A variable that a policy declares, once it is made: its value, and what it cost."""

    value: Any
    steps: int


class _Evaluated(Struct, frozen=True):
    """What an expression came to, and the variables that were made by then."""

    value: Any
    steps: int
    made: Mapping[str, PolicyVariable]
    error: str = ""


class ExpressionBudget:
    """The steps that several expressions share, and the variables of theirs that are paid for."""

    def __init__(self, steps: int) -> None:
        self._left = steps
        self._made: dict[str, PolicyVariable] = {}
        self._paid: set[str] = set()

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises ``OutOfBudgetError`` when there were not so many.
        """
        if steps > self._left:
            raise OutOfBudgetError(_SPENT)
        self._left -= steps

    def variable(self, name: str, make: Callable[[], tuple[Any, int]]) -> Any:
        """Return the value of a variable, made once. It is paid for when the expression that asks for it has its
        result: a try of the write that finds that result has made none of its variables, and pays for them all the
        same.

        Raises ``OutOfBudgetError`` as soon as those made cannot be paid for.
        """
        if name not in self._made:
            self._made[name] = PolicyVariable(*make())
            owed = sum(variable.steps for known, variable in self._made.items() if known not in self._paid)
            if owed > self._left:
                raise OutOfBudgetError(_SPENT)
        return self._made[name].value

    def made(self) -> dict[str, PolicyVariable]:
        """Return the variables that are made by now."""
        return dict(self._made)

    def pay(self, made: Mapping[str, PolicyVariable]) -> None:
        """Count the steps of variables, of each once, and keep their values.

        Raises ``OutOfBudgetError``.
        """
        for name, variable in made.items():
            if name not in self._paid:
                self._paid.add(name)
                self._made[name] = variable
                self.spend(variable.steps)


def evaluated(source: str, known: Variables, budget: ExpressionBudget) -> Any:
    """Return the value of an expression; what goes wrong is a ``CelError`` in admission's words."""
    from mews.kube.cel.expressions import program

    text = source.strip()

    def work() -> _Evaluated:
        try:
            value, steps = program(text).evaluate(known)
        except OutOfBudgetError:
            raise  # by a variable
        except (CelError, ValueError, RecursionError) as error:
            return _Evaluated(None, 0, budget.made(), f"expression '{text}' resulted in error: {error}")
        return _Evaluated(value, steps, budget.made())

    found = sliced(work, lambda: text)
    budget.pay(found.made)
    if found.error:
        raise CelError(found.error)
    budget.spend(found.steps)
    return found.value


def with_variables(known: Variables, declared: Sequence[Mapping[str, Any]], budget: ExpressionBudget) -> Variables:
    """Return the variables with those that a policy declares, evaluated when first used."""
    if not declared:
        return known
    makers: dict[str, Any] = {}
    extended = {**known, "variables": LazyMap(makers)}

    def maker(variable: Mapping[str, Any]) -> Any:
        def make() -> tuple[Any, int]:
            from mews.kube.cel.expressions import program

            try:
                return program(variable["expression"].strip()).evaluate(extended)
            except OutOfBudgetError:
                raise
            except CelError as error:
                text = f'composited variable "{variable["name"]}" fails to evaluate: {error}'
                raise CelError(text) from None

        return lambda: budget.variable(variable["name"], make)

    for variable in declared:
        makers[variable["name"]] = maker(variable)
    return extended


def unmet(conditions: Sequence[Mapping[str, Any]], known: Variables) -> bool:
    """Return whether a match condition is false; raises ``CelError`` when none is but one cannot be evaluated."""
    failures, budget = [], ExpressionBudget(CONDITION_STEPS)
    for condition in conditions:
        try:
            if evaluated(condition["expression"], known, budget) is not True:
                return True
        except OutOfBudgetError:
            raise
        except CelError as error:
            failures.append(str(error))
    if failures:
        raise CelError(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return False


# Authorizer


def _authorizer(store: Store, user: User, attributes: AdmissionAttributes) -> Receiver:
    def account(namespace: str, name: str) -> Receiver:
        if names.subdomain_errors("name", name):
            raise CelError("Invalid service account name")
        if not names.is_label(namespace):
            raise CelError("Invalid service account namespace")
        played = User(f"system:serviceaccount:{namespace}:{name}", account_groups(namespace))
        return _authorizer(store, played, attributes)

    resource = attributes.kind.resource
    mine = {
        "group": resource.group,
        "resource": resource.plural,
        "subresource": attributes.subresource,
        "namespace": attributes.namespace,
        "name": attributes.name,
    }
    return Receiver(
        "kubernetes.authorization.Authorizer",
        {
            "group": lambda group: _group_check(store, user, {"group": group}),
            "path": lambda path: _path_check(store, user, path),
            "serviceAccount": account,
        },
        {"requestResource": _resource_check(store, user, mine)},
    )


def _group_check(store: Store, user: User, asked: dict[str, str]) -> Receiver:
    def resource(name: str) -> Receiver:
        if not name.strip():
            raise CelError("resource must not be empty")
        return _resource_check(store, user, {**asked, "resource": name})

    return Receiver("kubernetes.authorization.GroupCheck", {"resource": resource})


def _path_check(store: Store, user: User, path: str) -> Receiver:
    if not path.strip():
        raise CelError("path must not be empty")
    return Receiver(
        "kubernetes.authorization.PathCheck",
        {"check": lambda verb: _decided(store, user, Attributes(verb, path=path))},
    )


def _resource_check(store: Store, user: User, asked: dict[str, str]) -> Receiver:
    def narrowed(field: str) -> Any:
        return lambda value: _resource_check(store, user, {**asked, field: value})

    methods = {field: narrowed(field) for field in ("subresource", "namespace", "name")}
    methods |= {name: lambda _text: _resource_check(store, user, asked) for name in ("fieldSelector", "labelSelector")}
    methods["check"] = lambda verb: _decided(store, user, Attributes(verb, **asked))
    return Receiver("kubernetes.authorization.ResourceCheck", methods)


def _decided(store: Store, user: User, asked: Attributes) -> Receiver:
    return _decision(on_loop(lambda: Authorizer(store).decide(user, asked)))


def _decision(decision: AccessDecision) -> Receiver:
    return Receiver(
        "kubernetes.authorization.Decision",
        {
            "allowed": lambda: decision.allowed,
            "reason": lambda: decision.reason,
            "errored": lambda: False,
            "error": lambda: "",
        },
    )
