from __future__ import annotations

import pytest

from rooflines.measurement.schema import (
    Cycle,
    Divergence,
    Inputs,
    MachineFacts,
    Sample,
    SpeculationFile,
    SpeculationRun,
    Stability,
)
from rooflines.measurement.speculation.summary import agreement, measured_speedup, table


def _cycle(drafted, accepted):
    return Cycle(
        draft_s=0.5 * drafted,
        verify_s=2.0,
        other_s=0.5,
        wall_s=9.0,
        drafted=drafted,
        accepted=accepted,
        emitted=accepted + 1,
        verify_width=drafted + 1,
        context=7,
    )


def _run(**changes):
    cycles = (_cycle(2, 2), _cycle(2, 0), _cycle(0, 0))
    step = Sample(case="step", batch=1, new_positions=3, context=7, depth=2, cpu_s=(1.0,), wall_s=(1.0,))
    run = {
        "drafter": "int4",
        "parameters": {"cache": "own"},
        "prompt": "chat-bread",
        "prompt_kind": "chat",
        "draft_length": 2,
        "temperature": 0.0,
        "forced_acceptance": None,
        "cycles": cycles,
        "plain_s": (1.0, 1.0, 1.5, 1.5, 2.5),
        "plain_wall_s": (2.0,) * 5,
        "samples": (step,),
    }
    return SpeculationRun(**{**run, **changes})


def _file(*runs):
    machine = MachineFacts(
        device="a cpu", kind="cpu", cpu="a cpu", cores=2, threads=1, memory_bytes=8, caches=(), system="x"
    )
    stability = Stability(run_delay_share=None, iqr_share=0.0, stable=True, advice="fine")
    return SpeculationFile(
        created="2026",
        rooflines="0",
        machine=machine,
        versions={},
        inputs=Inputs(dtype="bf16"),
        stability=stability,
        runs=runs,
    )


def test_a_row_holds_the_ratios_of_its_run():
    (row,) = zip(*table([_run()]).values(), strict=True)
    named = dict(zip(table([_run()]), row, strict=True))
    assert named["drafter"] == "int4 cache=own"
    assert named["tokens"] == 5
    assert named["tokens_per_cycle"] == pytest.approx(5 / 3)
    assert named["accepted_share"] == pytest.approx(2 / 4)
    assert named["cost_ratio"] == pytest.approx(0.5 / 1.5)
    assert named["verify_cost"] == pytest.approx(2.0 / 1.5)
    assert named["other_cost"] == pytest.approx(0.5 / 1.5)
    assert named["speedup"] == pytest.approx(7.5 / 9.5) == measured_speedup(_run())
    # the cycle identity: speedup = tokens per cycle / cycle cost
    cost = named["cost_ratio"] * 4 / 3 + named["verify_cost"] + named["other_cost"]
    assert named["speedup"] == pytest.approx(named["tokens_per_cycle"] / cost)


def test_a_drafter_that_never_drafted_has_no_share():
    columns = table([_run(cycles=(_cycle(0, 0),), plain_s=(1.0,)), _run()])
    assert columns["accepted_share"][0] is columns["cost_ratio"][0] is None
    assert len(columns["speedup"]) == 2


def test_forced_acceptance_shows_in_the_name():
    assert table([_run(forced_acceptance=0.8)])["drafter"] == ["int4 cache=own forced=0.8"]


def test_agreement_is_told_with_its_count():
    assert (
        agreement(_file(_run(), _run()))
        == "Speculative and plain decoding agree in all 10 tokens of 2 greedy runs."
    )


def test_near_ties_are_explained_and_wide_gaps_are_not():
    tie = Divergence(index=1, gap=0.125, resolution=0.125)
    text = agreement(_file(_run(divergences=(tie,)), _run()))
    assert "differ in 1 of 10 tokens, in 1 of 2 greedy runs. In 1 of these" in text
    assert "fault" not in text
    wide = Divergence(index=1, gap=3.0, resolution=0.125)
    assert "1 are farther apart than rounding explains" in agreement(_file(_run(divergences=(tie, wide))))


def test_what_cannot_be_compared_is_not():
    for run in (_run(temperature=1.0), _run(forced_acceptance=0.5)):
        assert "are not compared" in agreement(_file(run))
