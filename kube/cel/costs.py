"""What an expression may cost at worst, before it is ever run (cel-go's checker/cost.go, Kubernetes' library/cost.go).

Sizes and costs are pairs (least, most). ``UNBOUNDED`` is the largest there is; sums and products stop there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from mews.kube.cel.call_costs import AUTHORIZATION_COST, SET_FACTORS
from mews.kube.cel.checker import Checked
from mews.kube.cel.syntax import CallNode, Fold, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from mews.kube.cel.types import DYN, Type

UNBOUNDED = (1 << 64) - 1
_WALK, _REGEX = 0.1, 0.25


def _add(one: int, other: int) -> int:
    return min(one + other, UNBOUNDED)


def times(one: int, other: int) -> int:
    """Return the product, which stops at the largest there is."""
    return min(one * other, UNBOUNDED)


def _scaled(one: int, factor: float) -> int:
    value = float(one) * factor
    return UNBOUNDED if value >= 2.0**64 else math.ceil(value)


class Estimate(NamedTuple):
    """At least so much, at most so much: a size or a cost."""

    low: int
    high: int

    def plus(self, other: Estimate) -> Estimate:
        """Return both."""
        return Estimate(_add(self.low, other.low), _add(self.high, other.high))

    def by(self, other: Estimate) -> Estimate:
        """Return the cost of doing this so many times."""
        return Estimate(times(self.low, other.low), times(self.high, other.high))

    def scaled(self, factor: float) -> Estimate:
        """Times a factor, rounded up."""
        return Estimate(_scaled(self.low, factor), _scaled(self.high, factor))

    def union(self, other: Estimate) -> Estimate:
        """Return one or the other."""
        return Estimate(min(self.low, other.low), max(self.high, other.high))


_UNKNOWN, _ZERO, _ONE = Estimate(0, UNBOUNDED), Estimate(0, 0), Estimate(1, 1)
SizeOf = Callable[[tuple[str, ...]], int | None]
"""The most elements at a path (``self``, names, ``@items``, ``@keys``, ``@values``), None where nothing is known."""


class _Entries(Struct, frozen=True):
    is_list: bool
    key: Estimate
    value: Estimate


class _Local(Struct, frozen=True):
    path: tuple[str, ...]
    size: Estimate | None
    entries: _Entries | None


def cost(checked: Checked, size_of: SizeOf) -> int:
    """Return the most that a checked expression costs."""
    return _Coster(checked, size_of).cost(checked.tree).high


class _Coster:
    def __init__(self, checked: Checked, size_of: SizeOf) -> None:
        self._checked = checked
        self._size_of = size_of
        self._paths: dict[Node, tuple[str, ...]] = {}
        self._sizes: dict[Node, Estimate] = {}
        self._entries: dict[Node, _Entries] = {}
        self._locals: dict[str, list[_Local]] = {}

    def cost(self, node: Node) -> Estimate:
        if isinstance(node, Literal):
            return _ZERO
        if isinstance(node, Ident):
            local = self._local(node.name)
            self._paths[node] = local.path if local is not None else (node.name,)
            return _ONE
        if isinstance(node, Select):
            return self._select(node)
        if isinstance(node, CallNode):
            return self._call(node)
        if isinstance(node, ListNode):
            return self._list(node)
        if isinstance(node, MapNode):
            return self._map(node)
        if isinstance(node, Fold):
            return self._fold(node)
        assert isinstance(node, StructNode)
        total = Estimate(40, 40)
        for _, value, _ in node.fields:
            total = total.plus(self.cost(value))
        return total

    def _local(self, name: str) -> _Local | None:
        stack = self._locals.get(name)
        return stack[-1] if stack else None

    def _type(self, node: Node) -> Type:
        return self._checked.types.get(node, DYN)

    def _path(self, node: Node) -> tuple[str, ...]:
        if isinstance(node, Ident) and (local := self._local(node.name)) is not None:
            return local.path
        return self._paths.get(node, ())

    def _select(self, node: Select) -> Estimate:
        total = self.cost(node.operand)
        if node.test:
            return total
        target = self._type(node.operand)
        if target.name == "map" or target.fields is not None or target.is_var:
            total = total.plus(_ONE)
        self._paths[node] = (*self._path(node.operand), node.field)
        return total

    def _list(self, node: ListNode) -> Estimate:
        total, item = _ZERO, Estimate(UNBOUNDED if node.items else 0, 0)
        for one in node.items:
            total = total.plus(self.cost(one))
            item = item.union(self._size_or_unknown(one))
        self._entries[node] = _Entries(True, _ONE, item)
        return total.plus(Estimate(10, 10))

    def _map(self, node: MapNode) -> Estimate:
        total = _ZERO
        keys = values = Estimate(UNBOUNDED if node.entries else 0, 0)
        for key, value, _ in node.entries:
            total = total.plus(self.cost(key)).plus(self.cost(value))
            keys, values = keys.union(self._size_or_unknown(key)), values.union(self._size_or_unknown(value))
        self._entries[node] = _Entries(False, keys, values)
        return total.plus(Estimate(30, 30))

    def _push(self, name: str, local: _Local) -> None:
        self._locals.setdefault(name, []).append(local)

    def _fold(self, node: Fold) -> Estimate:
        if node.macro == "bind":
            total = self.cost(node.source).plus(self.cost(node.init))
            self._push(node.accu, _Local(self._path(node.init), self._size(node.init), self._entry(node.init)))
            total = total.plus(self.cost(node.result))
            self._locals[node.accu].pop()
            self._copy(node, node.result)
            return total
        total = self.cost(node.source).plus(self.cost(node.init))
        self._push(node.accu, _Local(self._path(node.init), self._size(node.init), self._entry(node.init)))
        names = self._iterate(node)
        each = self.cost(node.condition).plus(self.cost(node.step))
        for name in names:
            self._locals[name].pop()
        total = total.plus(self.cost(node.result))
        self._locals[node.accu].pop()
        rounds = self._size_or_unknown(node.source)
        if isinstance(node.init, Literal):
            self._set(node, self._size(node.init))
        elif isinstance(node.init, (ListNode, MapNode)):
            self._set(node, rounds)
            if (entries := self._entry(node.step)) is not None:
                self._entries[node] = entries
        return total.plus(Estimate(times(rounds.low, each.low), times(rounds.high, each.high)))

    def _iterate(self, node: Fold) -> list[str]:
        entries, path = self._entry(node.source), self._path(node.source)
        is_list = entries.is_list if entries is not None else self._type(node.source).name == "list"
        key, value = (entries.key, entries.value) if entries is not None else (None, None)
        if node.var2:
            self._push(node.var, _Local((*path, "@indices" if is_list else "@keys"), key, None))
            self._push(node.var2, _Local((*path, "@items" if is_list else "@values"), value, None))
            return [node.var, node.var2]
        self._push(node.var, _Local((*path, "@items" if is_list else "@keys"), value if is_list else key, None))
        return [node.var]

    # Sizes

    def _set(self, node: Node, size: Estimate | None) -> None:
        if size is not None:
            self._sizes[node] = size

    def _copy(self, node: Node, source: Node) -> None:
        self._set(node, self._size(source))
        if (entries := self._entry(source)) is not None:
            self._entries[node] = entries

    def _size_or_unknown(self, node: Node) -> Estimate:
        return self._size(node) or _UNKNOWN

    def _entry(self, node: Node) -> _Entries | None:
        if node in self._entries:
            return self._entries[node]
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.entries if local is not None else None

    def _size(self, node: Node) -> Estimate | None:
        if node in self._sizes:
            return self._sizes[node]
        own = _own_size(node)
        if own is not None:
            return Estimate(own, own)
        path = self._path(node)
        if path and (most := self._size_of(path)) is not None:
            self._sizes[node] = Estimate(0, most)
            return self._sizes[node]
        if _is_scalar(self._type(node)):
            return _ONE
        local = self._local(node.name) if isinstance(node, Ident) else None
        return local.size if local is not None else None

    # Calls

    def _call(self, node: CallNode) -> Estimate:
        if node.function == "dyn" and node.args:
            total = _ONE.plus(self.cost(node.args[0]))
            self._copy(node, node.args[0])
            return total
        costs = [self.cost(arg) for arg in node.args]
        overloads = self._checked.overloads.get(node, [])
        if not overloads:
            return _ZERO
        total = self.cost(node.target) if node.target is not None else _ZERO
        call, size = Estimate(UNBOUNDED, 0), None
        for overload in overloads:
            price, result = self._priced(node, overload, costs)
            call = call.union(price)
            if result is not None:
                size = result if size is None else size.union(result)
            if overload in ("index_list", "index_map"):
                entries = self._entry(node.args[0])
                size = entries.value if entries is not None else None
                word = "@items" if overload == "index_list" else "@values"
                self._paths[node] = (*self._path(node.args[0]), word)
            if size is None:
                size = self._size(node)
        self._set(node, size)
        return total.plus(call)

    def _priced(self, node: CallNode, overload: str, costs: list[Estimate]) -> tuple[Estimate, Estimate | None]:
        """Cost with arguments, and the size of the result."""
        spent = _ZERO
        for one in costs:
            spent = spent.plus(one)
        own = self._library(node, overload)
        if own is not None:
            return own[0].plus(spent), own[1]
        sizes = [self._size_or_unknown(arg) for arg in node.args]
        target = self._size_or_unknown(node.target) if node.target is not None else _UNKNOWN
        if overload in ("logical_or", "logical_and"):
            return Estimate(costs[0].low, costs[0].plus(costs[1]).high), None
        if overload == "conditional":
            self._join_entries(node, node.args[1:])
            return costs[0].plus(costs[1].union(costs[2])), sizes[1].union(sizes[2])
        if overload in ("add_string", "add_bytes", "add_list"):
            size = sizes[0].plus(sizes[1])
            self._join_entries(node, node.args)
            return (_ONE if overload == "add_list" else size.scaled(_WALK)).plus(spent), size
        price, result = _standard_price(overload, sizes, target)
        return price.plus(spent), result

    def _join_entries(self, node: Node, args: list[Node]) -> None:
        one, other = (self._entry(arg) for arg in args[:2])
        if one is not None and other is not None:
            self._entries[node] = _Entries(one.is_list, one.key.union(other.key), one.value.union(other.value))

    def _item_size(self, node: Node) -> tuple[Type, Estimate] | None:
        """Return the type of a list's items and how large they may be."""
        params = self._type(node).params
        if not params:
            return None
        path = self._path(node)
        most = self._size_of((*path, "@items")) if path and not path[0].startswith("@result") else None
        return params[0], (Estimate(0, most) if most is not None else _UNKNOWN)

    def _library(self, node: CallNode, overload: str) -> tuple[Estimate, Estimate | None] | None:
        sizes = [self._size_or_unknown(arg) for arg in node.args]
        target = self._size_or_unknown(node.target) if node.target is not None else None
        name = node.function
        if name in ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf") and node.target is not None:
            return self._list_price(node.target, target or _UNKNOWN), None
        if name == "join" and node.target is not None:
            size = self._joined_size(node.target, target or _UNKNOWN, sizes)
            return size.scaled(_WALK), size
        if name == "_==_" and (types := {self._type(arg) for arg in node.args}) and len(types) == 1:
            kind = types.pop().name
            if kind in ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver"):
                return _ONE, None
            if kind == "kubernetes.NamedFormat":
                return Estimate(1, 64).scaled(_WALK), None
            if kind == "kubernetes.URL":
                return Estimate(1, sizes[1].high if sizes[1] != _UNKNOWN else 1).scaled(_WALK), None
        if name == "split" and target is not None:
            most = node.args[1].value if len(node.args) > 1 and isinstance(node.args[1], Literal) else target.high
            return target.scaled(2 * _WALK), Estimate(0, int(most))
        return _library_price(name, overload, sizes, target)

    def _list_price(self, node: Node, size: Estimate) -> Estimate:
        item = self._item_size(node)
        if item is None:
            return size.scaled(_WALK)
        each = _ONE.plus(item[1].scaled(_WALK)) if item[0].name in ("string", "bytes") else _ONE
        return size.by(each)

    def _joined_size(self, node: Node, size: Estimate, args: list[Estimate]) -> Estimate:
        item = self._item_size(node)
        found = size.by(item[1]) if item is not None else _ZERO
        if args:
            found = found.plus(args[0].by(Estimate(max(size.low - 1, 0), max(size.high - 1, 0))))
        return found


