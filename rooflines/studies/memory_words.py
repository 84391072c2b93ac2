"""What to change where a configuration does not fit in memory, in words that plans and capacity share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from rooflines.costs.setting import Parallelism
from rooflines.errors import RooflinesError
from rooflines.serving.memory import MemoryFit
from rooflines.units import format_quantity

# Degrees tried in search of one that fits: a node, and two of them.
_DEGREES: Final = (2, 4, 8, 16)


def sequence_bytes(fit: MemoryFit) -> float:
    """What sequences take beside the weights (bytes); of a fit of one batch."""
    return float(fit.used_bytes) - fit.weights_bytes - fit.drafter_weights_bytes


def does_not_fit(fit: MemoryFit, sequences: str, degree: int | None) -> str:
    """In words, what a card would hold and has, and what to change.

    Args:
        fit: of one batch, which is too much.
        sequences: what the batch is, such as ``one sequence of 4,096 positions``.
        degree: tensor parallelism that would hold it; None where none is known.
    """
    held = [f"{format_quantity(fit.weights_bytes, 'byte')} of weights"]
    if fit.drafter_weights_bytes:
        held.append(f"{format_quantity(fit.drafter_weights_bytes, 'byte')} of the drafter's")
    held.append(f"{format_quantity(sequence_bytes(fit), 'byte')} for {sequences}")
    room = format_quantity(fit.capacity_bytes - fit.reserve_bytes, "byte")
    cure = "use more devices" if degree is None else f"tensor parallelism {degree} holds it"
    return (
        f"a card would hold {', '.join(held)}, and has {room} besides the reserve; {cure}, or a smaller "
        "weight or KV format"
    )


def degree_that_fits(now: Parallelism, fits: Callable[[Parallelism], bool]) -> int | None:
    """The smallest tensor parallelism tried that fits; experts are spread as far, where they are spread.

    Args:
        now: what does not fit.
        fits: whether another does; a `RooflinesError` counts as no.
    """
    for degree in _DEGREES:
        expert = max(now.expert, degree) if now.expert > 1 else 1
        try:
            if degree > now.tensor and fits(Parallelism(degree, expert)):
                return degree
        except RooflinesError:  # heads that the degree does not divide
            continue
    return None
