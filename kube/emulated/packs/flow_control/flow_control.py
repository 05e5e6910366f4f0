"""Rules of flow schemas and priority levels (pkg/apis/flowcontrol/validation)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mews.kube.api.objects import Object
from mews.kube.emulated.core.checks import common
from mews.kube.emulated.core.checks.base import METADATA, RESET_WITH_STATUS, Rules
from mews.kube.emulated.core.checks.common import Part, items, part_of
from mews.kube.emulated.core.store import names, refusals
from mews.kube.emulated.core.store.metadata_errors import MetadataChecks
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.packs.aggregation.conditions import level_committed, schema_committed

_HIGHEST_PRECEDENCE = 10_000
_MOST_QUEUES = 10_000_000
_LARGEST_HAND_BITS = 60
_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "proxy", "update", "watch")
_SUBJECTS = {"Group": "group", "ServiceAccount": "serviceAccount", "User": "user"}
_NAMESPACE_INTRO = "each member of this list must be '*' or a DNS-1123 label; "


def _schema_errors(schema: Object) -> list[FieldError]:
    return [*_schema_spec_errors(schema["spec"], schema["metadata"].get("name", "")), *_status_errors(schema)]


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


def _status_errors(obj: Object) -> Iterator[FieldError]:
    seen: set[str] = set()
    for index, condition in enumerate(items(part_of(obj, "status"), "conditions")):
        path, kind = f"status.conditions[{index}].type", condition.get("type", "")
        if kind in seen:
            yield refusals.duplicate(path, kind)
        seen.add(kind)
        if not kind:
            yield refusals.required(path)


def _level_errors(level: Object) -> list[FieldError]:
    return [*_level_spec_errors(level["spec"], level["metadata"].get("name", "")), *_status_errors(level)]


def _level_spec_errors(spec: Part, name: str) -> Iterator[FieldError]:
    kind, limited, exempt = spec.get("type", ""), spec.get("limited"), spec.get("exempt")
    if (name == "exempt") != (kind == "Exempt"):
        yield refusals.bad("spec.type", kind, "must be 'Exempt' if and only if `name` is 'exempt'")
    if kind == "Exempt":
        if limited is not None:
            yield refusals.forbidden_field("spec.limited", "must be nil if the type is not Limited")
        if exempt is not None:
            yield from _share_errors(exempt, "spec.exempt")
    elif kind == "Limited":
        if exempt is not None:
            yield refusals.forbidden_field("spec.exempt", "must be nil if the type is Limited")
        if limited is None:
            yield refusals.required("spec.limited", "must not be empty when type is Limited")
        else:
            yield from _limited_errors(limited, "spec.limited")
    else:
        yield refusals.unsupported("spec.type", kind, ("Exempt", "Limited"))


def _share_errors(level: Part, path: str) -> Iterator[FieldError]:
    shares, lent = level.get("nominalConcurrencyShares"), level.get("lendablePercent")
    if shares is not None and shares < 0:
        yield refusals.bad(f"{path}.nominalConcurrencyShares", shares, "must be a non-negative integer")
    if lent is not None and not 0 <= lent <= 100:
        yield refusals.bad(f"{path}.lendablePercent", lent, "must be between 0 and 100, inclusive")


def _limited_errors(limited: Part, path: str) -> Iterator[FieldError]:
    yield from _share_errors({**limited, "lendablePercent": None}, path)
    yield from _response_errors(part_of(limited, "limitResponse"), f"{path}.limitResponse")
    yield from _share_errors({"lendablePercent": limited.get("lendablePercent")}, path)
    borrowed = limited.get("borrowingLimitPercent")
    if borrowed is not None and borrowed < 0:
        text = "if specified, must be a non-negative integer"
        yield refusals.bad(f"{path}.borrowingLimitPercent", borrowed, text)


def _response_errors(response: Part, path: str) -> Iterator[FieldError]:
    kind, queuing = response.get("type", ""), response.get("queuing")
    if kind == "Reject":
        if queuing is not None:
            text = "must be nil if limited.limitResponse.type is not Limited"
            yield refusals.forbidden_field(f"{path}.queuing", text)
    elif kind == "Queue":
        if queuing is None:
            text = "must not be empty if limited.limitResponse.type is Limited"
            yield refusals.required(f"{path}.queuing", text)
        else:
            yield from _queue_errors(queuing, f"{path}.queuing")
    else:
        yield refusals.unsupported(f"{path}.type", kind, ("Queue", "Reject"))


def _queue_errors(queuing: Part, path: str) -> Iterator[FieldError]:
    length, queues, hand = (queuing.get(name, 0) for name in ("queueLengthLimit", "queues", "handSize"))
    if length <= 0:
        yield refusals.bad(f"{path}.queueLengthLimit", length, "must be positive")
    if queues <= 0:
        yield refusals.bad(f"{path}.queues", queues, "must be positive")
    elif queues > _MOST_QUEUES:
        yield refusals.bad(f"{path}.queues", queues, f"must not be greater than {_MOST_QUEUES}")
    if hand <= 0:
        yield refusals.bad(f"{path}.handSize", hand, "must be positive")
    elif hand > queues:
        yield refusals.bad(f"{path}.handSize", hand, f"should not be greater than queues ({queues})")
    else:
        bits = _bits(queues, hand)
        if bits > _LARGEST_HAND_BITS:
            text = f"required entropy bits of deckSize {queues} and handSize {hand} should not be greater than 60"
            yield refusals.bad(f"{path}.handSize", hand, text)


def _bits(queues: int, hand: int) -> int:
    """Return the bits that a draw of the hand takes (apiserver, shufflesharding.RequiredEntropyBits)."""
    if queues < 1:
        return 0
    draws = 1
    for left in range(queues, max(queues - hand, 0), -1):
        draws *= left
        if draws.bit_length() > _LARGEST_HAND_BITS + 2:
            break
    return (draws - 1).bit_length()


SCHEMAS = Rules(
    after_commit=schema_committed,
    validate=_schema_errors,
    validate_status_update=lambda new, _: [*_status_errors(new)],
    metadata=MetadataChecks(
        on_update=(METADATA,),
        on_status=(),
        status_leaves=(*RESET_WITH_STATUS, "generateName", "deletionGracePeriodSeconds"),
    ),
)
LEVELS = Rules(
    after_commit=level_committed,
    validate=_level_errors,
    validate_status_update=lambda new, _: [*_status_errors(new)],
    metadata=MetadataChecks(
        on_update=(METADATA,),
        on_status=(),
        status_leaves=(*RESET_WITH_STATUS, "generateName", "deletionGracePeriodSeconds"),
    ),
)
