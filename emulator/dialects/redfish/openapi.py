"""``openapi.yaml``: every path of the service and what may be done there, made of its routes (DSP0266, "OpenAPI
support"). It is JSON, which YAML contains."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from mews.emulator.dialects.redfish.route import RedfishRoute

_ARGUMENT = re.compile(r"\{(\w+)\}")


def openapi(routes: Sequence[RedfishRoute], version: str) -> bytes:
    """Return the document."""
    paths: dict[str, Any] = {}
    for route in routes:
        verbs = [verb.lower() for verb in route.allow().split(", ") if verb != "HEAD"]
        paths[route.path] = _path(route.path, verbs)
        for action in route.actions:
            path = f"{route.path}/Actions/{action}"
            paths[path] = _path(path, ["post"])
    described = {
        "openapi": "3.1.0",
        "info": {"title": "Redfish service of an emulated chassis", "version": version},
        "components": {
            "securitySchemes": {
                "BasicAuth": {"type": "http", "scheme": "basic"},
                "SessionAuth": {"type": "apiKey", "in": "header", "name": "X-Auth-Token"},
            }
        },
        "security": [{"BasicAuth": []}, {"SessionAuth": []}],
        "paths": paths,
    }
    return json.dumps(described, indent=1).encode()


def _path(path: str, verbs: Sequence[str]) -> dict[str, Any]:
    names = _ARGUMENT.findall(path)
    parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]
    return {"parameters": parameters, **{verb: _operation(verb) for verb in verbs}}


def _operation(verb: str) -> dict[str, Any]:
    content = {"application/json": {"schema": {"type": "object"}}}
    found: dict[str, Any] = {
        "responses": {
            "2XX": {"description": "It is so, or done.", "content": content},
            "default": {"description": "An extended error.", "content": content},
        }
    }
    if verb in ("post", "patch"):
        found["requestBody"] = {"content": content}
    return found
