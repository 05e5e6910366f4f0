"""Expressions from text: read and checked, with what is wrong in cel-go's words, and as programs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct

from mews.kube.cel import types
from mews.kube.cel.checker import Checked, check
from mews.kube.cel.evaluation import Program
from mews.kube.cel.parser import parse
from mews.kube.cel.syntax import ExpressionSyntaxError, report
from mews.kube.cel.types import Type


class CompiledExpression(Struct, frozen=True):
    """An expression with its types, None where it cannot be read; ``error`` says what is wrong, "" when nothing is."""

    checked: Checked | None
    error: str = ""

    @property
    def type(self) -> Type:
        """The type of its value, ``dyn`` where that is not known."""
        return self.checked.type if self.checked is not None else types.DYN


def compiled(
    source: str, variables: Mapping[str, Type], messages: frozenset[str] = frozenset(), *, bindings: bool = False
) -> CompiledExpression:
    """Read and check an expression over those variables; ``messages`` are those that it may make, ``bindings`` as in
    ``parse``."""
    try:
        checked = check(parse(source, bindings=bindings), variables, messages)
    except ExpressionSyntaxError as error:
        return CompiledExpression(None, report(source, error.errors))
    except RecursionError:
        return CompiledExpression(None, report(source, [(0, "expression recursion limit exceeded")]))
    return CompiledExpression(checked, report(source, checked.errors))


@lru_cache(maxsize=4096)
def program(source: str, *, bindings: bool = False) -> Program:
    """Return an expression that was checked when it was stored, ready to run; ``bindings`` as in ``parse``.

    Raises ``ExpressionSyntaxError``.
    """
    tree = parse(source, bindings=bindings)
    check(tree, {})  # finds the functions with names of several parts
    return Program(tree)
