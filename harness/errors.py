"""Errors that the command line turns into an exit code and one line.

::

    BadInput    2: a file, an option or a value is wrong; the line says where, what, and what is allowed
    Lacks       3: this machine or this version lacks something; the line says what and how to get it
"""

from __future__ import annotations


class BadInput(Exception):
    """What the user gave cannot be used."""


class Lacks(Exception):
    """What the user asked for cannot be had here."""
