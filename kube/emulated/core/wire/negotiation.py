"""Media types: what a client accepts, and what its body is (contract apiserver.md sections 1 and 2)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import orjson
import yaml
from msgspec import Struct

from mews.kube.api.errors import ApiError, BadRequestError
from mews.kube.client.json_text import parse
from mews.kube.emulated.core.store.json_errors import json_error
from mews.kube.emulated.core.wire import protobuf
from mews.kube.emulated.types.custom.go_text import HTML_ESCAPED
from mews.kube.releases.release_data import DEFAULT
from mews.yaml_text import check_extent

MAX_DEPTH = 256
"""Levels of nesting; Go allows 10,000, of which no object has ever made use."""

JSON = "application/json"
YAML = "application/yaml"
_MOST_VALUES = 100_000
"""Of a body in YAML, keys included; an object of the size that etcd takes has fewer."""
PROTOBUF = "application/vnd.kubernetes.protobuf"

_OFFERED = (JSON, YAML, PROTOBUF)
_RESHAPED = ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
_DISCOVERED = ("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
_STREAMED = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")


class Form(Struct, frozen=True):
    """How an answer is written: the media type, and as which kind if not the object's own (``Table`` …)."""

    media: str = JSON
    kind: str = ""
    group: str = ""
    version: str = ""


def accepted(header: str, *, streamed: bool = False, reshaped: bool = True) -> list[Form]:
    """Return the forms of an Accept header that we write, in the client's order; 406 when there is none. ``reshaped``:
    as a table, or metadata alone, too."""
    parts = (header or "*/*").split(",")
    forms = [form for part in parts if (form := _form(part)) is not None]
    if not forms:
        raise _refused(f"406: Not Acceptable\n\nAvailable representations: {', '.join((*_OFFERED, *_STREAMED))}", {})
    known = [form for form in forms if _is_known(form, reshaped=reshaped) and not (streamed and form.media == YAML)]
    if not known:
        offered = ", ".join(_STREAMED if streamed else _OFFERED)
        raise _refused(f"only the following media types are accepted: {offered}")
    return known


def _refused(text: str, details: dict[str, Any] | None = None) -> ApiError:
    return ApiError(text, code=406, reason="NotAcceptable", details=details)


def _is_known(form: Form, *, reshaped: bool) -> bool:
    if form.kind in _RESHAPED:
        return reshaped and form.group == "meta.k8s.io" and form.version in ("v1", "v1beta1")
    return not form.kind or (form.kind, form.group, form.version) == _DISCOVERED


def _form(part: str) -> Form | None:
    media, *parameters = (piece.strip() for piece in part.split(";"))
    values = dict(parameter.split("=", 1) for parameter in parameters if "=" in parameter)
    if media in ("*/*", ""):
        media = JSON
    if media not in (JSON, YAML):
        return None
    return Form(media, values.get("as", ""), values.get("g", ""), values.get("v", ""))


def encode(body: Any, media: str = JSON, *, indented: bool = False) -> bytes:
    """Return a body as JSON or YAML; JSON as Go writes it, safe within HTML."""
    if media == YAML:
        return yaml.dump(body, Dumper=_Dumper, default_flow_style=False).encode()
    try:
        written = orjson.dumps(body, option=orjson.OPT_INDENT_2 if indented else None)
    except TypeError:  # whole numbers of more than 64 bits, which custom objects may hold
        separators = (",", ": ") if indented else (",", ":")
        written = json.dumps(body, indent=2 if indented else None, separators=separators, ensure_ascii=False).encode()
    return _UNSAFE.sub(lambda found: _SAFE[found[0]], written)


_SAFE = {char.encode(): code.encode() for char, code in HTML_ESCAPED.items()}
_UNSAFE = re.compile(b"|".join(_SAFE))
"""It stands in texts only."""


def wants_indented(pretty: str, user_agent: str) -> bool:
    """Return whether JSON is to be indented, by the parameter ``pretty`` and the User-Agent
    (endpoints/handlers/negotiation, isPrettyPrint)."""
    if pretty:
        return pretty in _TRUE
    return user_agent.startswith(("curl", "Wget", "Mozilla/5.0"))


_TRUE = ("1", "t", "T", "TRUE", "true", "True")
"""What Go's ParseBool takes for true."""


