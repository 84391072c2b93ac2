"""llama.cpp's own benchmark explains why a quantised draft with high acceptance slows its target down.

llama-bench, one thread of a two-core CPU, SmolLM2-135M-Instruct; measured beside it with llama.cpp's speculative
example: f32 target, Q4_1 draft of the same model, acceptance 0.87-0.98, 27-31 tokens/s plain and 21-29 with
speculation.
"""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.measurement.step_files import read_steps
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.closed_form import walltime_improvement
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.base import chain
from rooflines.studies.plan import PlanQuestion, make_plan

CONTEXT = 128


@pytest.fixture(scope="module")
def tables(measurements):
    return {name: read_steps(measurements / f"llama_bench_{name}_T1.json").table for name in ("f32", "q4")}


class QuantisedDraft:
    """Drafts one token a step of its own table."""

    name = "Q4_1"

    def __init__(self, table):
        self.table = table

    def draft(self, batch, context, draft_length):
        return chain(np.asarray(draft_length) * self.table.decode(batch, context).seconds, draft_length)


def test_two_positions_cost_far_more_than_one(tables):
    """1.6, 1.9 and 2.4 times a step at 2, 4 and 8 positions in f32: fast single-row kernels make verifying dear."""
    steps = tables["f32"]
    curve = [steps.verify(1, CONTEXT, n).seconds / steps.decode(1, CONTEXT).seconds for n in (2, 4, 8)]
    assert curve == pytest.approx([1.6, 1.9, 2.4], rel=0.15)


@pytest.mark.parametrize(("alpha", "least_gain"), [(0.87, 1.0), (0.98, 1.15)])
def test_the_cycle_pays_little_or_nothing_where_leviathan_promises_much(tables, alpha, least_gain):
    lengths = np.array([2.0, 3.0, 4.0, 5.0, 8.0])
    times = cycle_times(tables["f32"], QuantisedDraft(tables["q4"]), 1.0, float(CONTEXT), lengths)
    found = cycle(times, Acceptance.constant(alpha))
    ratio = float(tables["q4"].decode(1, CONTEXT).seconds / tables["f32"].decode(1, CONTEXT).seconds)
    promised = walltime_improvement(alpha, lengths, ratio)
    assert np.all(found.speedup < promised - 0.2)
    # Measured: 21-29 of 27-31 tokens/s. The table lacks the logits of all positions but the last, so verifying
    # is dearer still.
    assert np.all(found.speedup > 21 / 31)
    assert found.speedup.min() < least_gain


def test_a_plan_on_the_files_themselves_says_what_verifying_costs(root, measurements):
    plan = make_plan(
        PlanQuestion(
            hardware=str(root / "docs" / "example-project" / "measurements" / "machine.toml"),
            target="smollm2-135m",
            weight_dtype="fp32",
            drafters=(
                f"independent:smollm2-135m,weight-dtype=q4_1,steps={measurements / 'llama_bench_q4_T1.json'}",
            ),
            acceptance="0.87",
            draft_lengths=(1, 2, 3),
            batches=(1,),
            context=CONTEXT,
            steps=str(measurements / "llama_bench_f32_T1.json"),
        )
    )
    assert "do not speculate (best 0.9" in plan.text
    assert "verifying 3 positions costs 1.70 plain steps and drafting 1.09, for 2.63 tokens" in plan.text
    # Measured: 21-29 tokens/s; a verify pass also pays the logits that llama-bench leaves out.
    assert all(21 < row["tokens_per_s"] < 1.1 * 29 for row in plan.rows)
    assert all(row["speedup"] < row["leviathan_speedup"] - 0.2 for row in plan.rows)
