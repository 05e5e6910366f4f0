"""The message registries in use: each is served, with the messages of it that this service has, in its own words."""

from __future__ import annotations

import re
from typing import Any

from mews.emulator.dialects.redfish import uris
from mews.emulator.dialects.redfish.chassis_events import EVENT_MESSAGES, FABRIC, RESOURCE, TASK
from mews.emulator.dialects.redfish.messages import BASE, BASE_MESSAGES
from mews.emulator.dialects.redfish.route import Body, RedfishRoute, collection, resource
from mews.emulator.dialects.redfish.schemas import odata_type
from mews.emulator.dialects.redfish.service_state import RedfishView

URI = f"{uris.ROOT}/Registries"
REGISTRIES = {name.partition(".")[0]: name.partition(".")[2] for name in (BASE, FABRIC, RESOURCE, TASK)}
"""Prefix -> version."""
MESSAGES = {"Base": BASE_MESSAGES, **EVENT_MESSAGES}
_PLACE = re.compile(r"\{(\d+)\}")


def registries(view: RedfishView) -> Body:
    """Return all registries."""
    return collection("MessageRegistryFile", URI, "Registries", [f"{URI}/{name}" for name in REGISTRIES])


def registry(view: RedfishView, name: str) -> Body | None:
    """Return where one registry is: here, and where all of it is published."""
    if name not in REGISTRIES:
        return None
    version = REGISTRIES[name]
    published = f"https://redfish.dmtf.org/registries/{name}.{version}.0.json"
    return resource(
        "MessageRegistryFile",
        f"{URI}/{name}",
        f"Message registry {name}",
        Registry=f"{name}.{version}",
        Languages=["en"],
        Location=[{"Language": "en", "Uri": f"{URI}/{name}/{_file(name)}", "PublicationUri": published}],
    )


def messages(view: RedfishView, name: str, file: str) -> Body | None:
    """Return the registry itself."""
    if name not in REGISTRIES or file != _file(name):
        return None
    return {
        "@odata.id": f"{URI}/{name}/{file}",
        "@odata.type": odata_type("MessageRegistry"),
        "Id": f"{name}.{REGISTRIES[name]}.0",
        "Name": f"Message registry {name}",
        "Description": "The messages of this registry that the service has, in the service's words",
        "Language": "en",
        "OwningEntity": "DMTF",
        "RegistryPrefix": name,
        "RegistryVersion": f"{REGISTRIES[name]}.0",
        "Messages": {key: _message(*message) for key, message in MESSAGES[name].items()},
    }


def _file(name: str) -> str:
    return f"{name}.{REGISTRIES[name]}.0.json"


def _message(severity: str, text: str, resolution: str) -> dict[str, Any]:
    places = {int(number) for number in _PLACE.findall(text)}
    shown = {
        "Description": f"{text.partition('{')[0].strip() or 'A message of the service'} …",
        "Message": _PLACE.sub(lambda match: f"%{int(match[1]) + 1}", text),
        "MessageSeverity": severity,
        "NumberOfArgs": max(places, default=-1) + 1,
        "Resolution": resolution,
    }
    return shown | ({"ParamTypes": ["string"] * len(places)} if places else {})


ROUTES = (
    RedfishRoute(URI, registries),
    RedfishRoute(f"{URI}/{{registry}}", registry),
    RedfishRoute(f"{URI}/{{registry}}/{{file}}", messages),
)
