"""How fast an asynchronous parameter-server job trains: a model, shaped after a trend and no measurement. Pure.

Each worker computes a gradient, pushes it and pulls the parameters, on its own; a server applies gradients one after
the other. So the speed grows with the workers until the servers are busy all the time, as the trend of Fig. 4 (KOD2
paper) says: more workers, less time, "when there is no bottleneck in the ps task". The seconds are assumptions, stated
where they are used.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

LEARNERS = ("worker", "chief", "master")
"""Roles that train; the chief does as a worker does, and the job ends with it."""

PREFIX = "mews.dev/train-"
_FIELDS = {"steps": "steps", "step-s": "step_s", "near-s": "near_s", "far-s": "far_s", "server-rate": "server_rate"}


class TrainingShape(Struct, frozen=True):
    """One job's training: ``steps`` in all; ``step_s`` computing one gradient; ``near_s`` and ``far_s`` exchanging with
    a server on the same node or on another; ``server_rate``: gradients that one server applies per second."""

    steps: float = 1000.0
    step_s: float = 0.5
    near_s: float = 0.05
    far_s: float = 0.3
    server_rate: float = 12.0


def shape_in(annotations: Mapping[str, str]) -> TrainingShape:
    """Return the training that a pod's annotations describe.

    Raises ValueError naming the annotation.
    """
    given: dict[str, float] = {}
    for name, text in annotations.items():
        if not name.startswith(PREFIX):
            continue
        known = _FIELDS.get(name.removeprefix(PREFIX))
        try:
            value = float(text)
        except ValueError:
            value = -1.0
        if known is None or value <= 0:
            allowed = ", ".join(PREFIX + field for field in _FIELDS)
            raise ValueError(f"annotation {name}: {text!r}: must be a number above 0, and one of {allowed}")
        given[known] = value
    return TrainingShape(**given)


def environment_in(annotations: Mapping[str, str], pace: float) -> dict[str, str]:
    """Return what the trainer in numpy (``mews.systems.kod2.trainer``) must be told to train alike, in real seconds
    where so many emulated ones pass in each (``pace``). Nothing where no annotation says anything; where the servers
    are and how busy they get is not played.

    Raises ValueError as ``shape_in`` does.
    """
    if not any(name.startswith(PREFIX) for name in annotations):
        return {}
    shape = shape_in(annotations)
    return {"TRAIN_STEPS": f"{shape.steps:.0f}", "TRAIN_PAUSE_S": f"{(shape.step_s + shape.near_s) / pace:g}"}


def speed(shape: TrainingShape, *, near: int, far: int, servers: int) -> float:
    """Steps per second with so many workers on a server's node and elsewhere; 0 without a server."""
    if not servers:
        return 0.0
    asked = near / (shape.step_s + shape.near_s) + far / (shape.step_s + shape.far_s)
    return min(asked, servers * shape.server_rate)


def busy_share(shape: TrainingShape, *, near: int, far: int, servers: int) -> float:
    """Return the share of their time in which the workers compute: what they wait for messages and servers costs no
    CPU."""
    workers = near + far
    return speed(shape, near=near, far=far, servers=servers) * shape.step_s / workers if workers else 0.0


def loss(shape: TrainingShape, done: float) -> float:
    """Return a loss that falls as steps are done: 2.303 (ten classes, guessing) at first, near 0.2 at the end."""
    share = min(1.0, done / shape.steps) if shape.steps else 1.0
    return 0.2 + 2.103 * (1.0 - share) ** 2