def _own_size(node: Node) -> int | None:
    if isinstance(node, Literal):
        return len(node.value) if isinstance(node.value, (str, bytes)) else 1
    if isinstance(node, ListNode):
        return len(node.items)
    return len(node.entries) if isinstance(node, MapNode) else None


def _is_scalar(type_: Type) -> bool:
    if type_.name == "optional_type":
        return _is_scalar(type_.params[0])
    plain = ("bool", "double", "int", "uint", "google.protobuf.Duration", "google.protobuf.Timestamp")
    return type_.name in plain and not type_.is_var


def _standard_price(overload: str, sizes: list[Estimate], target: Estimate) -> tuple[Estimate, Estimate | None]:
    if overload == "string_to_bytes":
        return sizes[0].scaled(_WALK), Estimate(sizes[0].low, times(sizes[0].high, 4))
    if overload == "bytes_to_string":
        return sizes[0].scaled(_WALK), Estimate(sizes[0].low // 4, sizes[0].high)
    if overload == "strings_quote":
        return sizes[0].scaled(_WALK), Estimate(_add(sizes[0].low, 2), _add(times(sizes[0].high, 2), 2))
    if overload == "string_format":
        return target.scaled(_WALK), None
    if overload in ("starts_with_string", "ends_with_string"):
        return sizes[0].scaled(_WALK), None
    if overload == "in_list":
        return sizes[1], None
    if overload == "matches_string":
        return target.plus(_ONE).scaled(_WALK).by(sizes[0].scaled(_REGEX)), None
    if overload == "contains_string":
        return target.scaled(_WALK).by(sizes[0].scaled(_WALK)), None
    compared = ("less_", "greater_")
    if overload in ("equals", "not_equals") or (
        overload.startswith(compared) and overload.endswith(("_string", "_bytes"))
    ):
        most = min(sizes[0].high, sizes[1].high)
        return Estimate(1 if most else 0, most).scaled(_WALK), None
    return _ONE, None


_NOMINAL = frozenset((
    *("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast",),
    *("isLinkLocalUnicast", "isGlobalUnicast", "format.named", "sign", "asInteger", "isInteger",),
    *("asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub", "major", "minor",),
    *("path", "group", "serviceAccount", "resource", "subresource", "namespace", "name", "fieldSelector",),
    *("labelSelector", "errored", "error", "allowed", "reason",),
    *("patch", "getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery",),
))  # fmt: skip


# Complex: one branch for each group of upstream's functions.
def _library_price(  # noqa: C901
    name: str, overload: str, sizes: list[Estimate], target: Estimate | None
) -> tuple[Estimate, Estimate | None] | None:
    if name in _NOMINAL or overload == "cidr_ip":
        return _ONE, None
    if name in SET_FACTORS and len(sizes) == 2:
        return sizes[0].by(sizes[1]).scaled(SET_FACTORS[name]).plus(_ONE), None
    if name == "check":
        return Estimate(AUTHORIZATION_COST, AUTHORIZATION_COST), None
    if name == "url" and len(sizes) == 1:
        return sizes[0].scaled(_WALK), sizes[0]
    if name in ("lowerAscii", "upperAscii", "substring", "trim") and target is not None:
        return target.scaled(_WALK), target
    if name == "replace" and target is not None and len(sizes) >= 2:
        return target.scaled(2 * _WALK), _replaced(target, sizes[0], sizes[1])
    if name in ("find", "findAll") and target is not None:
        return target.plus(_ONE).scaled(_WALK).by(sizes[0].scaled(_REGEX)), Estimate(0, target.high)
    if name in ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver") and sizes:
        return sizes[0].scaled(_WALK), None
    if name == "ip.isCanonical" and sizes:
        return sizes[0].scaled(2 * _WALK), None
    if name == "validate" and sizes:
        return sizes[0].scaled(_WALK).scaled(128 * _REGEX), None
    if name in ("containsIP", "containsCIDR") and sizes:
        width = Estimate(4, 16)
        price = width.plus(width).scaled(_WALK)
        if name == "containsCIDR":
            price = price.plus(width.scaled(_WALK)).plus(_ONE)
        return (price.plus(sizes[0].scaled(_WALK)) if overload.endswith("_string") else price), None
    return None


def _replaced(size: Estimate, old: Estimate, new: Estimate) -> Estimate:
    """Return how long a text may be after its parts are replaced."""
    if old.low == 0:
        most, kept_most = _add(size.high, 1), size.high
    elif new.high <= old.low:
        most, kept_most = 0, size.high
    else:
        most, kept_most = math.ceil(size.high / old.low), 0
    if old.high == 0:
        least, kept_least = _add(size.low, 1), size.low
    elif old.high <= new.low:
        least, kept_least = 0, size.low
    else:
        least, kept_least = math.ceil(size.low / old.high), 0
    return Estimate(least, most).by(new).plus(Estimate(kept_least, kept_most))
