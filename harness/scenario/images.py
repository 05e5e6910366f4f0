"""The user's own images: ``images:`` of a scenario, or of a file that is given beside it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator, ValidationError, WithJsonSchema
from pydantic_core import InitErrorDetails, PydanticCustomError

from mews.emulator.yaml_document import DocumentError, read_document
from mews.harness.errors import BadInputError, unreadable

if TYPE_CHECKING:
    from mews.harness.scenario.model import Scenario

UNKNOWN = ("fail", "idle", "container")
"""What containers of unknown images may do."""


def _checked(images: Any) -> Any:
    from mews.kube.emulated.kubelet.errors import ImagesError
    from mews.kube.emulated.kubelet.images import own_image

    if not isinstance(images, Mapping):
        raise ValueError(
            "must be a mapping from image, or pattern, to idle, container, or to process, simulate, image, load"
        )
    for name, entry in images.items():
        try:
            own_image(name, entry)
            _check_played(name, entry)
        except (ImagesError, LookupError) as error:
            kind = PydanticCustomError("image", "{text}", {"text": str(error)})
            found = InitErrorDetails(type=kind, loc=(str(name),), input=entry)
            raise ValidationError.from_exception_data("images", [found]) from error
    return images


def _check_played(name: str, entry: Any) -> None:
    """What of an image is only read once its container runs: its load, and the program that plays it."""
    from mews.emulator.telemetry.load import parse_load
    from mews.harness.systems import find_program

    if not isinstance(entry, Mapping):
        return
    load, simulate = entry.get("load"), entry.get("simulate")
    if load is not None and not (isinstance(load, Mapping) and "trace" in load):
        try:
            parse_load(load)
        except ValueError as error:
            raise LookupError(f"load: {error}") from error
    program = simulate.get("program") if isinstance(simulate, Mapping) else None
    if program:
        try:
            find_program(str(program))
        except LookupError as error:
            raise LookupError(f"simulate.program: {error}") from error


_NUMBER = {"type": "number", "minimum": 0}
_CODE = {"type": "integer", "minimum": 0, "maximum": 255}
_STAGE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "name": {"type": "string"},
        "for_s": {**_NUMBER, "description": "how long it lasts; the last one: until somebody stops it"},
        "log": {"type": "string", "description": "a template over the environment: ${NAME}, ${NAME|lines}"},
        "failing": {"type": "array", "items": {"enum": ["liveness", "readiness", "startup", "postStart", "preStop"]}},
        "exit_code": {**_CODE, "description": "of the last one"},
    },
}
_SIMULATE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "duration_s": _NUMBER,
        "exit_code": _CODE,
        "term_exit_code": _CODE,
        "obeys_term": {"type": "boolean"},
        "log": {"type": "string"},
        "program": {"type": "string", "description": "SYSTEM/NAME: what plays it"},
        "stages": {"type": "array", "minItems": 1, "items": _STAGE, "description": "in place of duration and log"},
    },
}
_IMAGE = {
    "anyOf": [
        {"enum": ["idle", "container"]},
        {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                "process": {"type": "array", "minItems": 1, "description": "argv on this machine"},
                "simulate": _SIMULATE,
                "container": {"type": "string", "description": "what the container engine runs, in wall-clock time"},
                "image": {"type": "string", "description": "what real nodes run instead"},
                "env": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "the image's variables; those of device plugins and pods win",
                },
                "files": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "of its process: path in the image -> path of this machine",
                },
                "load": {"description": "what its containers ask of their devices"},
            },
        },
    ]
}
OwnImages = Annotated[
    dict[str, Any],
    BeforeValidator(_checked),
    WithJsonSchema({"type": "object", "additionalProperties": _IMAGE}),
]


def container_wanted(scenario: Scenario, *, unplayed: bool = False) -> str:
    """Return the first place of a scenario that asks for real containers, "" where none does; ``unplayed``: for one
    that cannot be simulated in their place."""
    from mews.kube.emulated.kubelet.images import own_image

    if scenario.unknown_images == "container":
        return "unknownImages"
    known = ((name, own_image(name, entry)) for name, entry in scenario.images.items())
    found = (name for name, image in known if image.container and not (unplayed and image.simulate is not None))
    return next((f"images.{name}" for name in found), "")


def read_images(file: Path) -> dict[str, Any]:
    """``images:`` of a file such as fixtures/images.yaml.

    Raises BadInputError.
    """
    try:
        document = read_document(file.read_text("utf-8"), str(file)).value
    except DocumentError as error:
        raise BadInputError(str(error)) from error
    except (OSError, UnicodeDecodeError) as error:
        raise BadInputError(unreadable(file, error)) from error
    if not isinstance(document, dict) or not isinstance(document.get("images"), dict):
        raise BadInputError(f"{file}: images: missing; must be a mapping from image, or pattern, to what it runs as")
    further = sorted(set(map(str, document)) - {"apiVersion", "kind", "images"})
    if further:
        raise BadInputError(f"{file}: {further[0]}: unknown key; allowed: apiVersion, kind, images")
    try:
        images: dict[str, Any] = _checked(document["images"])
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise BadInputError(f"{file}: images.{first['loc'][0]}: {first['msg']}") from error
    return images
