"""What is wrong with an object that is written, by its kind's rules and in its release's words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from mews.kube.api.objects import Object
from mews.kube.emulated.core.store.metadata_errors import UpdateCheck, new_errors, updated_errors
from mews.kube.emulated.core.store.refusals import FieldError
from mews.kube.emulated.core.store.rules import KindRules


def creation_errors(rules: KindRules[Any], obj: Object) -> list[FieldError]:
    """Return what is wrong with a new object."""
    return _reworded(rules, new_errors(rules.metadata, obj, rules.validate))


def update_errors(
    rules: KindRules[Any], new: Object, old: Object, subresource: str, fixed: Sequence[FieldError]
) -> list[FieldError]:
    """Return what is wrong with the change, in the order in which upstream looks."""
    checks, is_status = rules.metadata, subresource == "status"
    sequence = checks.on_status if is_status else checks.on_update
    own = None if rules.validate is None else partial(rules.validate, new)
    if is_status and rules.validate_status_update is not None:
        own = partial(rules.validate_status_update, new, old)
    elif rules.validate_update is not None:
        own = partial(rules.validate_update, new, old, subresource)
    elif not subresource and UpdateCheck.OBJECT not in sequence:
        sequence += (UpdateCheck.OBJECT, UpdateCheck.CHANGE)
    elif subresource and not is_status:
        sequence = tuple(check for check in sequence if check not in (UpdateCheck.OBJECT, UpdateCheck.CHANGE))
    if UpdateCheck.OBJECT not in sequence:
        sequence += (UpdateCheck.OBJECT,)
    compare = None if rules.compare is None else partial(rules.compare, new, old)
    others = {UpdateCheck.OBJECT: own or _no_errors, UpdateCheck.CHANGE: compare or _no_errors}
    return _reworded(rules, updated_errors(sequence, checks, new, old, fixed, others))


def _no_errors() -> Sequence[FieldError]:
    return ()


def _reworded(rules: KindRules[Any], errors: list[FieldError]) -> list[FieldError]:
    return errors if rules.reword is None else rules.reword(errors)
