"""Reads kubeconfig files and merges several, as kubectl does (client-go, ``tools/clientcmd/loader.go``).

The first file that has an entry of a name provides all of it; the first that sets ``current-context`` provides that.
Files of ``KUBECONFIG`` that do not exist are left out; a file that is named itself must exist.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct

from mews.kube.client.kubeconfig.errors import KubeconfigError
from mews.yaml_text import check_extent

VARIABLE = "KUBECONFIG"
_LISTS = {"clusters": "cluster", "users": "user", "contexts": "context"}
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class KubeconfigEntry(Struct, frozen=True):
    """One named cluster, user or context, and the file that has it: its paths are relative to that file."""

    file: Path
    place: str
    value: Mapping[str, Any]

    def refuse(self, key: str, problem: str) -> KubeconfigError:
        """Return the error of a value of it."""
        return KubeconfigError(f"{self.file}: {'.'.join(filter(None, (self.place, key)))}: {problem}")

    def text(self, key: str) -> str:
        """Return a text of it, "" if it is not set. Raises KubeconfigError for any other value."""
        value = self.value.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.refuse(key, f"must be text, not {type(value).__name__}")
        return value

    def flag(self, key: str) -> bool:
        """Return a switch of it. Raises KubeconfigError for any other value."""
        value = self.value.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.refuse(key, "must be true or false")
        return bool(value)

    def path(self, key: str) -> Path | None:
        """Return a path of it, relative to its file; None if it is not set."""
        named = self.text(key)
        return self.file.parent / named if named else None


class Kubeconfig(Struct, frozen=True):
    """All named entries of one file, or of several that were merged."""

    shown: str
    current_context: str
    clusters: Mapping[str, KubeconfigEntry]
    users: Mapping[str, KubeconfigEntry]
    contexts: Mapping[str, KubeconfigEntry]


def read_files(path: str | None) -> Kubeconfig:
    """Return the kubeconfig of that path, or of ``KUBECONFIG``, or ``~/.kube/config``.

    Raises KubeconfigError.
    """
    files = [Path(path)] if path is not None else usual_files()
    documents = [(file, _document(file)) for file in files if path is not None or file.exists()]
    if not documents:
        raise KubeconfigError(f"{shown(files)}: no such file")
    current = ""
    merged: dict[str, dict[str, KubeconfigEntry]] = {key: {} for key in _LISTS}
    for file, document in documents:
        current = current or _current_context(file, document)
        for key in _LISTS:
            merged[key] = {**dict(_entries(file, document, key)), **merged[key]}
    return Kubeconfig(shown([file for file, _ in documents]), current, **merged)


def usual_files() -> list[Path]:
    """Return those that are read where none is named, each once, in their order."""
    named = [each for each in os.environ.get(VARIABLE, "").split(os.pathsep) if each]
    return [Path(each) for each in dict.fromkeys(named)] or [Path.home() / ".kube" / "config"]


def shown(files: list[Path]) -> str:
    """File names as errors show them."""
    return os.pathsep.join(map(str, files))


def _document(file: Path) -> Mapping[str, Any]:
    try:
        text = file.read_text(encoding="utf-8")
        check_extent(text)
        document = yaml.load(text, Loader=_Loader)
    except UnicodeDecodeError:
        raise KubeconfigError(f"{file}: not a text file in UTF-8") from None
    except FileNotFoundError:
        raise KubeconfigError(f"{file}: no such file") from None
    except OSError as error:
        raise KubeconfigError(f"{file}: cannot be read: {error.strerror}") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = f":{mark.line + 1}" if mark is not None else ""
        raise KubeconfigError(f"{file}{line}: not YAML: {error.problem or error.context}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise KubeconfigError(f"{file}: not YAML: {' '.join(str(error).split())}") from None
    if not isinstance(document or {}, dict):
        raise KubeconfigError(f"{file}: is not a kubeconfig: must be a mapping, not {type(document).__name__}")
    for key, only in (("apiVersion", "v1"), ("kind", "Config")):
        if (document or {}).get(key) not in (None, "", only):
            raise KubeconfigError(f"{file}: {key}: {document[key]!r}: must be {only}")
    return document or {}


def _current_context(file: Path, document: Mapping[str, Any]) -> str:
    return KubeconfigEntry(file, "", document).text("current-context")


def _entries(file: Path, document: Mapping[str, Any], key: str) -> Iterator[tuple[str, KubeconfigEntry]]:
    """Yield the named entries of one list. Raises KubeconfigError for what is none, and for a name that is there
    twice."""
    listed = document.get(key)
    if not isinstance(listed or [], list):
        raise KubeconfigError(f"{file}: {key}: must be a list")
    seen: set[str] = set()
    for number, each in enumerate(listed or ()):
        place = f"{key}.{number}"
        if not isinstance(each, dict):
            raise KubeconfigError(f"{file}: {place}: must be a mapping with name and {_LISTS[key]}")
        name = each.get("name")
        if not isinstance(name, str) or not name:
            raise KubeconfigError(f"{file}: {place}.name: {name!r}: must be a name")
        value = each.get(_LISTS[key])
        if not isinstance(value or {}, dict):
            raise KubeconfigError(f"{file}: {place}.{_LISTS[key]}: must be a mapping")
        if name in seen:
            raise KubeconfigError(f"{file}: {place}.name: {name!r} is listed twice")
        seen.add(name)
        yield name, KubeconfigEntry(file, f"{key}.{name}", value or {})
