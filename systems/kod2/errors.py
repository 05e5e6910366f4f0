"""Errors of KOD2.

::

    Kod2Error
    ├── ConfigError   the operator's configuration file cannot be used; one line
    └── BadTFJob      a TFJob that the schema lets through and that cannot be run; the message is for its author
"""

from __future__ import annotations


class Kod2Error(Exception):
    """Any error of KOD2."""


class Kod2ConfigError(Kod2Error):
    """The configuration cannot be used; one line with file, place, value and what is allowed."""


class BadTFJob(Kod2Error):
    """A TFJob that cannot be run: field, value and what is allowed."""
