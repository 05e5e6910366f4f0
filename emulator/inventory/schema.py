"""The JSON Schema of hardware files: what ``parse_hardware`` takes, as far as a schema can say it.

What it cannot say is left to the reader: that ports are cabled, names unique, and quirks those of known faults.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from mews.emulator.hardware.cards import KINDS, MOST_VIRTUAL
from mews.emulator.hardware.chassis_profiles import KEYS as PROFILE_KEYS
from mews.emulator.hardware.chassis_profiles import PROFILES
from mews.emulator.hardware.drivers import DEFAULT_RELEASE, RELEASE
from mews.emulator.hardware.gpu_profiles import ALIASES, DEFAULT_MODEL, MAKERS
from mews.emulator.hardware.gpu_profiles import PROFILES as MODELS
from mews.emulator.hardware.host_profiles import HOST_PROFILES
from mews.emulator.hardware.host_profiles import KEYS as HOST_PROFILE_KEYS
from mews.emulator.hardware.inventory import ID, NAME, PORT
from mews.emulator.hardware.pcie_tree import MOST_ROOTS
from mews.emulator.hardware.topology import PCIE_LEVELS, SELF
from mews.emulator.inventory.reading import MAX_GPU_MIB, MIN_GPU_MIB
from mews.emulator.inventory.server_reading import LINK_NAMES, MAX_NUMA_NODE

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_LATENCY: Schema = {
    "description": "seconds, or a distribution such as {uniform: [1, 2]}",
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "object"}],
}
_FLAGS = {
    "pciehp": "whether a device that is plugged in is found without a rescan",
    "reads_queue": "whether readings wait for operations under way",
}


def hardware_schema() -> Schema:
    """Return the JSON Schema of hardware files (``mews validate --schema hardware``)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Hardware",
        "description": "Hosts, chassis, host ports and devices.",
        **_object(
            {
                "apiVersion": {"const": "mews/v1", "description": "the version of the format"},
                "kind": {"const": "Hardware", "description": "what the file is"},
                "metadata": _metadata(),
                "profile": _profile(tuple(PROFILES), PROFILE_KEYS),
                "hosts": {"type": "array", "items": _host(), "description": "the servers, each a node of the cluster"},
                "chassis": {
                    "type": "array",
                    "minItems": 1,
                    "items": _chassis(),
                    "description": "the boxes with the devices, and which host is cabled to which port",
                },
            },
            required=("apiVersion", "kind", "metadata", "chassis"),
        ),
    }


def _object(properties: Mapping[str, Schema], required: tuple[str, ...] = ()) -> Schema:
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(required),
        "additionalProperties": False,
    }


def _matching(pattern: re.Pattern[str], description: str) -> Schema:
    return {"type": "string", "pattern": f"^(?:{pattern.pattern})$", "description": description}


def _whole(low: int, high: int, default: int | None = None, description: str = "") -> Schema:
    found: Schema = {"type": "integer", "minimum": low, "maximum": high, "description": description}
    return found if default is None else {**found, "default": default}


def _metadata() -> Schema:
    texts: Schema = {"type": "object", "additionalProperties": _TEXT, "description": "for you; Mews reads none"}
    name = _matching(NAME, "what the inventory is called")
    described = _object({"name": name, "labels": texts, "annotations": texts}, required=("name",))
    return {**described, "description": "what the inventory is"}


def _profile(names: tuple[str, ...], keys: tuple[str, ...]) -> Schema:
    spelt = {key: {"type": "boolean", "description": _FLAGS[key]} if key in _FLAGS else _LATENCY for key in keys}
    if "quirks" in spelt:
        faults = {"type": "object", "required": ["kind"]}
        spelt["quirks"] = {"type": "array", "items": faults, "description": "faults that are played from the start"}
    return {
        "anyOf": [{"enum": list(names)}, _object(spelt)],
        "description": "how long it takes for what",
    }


def _host() -> Schema:
    return _object(
        {
            "name": _matching(NAME, "also the node's name"),
            "cpus": _whole(1, 4096, 192, "processors of the node"),
            "memory_mib": _whole(1, 2**31, 1_048_576, "memory of the node"),
            "profile": _profile(tuple(HOST_PROFILES), HOST_PROFILE_KEYS),
            "driver": {**_matching(RELEASE, "the release of NVIDIA's driver"), "default": DEFAULT_RELEASE},
            "devices": {"type": "array", "items": _device(port=False), "description": "built in, and in no pool"},
            "pcie": _pcie(),
            "links": _links(),
        },
        required=("name",),
    )


