"""What a question to a plan may hold."""

from __future__ import annotations

from collections.abc import Iterable
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, Final

from rooflines.errors import InputError, shortened

if TYPE_CHECKING:
    from rooflines.studies.plan import PlanQuestion

# Beyond any model's positions; a longer one is a slip of the keyboard.
LONGEST_CONTEXT: Final = 10**9


def normal_fields(question: PlanQuestion) -> dict[str, Any]:
    """The fields that hold several values, as tuples, and acceptance as text.

    Args:
        question: as it was made, from Python too, where nothing has read its texts before.

    Raises:
        InputError: a value of another kind.
    """
    return {
        "drafters": _texts("drafters", question.drafters, "such as ('eagle3',)"),
        "acceptance": _acceptance(question.acceptance),
        "draft_lengths": _counts("draft lengths", question.draft_lengths, "such as (1, 2, 4)"),
        "batches": _counts("batches", question.batches, "such as (1, 8, 64)"),
    }


def require_question(question: PlanQuestion) -> None:
    """Refuse what has no answer.

    Raises:
        InputError: nothing to compare, or a number out of its bounds.
    """
    if not 0 <= question.memory_reserve < 1:
        raise InputError(f"memory reserve is {question.memory_reserve:g}: it is a share within 0..1, below 1")
    if not question.drafters:
        raise InputError("a plan needs a drafter, such as independent:llama-3.2-1b")
    if len(set(question.drafters)) < len(question.drafters):
        raise InputError("a drafter is given twice: each of a plan must be another one")
    if max(question.draft_lengths, default=0) < 1:
        raise InputError("a plan compares draft lengths with plain decoding: give one of 1 or more")
    if min(question.draft_lengths) < 0:
        raise InputError(f"draft length is {min(question.draft_lengths)}: it must be 0 or more")
    if min(question.batches, default=0) < 1:
        raise InputError("a plan answers for batches of 1 or more sequences: give at least one")
    if not 0 <= question.context <= LONGEST_CONTEXT:
        raise InputError(f"context is {question.context}: it must be within 0..{LONGEST_CONTEXT}")
    if question.verify_length is not None and question.verify_length < 1:
        raise InputError(f"verify length is {question.verify_length}: it must be 1 or more")


def _texts(name: str, given: object, example: str) -> tuple[str, ...]:
    values = _several(name, given, example)
    for value in values:
        if not isinstance(value, str):
            raise InputError(f"{name} hold {shortened(value)}, which is no text: give texts, {example}")
    return tuple(str(value) for value in values)


def _counts(name: str, given: object, example: str) -> tuple[int, ...]:
    values = _several(name, given, example)
    for value in values:
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise InputError(
                f"{name} hold {shortened(value)}, which is no whole number: give whole numbers, {example}"
            )
    return tuple(int(value) for value in values if isinstance(value, Integral))


def _acceptance(given: object) -> str | tuple[str, ...]:
    if isinstance(given, bool) or not isinstance(given, str | Real | Iterable):
        raise InputError(f"acceptance is {shortened(given)}: give a rate such as 0.8, or DEFINITION:VALUES")
    if isinstance(given, str | Real):
        return str(given)
    return _texts("acceptances", given, "such as ('eagle3=0.8', 'ngram=0.3'), or one conditional:0.8,0.7")


def _several(name: str, given: object, example: str) -> tuple[object, ...]:
    if isinstance(given, str | Real):
        return (given,)
    if not isinstance(given, Iterable):
        raise InputError(f"{name} are {shortened(given)}: give a list, {example}")
    return tuple(given)
