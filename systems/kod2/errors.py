"""Errors of KOD2.

::

    Kod2Error
    ├── ConfigError   the operator's configuration file cannot be used; one line
    ├── TFJobError      a TFJob that the schema lets through and that cannot be run; the message is for its author
    └── TaskRefusalError   a task's pod or service that is not let in
"""

from __future__ import annotations


class Kod2Error(Exception):
    """Any error of KOD2."""


class Kod2ConfigError(Kod2Error):
    """The configuration cannot be used; one line with file, place, value and what is allowed."""


class TFJobError(Kod2Error):
    """A TFJob that cannot be run: field, value and what is allowed."""


class TaskRefusalError(Kod2Error):
    """A task's pod or service that is not let in: by the API server, or its kubelet again and again.

    ``reason`` as an event's; ``for_ever``: the same would never be let in; ``at_once``: no use in trying it a little
    longer.
    """

    def __init__(self, task: str, reason: str, message: str, *, for_ever: bool = False, at_once: bool = True) -> None:
        super().__init__(message)
        self.task = task
        self.reason = reason
        self.for_ever = for_ever
        self.at_once = at_once
