"""Your own software in the place of ours: what a scenario says under ``stack.replace`` and ``stack.extenders``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from mews.harness.scenario.base import Model

ComponentName = Literal["scheduler", "default-scheduler", "reconfig-manager", "device-manager"]

_WAYS = ("plugin", "policy", "process", "image", "manifest")
_OUTSIDE = ("process", "image", "manifest")

Files = Annotated[
    tuple[str, ...],
    Field(
        description="patterns (data/*.json) of files in the scenario's folder that are carried into its pod, beside "
        "those that are found: what argv names, and the modules that are imported"
    ),
]


class Replacement(Model):
    """Exactly one of ``plugin``, ``policy``, ``process``, ``image`` and ``manifest`` takes the component's place.

    In ``process``, ``env``, ``args`` and a manifest's texts these are filled in: ``{python}``, ``{pythonpath}`` (of
    Mews), ``{kubeconfig}``, ``{config}`` (KubeComp's configuration file), ``{root}`` (one folder per node below it),
    ``{chassis:NAME}`` (URL) and, for device-manager, which runs once per node, ``{node}``, ``{device_plugins}``,
    ``{pod_resources}``, ``{port:NAME}`` (its port on that chassis).
    """

    plugin: str | None = Field(
        default=None,
        description="module:callable, called with the scheduler's handle and options; in place of KubeComp's plugin, "
        "or beside the default ones of default-scheduler",
    )
    options: dict[str, Any] = Field(default_factory=dict, description="keyword arguments of the plugin")
    policy: str | None = Field(
        default=None, description="module:callable(requested, available) -> score, in place of KubeComp's node score"
    )
    process: tuple[str, ...] | None = Field(default=None, description="argv; its working folder is the scenario's")
    env: dict[str, str] = Field(default_factory=dict, description="of the process, beside ours")
    image: str | None = Field(default=None, description="a container image; on emulated nodes one of images.yaml")
    args: tuple[str, ...] = Field(default=(), description="of the image")
    manifest: str | None = Field(default=None, description="a file of objects, applied as the cluster comes up")
    files: Files = ()

    @model_validator(mode="after")
    def _one_way(self) -> Replacement:
        given = [way for way in _WAYS if getattr(self, way) is not None]
        if len(given) != 1:
            raise ValueError(f"must have exactly one of {', '.join(_WAYS)}; has {', '.join(given) or 'none'}")
        if self.process == ():
            raise ValueError("process: must be an argv with at least the program")
        return self

    @property
    def way(self) -> str:
        """Which of them it is."""
        return next(way for way in _WAYS if getattr(self, way) is not None)

    @property
    def outside(self) -> str | None:
        """``process``, ``image`` or ``manifest`` where it runs outside Mews' own process, else None."""
        return next((way for way in _OUTSIDE if getattr(self, way) is not None), None)


class Extender(Model):
    """An HTTP extender of the default scheduler. ``{port}`` in ``process``, ``env`` and ``config`` is a free port of
    loopback."""

    process: tuple[str, ...] | None = Field(default=None, description="argv that serves it; none: it runs already")
    env: dict[str, str] = Field(default_factory=dict)
    files: Files = ()
    config: dict[str, Any] = Field(description="an entry of KubeSchedulerConfiguration's extenders: urlPrefix …")


def fill(text: str, places: Mapping[str, str]) -> str:
    """The text with ``{name}`` replaced for every known name; all else in braces stays."""
    for name, value in places.items():
        text = text.replace("{" + name + "}", value)
    return text


def filled(value: Any, places: Mapping[str, str]) -> Any:
    """A document with all its texts filled in, keys excepted."""
    if isinstance(value, str):
        return fill(value, places)
    if isinstance(value, dict):
        return {key: filled(item, places) for key, item in value.items()}
    return [filled(item, places) for item in value] if isinstance(value, list) else value
