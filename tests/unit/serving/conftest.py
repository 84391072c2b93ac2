"""Engines made by hand: steps whose time is linear in the batch."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.serving.engine import StepCurve
from rooflines.serving.host import AT_ONCE


@pytest.fixture
def linear_curve():
    """Steps of 8 ms + 60 us a sequence: the shape of an 8B model on a current GPU."""

    def make(
        *,
        most=64,
        fixed_s=8e-3,
        each_s=60e-6,
        extra_s=10e-3,
        tokens=1.0,
        chunks=1.0,
        share=0.25,
        host=AT_ONCE,
    ):
        every = np.arange(most + 1, dtype=float)
        return StepCurve(
            step_s=np.where(every > 0, fixed_s + each_s * every, 0.0),
            tokens_per_step=np.full(most + 1, tokens),
            draft_length=np.zeros(most + 1),
            prompt_extra_s=np.full((most + 1, 1), extra_s),
            prompt_chunks=np.full((most + 1, 1), chunks),
            prompt_weights=np.ones(1),
            chunk_share=np.full(most + 1, share),
            max_sequences=most,
            host=host,
        )

    return make
