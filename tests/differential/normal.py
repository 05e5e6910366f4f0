"""Answers without what differs from run to run: uids, versions, times, ages, addresses."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from tests.differential.model import YAML

_VOLATILE = {
    "uid": "<uid>",
    "resourceVersion": "<version>",
    "creationTimestamp": "<time>",
    "deletionTimestamp": "<time>",
    "lastTransitionTime": "<time>",
    "lastUpdateTime": "<time>",
    "lastPhaseTransitionTime": "<time>",
    "time": "<time>",
    "continue": "<token>",
    "serverAddress": "<address>",
}
_NODE_PORTS, _FIRST_NODE_PORT = ("nodePort", "healthCheckNodePort"), 30_000
_OWNER = ("manager", "operation", "subresource")
_UNORDERED = ("resourceRules", "nonResourceRules")
_PROSE = ("description",)
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_REWRITTEN = (
    (_UUID, "<uid>"),
    (re.compile(r"(too old resource version: 1) \(\d+\)"), r"\1 (<version>)"),
    (re.compile(r'("time":)"[\dT:-]+Z"'), r'\1"<time>"'),
    (re.compile(r"current: \d+"), "current: <version>"),
    (re.compile(r"in record \(\d+\)"), "in record (<version>)"),
    (re.compile(r"hash=[0-9A-F]+"), "hash=<hash>"),
    (re.compile(r"serverAddress: \S+"), "serverAddress: <address>"),
    (re.compile(r"(?<![\d.])10\.96\.(?!77\.[1-9]\b)\d+\.\d+"), "<cluster address>"),
    (re.compile(r"/tmp/mews-differential-\w+/(real|ours)"), "<folder>"),
    (re.compile(r"kubectl-edit-\d+"), "kubectl-edit-<number>"),
    (re.compile(r"\bB_\w{5}\b"), "B_<chance>"),
    (re.compile(r"^(x{58})\w{5}$"), r"\1<chance>"),
    (re.compile(r"https?://127\.0\.0\.1:\d+"), "<server>"),
    (re.compile(r"127\.0\.0\.1:\d+"), "<server>"),
)
_CELLS = (
    (re.compile(r"^(\d+m)?\d+(ms|s)$"), "<age>"),
    (re.compile(r"^\d{4}-\d\d-\d\dT[\d:]+Z$"), "<time>"),
)
_TEXT = (
    *_REWRITTEN,
    (re.compile(r"[IWE]\d{4} [\d:.]+ +\d+ "), "<log> "),
    (re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+(Z| [+-]\d{4})"), "<time>"),
    (re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d \w{3} \d{4} [\d:]+ [+-]\d{4}"), "<time>"),
    (re.compile(r"(resourceVersion\"?: )\"\d+\""), r"\1<version>"),
    (re.compile(r"(/tmp/|/var/tmp/)[\w./-]+?/(LIVE|MERGED)-\d+"), r"\2"),
    (re.compile(r"(LIVE|MERGED)-\d+"), r"\1"),
    (re.compile(r"(?<![\w.:-])(\d+[hms])+(?![\w.:-])"), "<age>"),
)


def parsed(text: str, media: str) -> Any:
    """JSON, JSON lines, YAML (times stay text), or text."""
    if media == YAML:
        return yaml.load(text, Loader=yaml.BaseLoader)
    try:
        return json.loads(text)
    except ValueError:
        lines = text.splitlines()
    try:
        return [json.loads(line) for line in lines]
    except ValueError:
        return text


def normal(value: Any, *, owned: bool = False, key: str = "") -> Any:
    """A body without what is volatile and the prose of columns; with managedFields only if ``owned``."""
    if isinstance(value, dict):
        if value.get("kind") == "APIResourceList":  # custom kinds come in the order of a Go map
            value = {**value, "resources": sorted(value["resources"], key=lambda resource: resource["name"])}
        left_out = _PROSE if owned else (*_PROSE, "managedFields")
        return {
            name: _VOLATILE[name]
            if name in _VOLATILE and isinstance(item, str) and item
            else "<node port>"
            if name in _NODE_PORTS and isinstance(item, int) and item >= _FIRST_NODE_PORT
            else normal(item, owned=owned, key=name)
            for name, item in value.items()
            if name not in left_out or not isinstance(item, str | list)
        }
    if isinstance(value, list) and key == "managedFields":  # upstream orders them by the second of their time
        value = sorted(
            value, key=lambda entry: [str(entry.get(name)) for name in ("manager", "operation", "subresource")]
        )
    if isinstance(value, list) and key == "causes":  # of several managers those come in the order of a Go map
        value = sorted(value, key=lambda cause: str(cause["message"] if _CONFLICT in _reason(cause) else ""))
    if isinstance(value, list) and key in _UNORDERED:
        return sorted((normal(item, owned=owned) for item in value), key=lambda item: json.dumps(item, sort_keys=True))
    if isinstance(value, list):
        return [normal(item, owned=owned, key=key) for item in value]
    if isinstance(value, str):
        text = _PATCHED.sub(_patched, value)
        return _rewritten(_rewritten(text, _REWRITTEN), _CELLS if key == "cells" else ())
    return value


_CONFLICT = "FieldManagerConflict"


def _reason(cause: Any) -> str:
    return str(cause.get("reason", "")) if isinstance(cause, dict) else ""


_PATCHED = re.compile(r'Invalid value: ("\{.*\}"): ')


def _patched(match: re.Match[str]) -> str:
    """The object in a message about a patch, in the order of its keys."""
    try:
        told = normal(json.loads(json.loads(match[1])), owned=True)
    except ValueError:
        return match[0]
    return f"Invalid value: {json.dumps(told, sort_keys=True)}: "


def _rewritten(text: str, rules: Any) -> str:
    for pattern, replacement in rules:
        text = pattern.sub(replacement, text)
    return text


def normal_text(text: str, *, is_sorted: bool = False) -> list[str]:
    """Lines of a program's output: volatile parts rewritten, padding inside a line as one space."""
    lines = [_line(line) for line in _rewritten(text, _TEXT).splitlines()]
    return sorted(lines) if is_sorted else lines


def _line(line: str) -> str:
    body = line.lstrip(" ")
    return line[: len(line) - len(body)] + re.sub(r" {2,}|\t+", " ", body).rstrip()
