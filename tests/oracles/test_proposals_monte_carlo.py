"""Cycles in which some sequences find nothing to propose, against drawing who finds what and timing that pass."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import make_drafter
from rooflines.studies.serve import make_deployment, make_machine

DRAWN = 200_000  # sequences, in cycles of a batch
TAKEN = Acceptance.conditional_rates([0.7, 0.8, 0.9, 0.9])
LENGTH, CONTEXT = 4, 1024.0


def played(target, hit, ends, batch, generator):
    """Tokens per sequence and verify time of each of the drawn cycles."""
    shape = (DRAWN // batch, batch)
    proposing = generator.random(shape) < hit
    accepting = np.ones(shape, dtype=bool)
    sent, accepted = np.zeros(shape), np.zeros(shape)
    for position, rate in enumerate(TAKEN.conditional_profile(LENGTH)):
        if position:
            proposing &= generator.random(shape) >= ends
        accepting &= proposing & (generator.random(shape) < rate)
        sent += proposing
        accepted += accepting
    widths = 1.0 + sent.mean(axis=1)
    return 1.0 + accepted.mean(axis=1), np.asarray(target.verify(float(batch), CONTEXT, widths).seconds)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "gpt-oss-20b"])
@pytest.mark.parametrize("batch", [1, 4, 64])
@pytest.mark.parametrize(("hit", "ends"), [(0.4, 0.0), (0.15, 0.0), (0.7, 0.3)])
def test_a_cycle_yields_and_takes_what_drawn_ones_do(model, batch, hit, ends):
    target = make_deployment(model, make_machine("h100-sxm5-80gb", "none"))
    drafter = make_drafter(f"ngram:host=0us,hit={hit},ends={ends}", target)
    outcome = cycle(cycle_times(target, drafter, float(batch), CONTEXT, float(LENGTH)), TAKEN)
    tokens, seconds = played(target, hit, ends, batch, np.random.default_rng(batch))
    error = 5.0 * tokens.std() / np.sqrt(tokens.size)
    assert float(outcome.tokens_per_cycle) == pytest.approx(tokens.mean(), abs=error)
    # Exact where a lone proposal is whole; else the two values stand for all that can be sent.
    noise = 5.0 * seconds.std() / np.sqrt(seconds.size)
    assert float(outcome.verify_s) == pytest.approx(seconds.mean(), abs=noise + 0.004 * seconds.mean())


def test_the_time_of_the_mean_is_not_the_mean_time_with_experts():
    """Experts hit grow less and less with the tokens, so a lone sequence's mean pass is cheaper than a pass of the mean."""
    target = make_deployment("gpt-oss-20b", make_machine("h100-sxm5-80gb", "none"))
    drafter = make_drafter("ngram:host=0us,hit=0.4", target)
    outcome = cycle(cycle_times(target, drafter, 1.0, CONTEXT, float(LENGTH)), TAKEN)
    assert float(outcome.verify_s) < 0.99 * float(target.verify(1.0, CONTEXT, 1.0 + 0.4 * LENGTH).seconds)
