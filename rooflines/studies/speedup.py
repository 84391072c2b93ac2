"""What acceptance, draft length and cost ratio alone say: Leviathan's closed form beside the general one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from rooflines.costs.cost import Number
from rooflines.errors import InputError
from rooflines.rows import as_rows
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.closed_form import (
    break_even_acceptance,
    break_even_cost_ratio,
    chain_cycle_cost,
    speedup,
)

SCHEMA_VERSION: Final = 1
# In target steps; what is dearer is a slip of the keyboard.
LARGEST_COST: Final = 1e6


@dataclass(frozen=True, slots=True)
class SpeedupStudy:
    """Speedups by draft length.

    Attributes:
        text: the answer in words.
        best_draft_length: the draft length with the largest general speedup; 0 where none beats 1.
        columns: the table, a column a name.
    """

    text: str
    best_draft_length: int
    columns: dict[str, list[object]]

    def document(self, question: dict[str, Any]) -> dict[str, Any]:
        """The result as JSON takes it."""
        return {
            "schema_version": SCHEMA_VERSION,
            "question": question,
            "answer": {"text": self.text, "best_draft_length": self.best_draft_length},
            "rows": as_rows(self.columns),
        }


def study_speedup(
    acceptance: Acceptance,
    draft_lengths: Sequence[int],
    cost_ratio: float,
    verify_cost: float = 1.0,
    overhead: float = 0.0,
) -> SpeedupStudy:
    """Compare draft lengths from three numbers, without a device or a model.

    Args:
        acceptance: how often drafts are accepted.
        draft_lengths: gammas.
        cost_ratio: c, draft time per token in target steps.
        verify_cost: time of the verify pass in target steps; 1 is Leviathan's assumption.
        overhead: time per cycle outside draft and verify, in target steps.

    Raises:
        InputError: a cost outside 0..1e6 target steps, or a free verify.
    """
    for name, value in (("cost ratio", cost_ratio), ("verify cost", verify_cost), ("overhead", overhead)):
        if not 0 <= value <= LARGEST_COST:
            raise InputError(f"{name} is {value:g}: it must be within 0..{LARGEST_COST:g} target steps")
    if verify_cost == 0:
        raise InputError("verify cost is 0: a verify pass costs about one target step, so write 1 or more")
    lengths = np.asarray(draft_lengths, dtype=float)
    tau = np.asarray(acceptance.tokens_per_cycle(lengths), dtype=float)
    verify_and_rest = np.where(lengths > 0, verify_cost + overhead, 1.0)
    kappa = lengths * cost_ratio + verify_and_rest
    general = np.asarray(speedup(tau, kappa))
    free_verify = np.asarray(speedup(tau, chain_cycle_cost(lengths, cost_ratio, 1.0)))
    best = int(np.argmax(general))
    drafted = np.maximum(lengths, 1.0)
    columns: dict[str, list[object]] = {
        "draft_length": list(map(int, draft_lengths)),
        "tokens_per_cycle": tau.tolist(),
        "cycle_cost": kappa.tolist(),
        "speedup": general.tolist(),
        "leviathan_speedup": free_verify.tolist(),
        "break_even_acceptance": _drafting(
            lengths, break_even_acceptance(drafted, cost_ratio, verify_cost + overhead)
        ),
        "break_even_cost_ratio": _drafting(
            lengths, break_even_cost_ratio(tau, drafted, verify_cost + overhead)
        ),
        "extrapolated": np.asarray(acceptance.is_extrapolated(lengths)).tolist(),
    }
    return SpeedupStudy(
        _words(general[best], int(lengths[best]), tau[best], kappa[best]),
        int(lengths[best] if general[best] > 1 else 0),
        columns,
    )


def _drafting(lengths: np.ndarray[tuple[int, ...], np.dtype[np.float64]], values: Number) -> list[object]:
    """Values as cells: empty where none exists, and where nothing is drafted."""
    cells = np.where(lengths > 0, values, np.nan)
    return [float(value) if np.isfinite(value) else None for value in cells]


def _words(best: float, length: int, tau: float, kappa: float) -> str:
    if best <= 1:
        return f"Do not speculate: the best of these draft lengths, {length}, gives {best:.3g}x."
    return (
        f"Draft {length} tokens: {tau:.5g} tokens per cycle at {kappa:.4g} target steps a cycle "
        f"= {best:.4g}x over plain decoding."
    )
