"""The functions of Kubernetes 1.34 as the checker knows them: one line an overload, ``id: args -> result``.

A ``.`` before the arguments says that the first is the target. ``A``, ``B`` are variables; ``[A]`` a list, ``{A:B}`` a
map, ``?A`` an optional. The order is cel-go's: it decides which overload a refusal is about.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache

from msgspec import Struct

from mews.kube.cel import types
from mews.kube.cel.types import Type

QUANTITY = types.opaque("kubernetes.Quantity")
URL = types.opaque("kubernetes.URL")
SEMVER = types.opaque("kubernetes.Semver")
FORMAT = types.opaque("kubernetes.NamedFormat")
IP, CIDR = Type("net.IP"), Type("net.CIDR")
_AUTHZ = "kubernetes.authorization"
PATH_CHECK, GROUP_CHECK = types.opaque(f"{_AUTHZ}.PathCheck"), types.opaque(f"{_AUTHZ}.GroupCheck")
RESOURCE_CHECK, DECISION = types.opaque(f"{_AUTHZ}.ResourceCheck"), types.opaque(f"{_AUTHZ}.Decision")
AUTHORIZER = types.opaque(f"{_AUTHZ}.Authorizer")
NAMES: Mapping[str, Type] = {
    "bool": types.BOOL, "int": types.INT, "uint": types.UINT, "double": types.DOUBLE, "string": types.STRING,
    "bytes": types.BYTES, "null_type": types.NULL, "dyn": types.DYN, "timestamp": types.TIMESTAMP,
    "duration": types.DURATION, "type": types.TYPE, "quantity": QUANTITY, "url": URL, "semver": SEMVER,
    "format": FORMAT, "ip": IP, "cidr": CIDR, "list": Type("list"), "map": Type("map"),
    "authorizer": AUTHORIZER, "pathcheck": PATH_CHECK, "groupcheck": GROUP_CHECK, "resourcecheck": RESOURCE_CHECK,
    "decision": DECISION,
}  # fmt: skip

_ORDERED = ["bool", "int64:int", "uint64:uint", "double", "string", "bytes", "timestamp", "duration"]
_CROSSED = {"int64": ("double", "uint64"), "uint64": ("double", "int64"), "double": ("int64", "uint64")}
_TEXT = """
_?_:_  conditional: bool A A -> A
_&&_   logical_and: bool bool -> bool
_||_   logical_or: bool bool -> bool
!_     logical_not: bool -> bool
@not_strictly_false  not_strictly_false: bool -> bool
_==_   equals: A A -> bool
_!=_   not_equals: A A -> bool
_+_    add_bytes: bytes bytes -> bytes
_+_    add_double: double double -> double
_+_    add_duration_duration: duration duration -> duration
_+_    add_duration_timestamp: duration timestamp -> timestamp
_+_    add_timestamp_duration: timestamp duration -> timestamp
_+_    add_int64: int int -> int
_+_    add_list: [A] [A] -> [A]
_+_    add_string: string string -> string
_+_    add_uint64: uint uint -> uint
_/_    divide_double: double double -> double
_/_    divide_int64: int int -> int
_/_    divide_uint64: uint uint -> uint
_%_    modulo_int64: int int -> int
_%_    modulo_uint64: uint uint -> uint
_*_    multiply_double: double double -> double
_*_    multiply_int64: int int -> int
_*_    multiply_uint64: uint uint -> uint
-_     negate_double: double -> double
-_     negate_int64: int -> int
_-_    subtract_double: double double -> double
_-_    subtract_duration_duration: duration duration -> duration
_-_    subtract_int64: int int -> int
_-_    subtract_timestamp_duration: timestamp duration -> timestamp
_-_    subtract_timestamp_timestamp: timestamp timestamp -> duration
_-_    subtract_uint64: uint uint -> uint
_[_]   index_list: [A] int -> A
_[_]   index_map: {A:B} A -> B
_[_]   optional_list_index_int: ?[A] int -> ?A
_[_]   optional_map_index_value: ?{A:B} A -> ?B
_[?_]  list_optindex_optional_int: [A] int -> ?A
_[?_]  optional_list_optindex_optional_int: ?[A] int -> ?A
_[?_]  map_optindex_optional_value: {A:B} A -> ?B
_[?_]  optional_map_optindex_optional_value: ?{A:B} A -> ?B
@in    in_list: A [A] -> bool
@in    in_map: A {A:B} -> bool
size   size_bytes: bytes -> int
size   bytes_size: .bytes -> int
size   size_list: [A] -> int
size   list_size: .[A] -> int
size   size_map: {A:B} -> int
size   map_size: .{A:B} -> int
size   size_string: string -> int
size   string_size: .string -> int
type   type: A -> type
bool   bool_to_bool: bool -> bool
bool   string_to_bool: string -> bool
bytes  bytes_to_bytes: bytes -> bytes
bytes  string_to_bytes: string -> bytes
double double_to_double: double -> double
double int64_to_double: int -> double
double string_to_double: string -> double
double uint64_to_double: uint -> double
duration duration_to_duration: duration -> duration
duration int64_to_duration: int -> duration
duration string_to_duration: string -> duration
dyn    to_dyn: A -> dyn
int    int64_to_int64: int -> int
int    double_to_int64: double -> int
int    duration_to_int64: duration -> int
int    string_to_int64: string -> int
int    timestamp_to_int64: timestamp -> int
int    uint64_to_int64: uint -> int
string string_to_string: string -> string
string bool_to_string: bool -> string
string bytes_to_string: bytes -> string
string double_to_string: double -> string
string duration_to_string: duration -> string
string int64_to_string: int -> string
string timestamp_to_string: timestamp -> string
string uint64_to_string: uint -> string
string ip_to_string: ip -> string
string cidr_to_string: cidr -> string
timestamp timestamp_to_timestamp: timestamp -> timestamp
timestamp int64_to_timestamp: int -> timestamp
timestamp string_to_timestamp: string -> timestamp
uint   uint64_to_uint64: uint -> uint
uint   double_to_uint64: double -> uint
uint   int64_to_uint64: int -> uint
uint   string_to_uint64: string -> uint
matches matches: string string -> bool
matches matches_string: .string string -> bool
contains contains_string: .string string -> bool
endsWith ends_with_string: .string string -> bool
startsWith starts_with_string: .string string -> bool
getHours duration_to_hours: .duration -> int
getMinutes duration_to_minutes: .duration -> int
getSeconds duration_to_seconds: .duration -> int
getMilliseconds duration_to_milliseconds: .duration -> int
charAt string_char_at_int: .string int -> string
indexOf string_index_of_string: .string string -> int
indexOf string_index_of_string_int: .string string int -> int
indexOf list_a_index_of_int: .[A] A -> int
lastIndexOf string_last_index_of_string: .string string -> int
lastIndexOf string_last_index_of_string_int: .string string int -> int
lastIndexOf list_a_last_index_of_int: .[A] A -> int
lowerAscii string_lower_ascii: .string -> string
upperAscii string_upper_ascii: .string -> string
replace string_replace_string_string: .string string string -> string
replace string_replace_string_string_int: .string string string int -> string
split string_split_string: .string string -> [string]
split string_split_string_int: .string string int -> [string]
substring string_substring_int: .string int -> string
substring string_substring_int_int: .string int int -> string
trim string_trim: .string -> string
format string_format: .string [dyn] -> string
strings.quote strings_quote: string -> string
join list_join: .[string] -> string
join list_join_string: .[string] string -> string
sets.contains list_sets_contains_list: [A] [A] -> bool
sets.equivalent list_sets_equivalent_list: [A] [A] -> bool
sets.intersects list_sets_intersects_list: [A] [A] -> bool
find string_find_string: .string string -> string
findAll string_find_all_string: .string string -> [string]
findAll string_find_all_string_int: .string string int -> [string]
url string_to_url: string -> url
isURL is_url_string: string -> bool
getScheme url_get_scheme: .url -> string
getHost url_get_host: .url -> string
getHostname url_get_hostname: .url -> string
getPort url_get_port: .url -> string
getEscapedPath url_get_escaped_path: .url -> string
getQuery url_get_query: .url -> {string:[string]}
quantity string_to_quantity: string -> quantity
isQuantity is_quantity_string: string -> bool
sign quantity_sign: quantity -> int
isGreaterThan quantity_is_greater_than: .quantity quantity -> bool
isGreaterThan semver_is_greater_than: .semver semver -> bool
isLessThan quantity_is_less_than: .quantity quantity -> bool
isLessThan semver_is_less_than: .semver semver -> bool
compareTo quantity_compare_to: .quantity quantity -> int
compareTo semver_compare_to: .semver semver -> int
asApproximateFloat quantity_get_float: .quantity -> double
asInteger quantity_get_int: .quantity -> int
isInteger quantity_is_integer: .quantity -> bool
add quantity_add: .quantity quantity -> quantity
add quantity_add_int: .quantity int -> quantity
sub quantity_sub: .quantity quantity -> quantity
sub quantity_sub_int: .quantity int -> quantity
ip string_to_ip: string -> ip
ip cidr_ip: .cidr -> ip
isIP is_ip: string -> bool
ip.isCanonical ip_is_canonical: string -> bool
family ip_family: .ip -> int
isUnspecified ip_is_unspecified: .ip -> bool
isLoopback ip_is_loopback: .ip -> bool
isLinkLocalMulticast ip_is_link_local_multicast: .ip -> bool
isLinkLocalUnicast ip_is_link_local_unicast: .ip -> bool
isGlobalUnicast ip_is_global_unicast: .ip -> bool
cidr string_to_cidr: string -> cidr
isCIDR is_cidr: string -> bool
containsIP cidr_contains_ip_string: .cidr string -> bool
containsIP cidr_contains_ip_ip: .cidr ip -> bool
containsCIDR cidr_contains_cidr_string: .cidr string -> bool
containsCIDR cidr_contains_cidr: .cidr cidr -> bool
prefixLength cidr_prefix_length: .cidr -> int
masked cidr_masked: .cidr -> cidr
format.named format-named: string -> ?format
validate format-validate: .format string -> ?[string]
semver string_to_semver: string -> semver
semver string_bool_to_semver: string bool -> semver
isSemver is_semver_string: string -> bool
isSemver is_semver_string_bool: string bool -> bool
major semver_major: .semver -> int
minor semver_minor: .semver -> int
patch semver_patch: .semver -> int
optional.of optional_of: A -> ?A
optional.ofNonZeroValue optional_ofNonZeroValue: A -> ?A
optional.none optional_none: -> ?A
hasValue optional_hasValue: .?A -> bool
value optional_value: .?A -> A
or optional_or_optional: .?A ?A -> ?A
orValue optional_orValue_value: .?A A -> A
first list_first: .[A] -> ?A
last list_last: .[A] -> ?A
optional.unwrap optional_unwrap: [?A] -> [A]
unwrapOpt optional_unwrapOpt: .[?A] -> [A]
cel.@mapInsert @mapInsert_map_key_value: {A:B} A B -> {A:B}
cel.@mapInsert @mapInsert_map_map: {A:B} {A:B} -> {A:B}
path   authorizer_path: .authorizer string -> pathcheck
group  authorizer_group: .authorizer string -> groupcheck
serviceAccount authorizer_serviceaccount: .authorizer string string -> authorizer
resource groupcheck_resource: .groupcheck string -> resourcecheck
subresource resourcecheck_subresource: .resourcecheck string -> resourcecheck
namespace resourcecheck_namespace: .resourcecheck string -> resourcecheck
name   resourcecheck_name: .resourcecheck string -> resourcecheck
fieldSelector authorizer_fieldselector: .resourcecheck string -> resourcecheck
labelSelector authorizer_labelselector: .resourcecheck string -> resourcecheck
check  pathcheck_check: .pathcheck string -> decision
check  resourcecheck_check: .resourcecheck string -> decision
errored decision_errored: .decision -> bool
error  decision_error: .decision -> string
allowed decision_allowed: .decision -> bool
reason decision_reason: .decision -> string
"""
_GETTERS = (
    "FullYear:year", "Month:month", "DayOfYear:day_of_year", "DayOfMonth:day_of_month", "Date:day_of_month_1_based",
    "DayOfWeek:day_of_week", "Hours:hours", "Minutes:minutes", "Seconds:seconds", "Milliseconds:milliseconds",
)  # fmt: skip
_FORMATS = (
    "dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix dns1123SubdomainPrefix "
    "dns1035LabelPrefix labelValue uri uuid byte date datetime"
)


class Overload(Struct, frozen=True):
    """One way to call a function."""

    id: str
    member: bool
    args: tuple[Type, ...]
    result: Type


@cache
def functions() -> Mapping[str, tuple[Overload, ...]]:
    """Return all functions by name."""
    found: dict[str, list[Overload]] = {}
    for line in [*_TEXT.strip().split("\n"), *_generated()]:
        name, _, rest = line.partition(" ")
        id_, _, signature = rest.strip().partition(": ")
        found.setdefault(name, []).append(_overload(id_, signature))
    return {name: tuple(overloads) for name, overloads in found.items()}


def _generated() -> list[str]:
    lines = []
    for operator, word in (("_<_", "less"), ("_<=_", "less_equals"), ("_>_", "greater"), ("_>=_", "greater_equals")):
        for entry in _ORDERED:
            id_, _, type_ = entry.partition(":")
            lines.append(f"{operator} {word}_{id_}: {type_ or id_} {type_ or id_} -> bool")
            for other in _CROSSED.get(id_, ()):
                second = {"int64": "int", "uint64": "uint"}.get(other, other)
                lines.append(f"{operator} {word}_{id_}_{other}: {type_ or id_} {second} -> bool")
    for entry in _GETTERS:
        name, _, id_ = entry.partition(":")
        lines.append(f"get{name} timestamp_to_{id_}: .timestamp -> int")
        lines.append(f"get{name} timestamp_to_{id_}_with_tz: .timestamp string -> int")
    for name in ["int", "uint", "double", "duration", "timestamp", "string", "bool", "bytes"]:
        lines.append(f"isSorted list_{name}_is_sorted_bool: .[{name}] -> bool")
        lines.append(f"max list_{name}_max_{name}: .[{name}] -> {name}")
        lines.append(f"min list_{name}_min_{name}: .[{name}] -> {name}")
    lines += [f"sum list_{name}_sum_{name}: .[{name}] -> {name}" for name in ["int", "uint", "double", "duration"]]
    return lines + [f"format.{name} format.{name}: -> format" for name in _FORMATS.split()]


def _overload(id_: str, signature: str) -> Overload:
    args, _, result = f" {signature}".partition("-> ")
    words = args.split()
    member = bool(words) and words[0].startswith(".")
    found = tuple(_type(word.lstrip(".")) for word in words)
    return Overload(id_, member, found, _type(result.strip(), found))


def _type(word: str, args: tuple[Type, ...] = ()) -> Type:
    if word.startswith("["):
        return types.list_of(_type(word[1:-1]))
    if word.startswith("{"):
        match = re.fullmatch(r"\{([^:]+):(.+)\}", word)
        assert match is not None, word
        return types.map_of(_type(match[1]), _type(match[2]))
    if word.startswith("?"):
        return types.optional_of(_type(word[1:]))
    if word == "type" and args:
        return Type("type", args)
    return NAMES[word] if word in NAMES else Type(word, is_var=True)
