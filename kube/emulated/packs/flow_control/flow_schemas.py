"""FlowSchemas (pkg/apis/flowcontrol/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import METADATA, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.tables.cells import Printer, Row, spec_of, status_of
from mews.kube.emulated.kinds.server_conditions import schema_committed
from mews.kube.emulated.packs.flow_control.status import status_errors

_HIGHEST_PRECEDENCE = 10_000


_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")


_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}


_NAMESPACE_INTRO = "each member of this list must be '*' or a DNS-1123 label; "


def _schema_errors(schema: Object) -> list[FieldError]:
    return [*_schema_spec_errors(schema["spec"], schema["metadata"].get("name", "")), *status_errors(schema)]


def _schema_spec_errors(spec: Part, name: str) -> Iterator[FieldError]:
    precedence, path = spec.get("matchingPrecedence", 0), "spec.matchingPrecedence"
    if precedence <= 0:
        yield refusals.bad(path, precedence, "must be a positive value")
    if precedence > _HIGHEST_PRECEDENCE:
        yield refusals.bad(path, precedence, f"must not be greater than {_HIGHEST_PRECEDENCE}")
    if precedence == 1 and name != "exempt":
        yield refusals.bad(path, precedence, "only the schema named 'exempt' may have matchingPrecedence 1")
    method = spec.get("distinguisherMethod")
    if method is not None and method.get("type") not in ("ByNamespace", "ByUser"):
        shown = {"Type": method.get("type", "")}
        yield refusals.unsupported("spec.distinguisherMethod.type", shown, ("ByNamespace", "ByUser"))
    level = part_of(spec, "priorityLevelConfiguration").get("name", "")
    if level:
        yield from names.subdomain_errors("spec.priorityLevelConfiguration.name", level)
    else:
        yield refusals.required("spec.priorityLevelConfiguration.name", "must reference a priority level")
    for index, rule in enumerate(items(spec, "rules")):
        yield from _rule_errors(rule, f"spec.rules[{index}]")


def _rule_errors(rule: Part, path: str) -> Iterator[FieldError]:
    for index, subject in enumerate(items(rule, "subjects")):
        yield from _subject_errors(subject, f"{path}.subjects[{index}]")
    if not items(rule, "subjects"):
        yield refusals.required(f"{path}.subjects", "subjects must contain at least one value")
    if not items(rule, "resourceRules") and not items(rule, "nonResourceRules"):
        yield refusals.required(path, "at least one of resourceRules and nonResourceRules has to be non-empty")
    for index, resources in enumerate(items(rule, "resourceRules")):
        yield from _resource_errors(resources, f"{path}.resourceRules[{index}]")
    for index, urls in enumerate(items(rule, "nonResourceRules")):
        yield from _url_errors(urls, f"{path}.nonResourceRules[{index}]")


def _subject_errors(subject: Part, path: str) -> Iterator[FieldError]:
    kind = subject.get("kind", "")
    if kind not in _SUBJECTS:
        yield refusals.unsupported(f"{path}.kind", kind, tuple(_SUBJECTS))
        return
    mine = _SUBJECTS[kind]
    named = subject.get(mine)
    if named is None:
        yield refusals.required(f"{path}.{mine}", f"{mine} is required when subject kind is '{kind}'")
    else:
        yield from _named_errors(named, f"{path}.{mine}", account=mine == "serviceAccount")
    for other, place in (("ServiceAccount", "serviceAccount"), ("User", "user"), ("Group", "group")):
        if place != mine and subject.get(place) is not None:
            yield refusals.forbidden_field(
                f"{path}.{place}", f"{place} is forbidden when subject kind is not '{other}'"
            )


def _named_errors(named: Part, path: str, *, account: bool) -> Iterator[FieldError]:
    name = named.get("name", "")
    if not name:
        yield refusals.required(f"{path}.name")
    elif account and name != "*":
        yield from names.subdomain_errors(f"{path}.name", name)
    if not account:
        return
    if named.get("namespace"):
        yield from common.label(f"{path}.namespace", named["namespace"])
    else:
        yield refusals.required(f"{path}.namespace", "must specify namespace for service account")


def _list_errors(given: Sequence[str], path: str, *, lacking: str, others: str) -> Iterator[FieldError]:
    if not given:
        yield refusals.required(path, lacking)
    elif len(given) > 1 and "*" in given:
        yield refusals.bad(path, [*given], f"if '*' is present, must not specify other {others}")


def _verb_errors(rule: Part, path: str) -> Iterator[FieldError]:
    verbs = items(rule, "verbs")
    yield from _list_errors(verbs, f"{path}.verbs", lacking="verbs must contain at least one value", others="verbs")
    if verbs and "*" not in verbs and not set(verbs) <= set(_VERBS):
        yield refusals.unsupported(f"{path}.verbs", [*verbs], _VERBS)


def _url_errors(rule: Part, path: str) -> Iterator[FieldError]:
    yield from _verb_errors(rule, path)
    given, here = items(rule, "nonResourceURLs"), f"{path}.nonResourceURLs"
    text = "nonResourceURLs must contain at least one value"
    yield from _list_errors(given, here, lacking=text, others="non-resource URLs")
    for index, url in enumerate(given if "*" not in given else ()):
        yield from _path_errors(url, f"{here}[{index}]")


def _path_errors(url: str, path: str) -> Iterator[FieldError]:
    if not url:
        yield refusals.bad(path, url, "must not be empty")
    elif url == "/":
        return
    elif not url.startswith("/"):
        yield refusals.bad(path, url, "must start with slash")
    elif " " in url:
        yield refusals.bad(path, url, "must not contain white-space")
    elif "//" in url:
        yield refusals.bad(path, url, "must not contain double slash")
    elif "*" in url and (url.count("*") > 1 or not url.endswith("/*")):
        yield refusals.bad(path, url, "wildcard can only do suffix matching")


def _resource_errors(rule: Part, path: str) -> Iterator[FieldError]:
    yield from _verb_errors(rule, path)
    for name, lacking, others in (
        ("apiGroups", "resource rules must supply at least one api group", "api groups"),
        ("resources", "resource rules must supply at least one resource", "resources"),
    ):
        yield from _list_errors(items(rule, name), f"{path}.{name}", lacking=lacking, others=others)
    spaces, here = items(rule, "namespaces"), f"{path}.namespaces"
    if not spaces and not rule.get("clusterScope"):
        text = "resource rules that are not cluster scoped must supply at least one namespace"
        yield refusals.required(here, text)
    elif "*" in spaces:
        if len(spaces) > 1:
            yield refusals.bad(here, [*spaces], "if '*' is present, must not specify other namespaces")
    else:
        for index, space in enumerate(spaces):
            texts = [f"{_NAMESPACE_INTRO}{text}" for text in names.label_texts(space)]
            yield from common.bads(f"{here}[{index}]", space, texts)


def _flow(obj: Object, _: float) -> Row:
    spec = spec_of(obj)
    conditions = status_of(obj).get("conditions") or ()
    dangling = next((condition["status"] for condition in conditions if condition["type"] == "Dangling"), "?")
    level = (spec.get("priorityLevelConfiguration") or {}).get("name", "")
    method = (spec.get("distinguisherMethod") or {}).get("type", "<none>")
    return [level, spec.get("matchingPrecedence", 0), method, dangling]


def _precedence(schema: Object) -> tuple[int, str]:
    """The order in which requests meet them."""
    return int((schema.get("spec") or {}).get("matchingPrecedence") or 0), str(schema["metadata"]["name"])


RULES = Rules(
    printer=Printer(_flow, is_part=True, order=_precedence),
    after_commit=schema_committed,
    validate=_schema_errors,
    validate_status_update=lambda new, _: [*status_errors(new)],
    metadata=MetadataChecks(
        on_update=(METADATA,),
        on_status=(),
        status_leaves=(*RESET_WITH_STATUS, "generateName", "deletionGracePeriodSeconds"),
    ),
)