class _Dumper(yaml.SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        """Shared parts are written out."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return it as upstream's writer: in double quotes what would be read as something else than text."""
        is_text = _resolved(text) == "tag:yaml.org,2002:str"
        style = "|" if "\n" in text else None if is_text and text not in _ALSO_BOOLEAN else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _resolved(text: str) -> str:
    """Return the tag under which plain text would be read."""
    candidates = yaml.SafeDumper.yaml_implicit_resolvers.get(text[:1], [])
    return next((tag for tag, pattern in candidates if pattern.match(text)), "tag:yaml.org,2002:str")


_ALSO_BOOLEAN = ("y", "Y", "n", "N")
_Dumper.add_representer(str, _Dumper.represent_text)


class _Loader(yaml.SafeLoader):
    """YAML as JSON: timestamps stay text."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def media_of(content_type: str) -> str:
    """Return the media type without parameters; JSON when none is given."""
    if not content_type:
        return JSON
    return content_type.partition(";")[0].strip().lower()


def decode(raw: bytes, content_type: str, release: str = DEFAULT) -> Any:
    """Return a body's value; ``release`` says which fields are known by number.

    Raises ``ApiError`` 415 for a media type that is not known, ``BadRequestError`` for one that cannot be read.
    """
    media = media_of(content_type)
    if media == JSON:
        return parse_json(raw)
    if media in (YAML, "application/x-yaml", "text/yaml"):
        return parse_yaml(raw)
    if media == PROTOBUF:
        return protobuf.decode(raw, release)
    raise ApiError(
        f"the body of the request was in an unknown format - accepted media types include: {', '.join(_OFFERED)}",
        code=415,
        reason="UnsupportedMediaType",
    )


def parse_json(raw: bytes, prefix: str = "couldn't get version/kind; json parse error: ") -> Any:
    """JSON, worded as the API server does when it is none."""
    try:
        value = parse(raw, _parse_slowly)
        _check_depth(raw, value)
        return _whole(value) if b"\\ud" in raw or b"\\uD" in raw else value
    except (ValueError, RecursionError):
        raise BadRequestError(f"{prefix}{json_error(raw)}") from None


def _check_depth(raw: bytes, value: Any) -> None:
    """Raise ValueError for what is nested too deeply to be walked through later on."""
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for outer in level
            if isinstance(outer, dict | list)
            for item in (outer.values() if isinstance(outer, dict) else outer)
        ]
        if not level:
            return
    raise ValueError("exceeded max depth")


def _parse_slowly(raw: bytes) -> Any:
    return json.loads(raw.decode(errors="replace"), parse_constant=_no_constant)


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _whole(value: Any) -> Any:
    """Halves of surrogate pairs become replacement characters, as Go's decoder makes them."""
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if isinstance(value, str) else value


def parse_yaml(raw: bytes) -> Any:
    """YAML as the API server reads it."""
    return parse_yaml_strictly(raw)[0]


def parse_yaml_strictly(raw: bytes) -> tuple[Any, list[str]]:
    """Return the same, and what Go's parser says of keys that a mapping has twice: ``line 9: key "a" already set in
    map``."""
    try:
        check_extent(raw, _MOST_VALUES)
        loader = _Loader(raw)
        node = loader.get_single_node()
        value = None if node is None else loader.construct_document(node)
        _check_depth(raw, value)
        return value, list(_repeated(node))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise BadRequestError(f"error converting YAML to JSON: {_go_yaml_complaint(error)}") from None


def _repeated(node: yaml.Node | None) -> Iterator[str]:
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _repeated(item)
    if not isinstance(node, yaml.MappingNode):
        return
    seen: set[tuple[str, str]] = set()
    for key, value in node.value:
        yield from _repeated(value)
        if not isinstance(key, yaml.ScalarNode):
            continue
        if (key.tag, key.value) in seen:
            shown = json.dumps(key.value) if key.tag == "tag:yaml.org,2002:str" else key.value
            yield f"line {key.start_mark.line + 1}: key {shown} already set in map"
        seen.add((key.tag, key.value))


def _go_yaml_complaint(error: Exception) -> str:
    """Go's parser tells the line only when it is not the first."""
    if not isinstance(error, yaml.MarkedYAMLError) or error.problem is None:
        return f"yaml: {error}"
    mark = error.problem_mark
    line = (mark.line if mark is not None else 0) + isinstance(error, yaml.scanner.ScannerError)
    return f"yaml: line {line}: {error.problem}" if line else f"yaml: {error.problem}"