def _pcie() -> Schema:
    numa_node = {**_whole(-1, MAX_NUMA_NODE, 0), "description": "-1: of a machine without NUMA"}
    root = _object({"name": _matching(ID, "such as socket-0"), "numa_node": numa_node}, required=("name",))
    below = _matching(ID, "the root complex or the switch, before it in the list, that it is on")
    switch = _object({"name": _matching(ID, "such as switch-0"), "below": below}, required=("name", "below"))
    return {
        "description": "the PCIe tree that the built-in devices are in; without it all are on one switch",
        "anyOf": [
            {"type": "null"},
            _object(
                {
                    "roots": {
                        "type": "array",
                        "minItems": 1,
                        "maxItems": MOST_ROOTS,
                        "items": root,
                        "description": "the root complexes",
                    },
                    "switches": {"type": "array", "items": switch, "description": "PCIe switches, each below another"},
                },
                required=("roots",),
            ),
        ],
    }


def _links() -> Schema:
    word: Schema = {"type": "string", "pattern": f"^\\s*(?:{SELF}|NV0*[1-9][0-9]*|{'|'.join(PCIE_LEVELS)})\\s*$"}
    return {
        "description": "how NVLinks join the built-in GPUs: a name, or the rows of `nvidia-smi topo -m`",
        "anyOf": [
            {"type": "null"},
            {"enum": list(LINK_NAMES)},
            {"type": "array", "items": {"type": "array", "items": word}},
        ],
    }


def _chassis() -> Schema:
    cable = {"anyOf": [{"type": "null"}, _matching(NAME, "the host that is cabled to it")]}
    ports: Schema = {
        "type": "object",
        "description": "each host port and the host cabled to it, or null",
        "patternProperties": {f"^(?:{PORT.pattern})$": cable},
        "additionalProperties": False,
    }
    return _object(
        {
            "name": _matching(ID, "such as A"),
            "index": _whole(
                0, 999, description="what its devices' pool-wide IDs begin with; default: its place in the list"
            ),
            "pool": _matching(NAME, "such as pool-0"),
            "slots": _whole(1, 4096, description="how many devices fit; default: as many as there are"),
            "ports": ports,
            "devices": {"type": "array", "items": _device(port=True), "description": "what is in its slots"},
            "profile": _profile(tuple(PROFILES), PROFILE_KEYS),
            "prefixed": {
                "type": "boolean",
                "default": True,
                "description": "whether its devices' pool-wide IDs begin with `index`; false: they are the chassis' "
                "own, which must then be unique in the file",
            },
        },
        required=("name", "ports"),
    )


def _device(*, port: bool) -> Schema:
    properties: dict[str, Schema] = {
        "id": _matching(ID, "the chassis' own, quoted"),
        "uuid": _matching(ID, "unique in the file"),
        "kind": {"enum": list(KINDS), "default": KINDS[0], "description": "what sort of device it is"},
        "model": {
            "type": "string",
            "default": DEFAULT_MODEL,
            "examples": list(MODELS),
            "description": "of a GPU: what NVML says of it",
        },
        "serial": {**_TEXT, "description": "the board's serial number, quoted"},
        "memory_mib": {**_whole(MIN_GPU_MIB, MAX_GPU_MIB), "description": "a GPU's, where it is not its model's"},
        "virtual_functions": {**_whole(0, MOST_VIRTUAL), "description": "of an adapter: its firmware's setting"},
    }
    if not port:
        properties["below"] = _matching(ID, "the root complex or switch of the host's `pcie` that it is on")
    if port:
        cabled = _matching(PORT, "the cabled port that it is on at the start")
        properties["port"] = {"anyOf": [{"type": "null"}, cabled], "description": "null: it is free at the start"}
    gpu = {"properties": {"kind": {"const": "GPU"}}}
    return {
        **_object(properties, required=("id", "uuid")),
        "if": gpu,
        "then": {"properties": {"model": {"pattern": _model_pattern()}}},
    }


def _model_pattern() -> str:
    """Models in upper and lower case, with or without their maker, as the reader takes them."""
    makers = "".join(f"(?:{_any_case(maker)} )?" for maker in MAKERS)
    return f"^\\s*{makers}(?:{'|'.join(_any_case(model) for model in (*MODELS, *ALIASES))})\\s*$"


def _any_case(text: str) -> str:
    return "".join(f"[{c.upper()}{c.lower()}]" if c.isalpha() else c for c in text)
