"""Whether a machine held still while it was measured, and what to do if it did not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from rooflines.errors import InputError
from rooflines.measurement.schema import Stability

# Above it, speedups predicted from the run were off by more than a tenth (docs/measuring.md).
LARGEST_IQR_SHARE: Final = 0.10
# Above it, the time that passed says more about the neighbours than about the work.
LARGEST_RUN_DELAY_SHARE: Final = 0.05


def iqr_share(times_s: Sequence[float]) -> float:
    """Interquartile range / median of repeated times; 0 where there is one time only.

    Raises:
        InputError: no times at all.
    """
    if not times_s:
        raise InputError("no times were taken: at least one is needed to say how they spread")
    low, middle, high = np.quantile(np.asarray(times_s, dtype=float), (0.25, 0.5, 0.75))
    return float((high - low) / middle) if middle > 0 else 0.0


def judge(reference_s: Sequence[float], run_delay_share: float | None) -> Stability:
    """The verdict on a run.

    Args:
        reference_s: times of one case that was repeated from beginning to end (s).
        run_delay_share: time the process waited for a core / time that passed; None if not known.
    """
    spread = iqr_share(reference_s)
    stable = spread <= LARGEST_IQR_SHARE
    seen = f"the reference case spreads by {spread:.1%} (IQR / median, {len(reference_s)} times)"
    if not stable:
        advice = (
            f"{seen}, more than {LARGEST_IQR_SHARE:.0%}: the machine was slowed down meanwhile; measure "
            "again when it is idle, with one thread, or with more rounds"
        )
    elif run_delay_share is not None and run_delay_share > LARGEST_RUN_DELAY_SHARE:
        advice = (
            f"{seen}; {run_delay_share:.0%} of the time went into waiting for a core: use CPU time, as is "
            "the default, not the time that passed"
        )
    else:
        advice = f"{seen}: the machine held still"
    return Stability(run_delay_share=run_delay_share, iqr_share=spread, stable=stable, advice=advice)
