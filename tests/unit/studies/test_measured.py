from __future__ import annotations

import pytest

from rooflines.errors import InputError
from rooflines.measurement.schema import (
    DecodeFile,
    Inputs,
    MachineFacts,
    MachineFile,
    ProbeSample,
    Sample,
    Stability,
    Step,
    StepsFile,
)
from rooflines.studies.measured import curves, machine_table, sample_table, step_table

HEADER = {
    "created": "2026-11-30T07:30:00+00:00",
    "rooflines": "0.1.0",
    "versions": {"torch": "2.13.0"},
    "inputs": Inputs(model="toy", config="{}", dtype="bf16"),
}
WHERE = {
    "machine": MachineFacts(
        device="EPYC",
        kind="cpu",
        cpu="EPYC",
        cores=2,
        threads=1,
        memory_bytes=10**9,
        caches=(),
        system="Linux",
    ),
    "stability": Stability(run_delay_share=None, iqr_share=0.0, stable=True, advice="held still"),
}


def sample(case, batch, new, context, depth, *, middle_s):
    """Five times whose median is `middle_s`, quartiles a tenth below and a fifth above it."""
    times = tuple(middle_s * factor for factor in (1.0, 0.9, 1.2, 0.5, 3.0))
    return Sample(
        case=case,
        batch=batch,
        new_positions=new,
        context=context,
        depth=depth,
        cpu_s=times,
        wall_s=tuple(2 * one for one in times),
    )


SAMPLES = (
    sample("step", 1, 1, 16, 4, middle_s=0.040),
    sample("step", 1, 8, 16, 4, middle_s=0.050),
    sample("step", 1, 4, 16, 4, middle_s=0.044),
    sample("step", 1, 1, 512, 4, middle_s=0.060),
    sample("step", 1, 1, 16, 2, middle_s=0.025),
    sample("prefill", 1, 64, 0, 4, middle_s=0.100),
)
FILE = DecodeFile(**HEADER, **WHERE, samples=SAMPLES)


def test_medians_and_their_spread_stand_in_the_order_of_the_file():
    table = sample_table(FILE)
    assert table["new_positions"] == [1, 8, 4, 1, 1, 64]
    assert table["median_s"] == pytest.approx([0.040, 0.050, 0.044, 0.060, 0.025, 0.100])
    assert table["iqr_s"] == pytest.approx([0.3 * one for one in table["median_s"]])
    assert table["wall_median_s"] == pytest.approx([2 * one for one in table["median_s"]])
    assert table["times"] == [5] * 6


def test_a_pass_is_compared_with_one_position_of_the_same_setting_only():
    relative = sample_table(FILE)["relative_to_one_position"]
    assert relative[:5] == pytest.approx([1.0, 1.25, 1.1, 1.0, 1.0])
    assert relative[5] is None


def test_the_device_s_clock_is_used_where_there_is_one():
    events = SAMPLES[0].model_copy(update={"device_s": (0.001, 0.002, 0.003, 0.004, 0.005)})
    table = sample_table(FILE.model_copy(update={"samples": (events,)}))
    assert table["median_s"] == [0.003]
    assert table["wall_median_s"] == pytest.approx([0.080])


def test_curves_rise_in_width_and_are_of_whole_passes():
    (curve,) = curves(FILE)
    assert (curve.batch, curve.context) == (1, 16)
    assert curve.positions == (1, 4, 8)
    assert curve.median_s == pytest.approx((0.040, 0.044, 0.050))
    assert curve.low_s == pytest.approx((0.036, 0.0396, 0.045))
    assert curve.high_s == pytest.approx((0.048, 0.0528, 0.060))
    # Three widths make a curve; one width at another context does not.
    assert [one.context for one in curves(FILE, least=1)] == [16, 512]


def test_too_few_widths_are_refused_with_what_to_measure():
    with pytest.raises(InputError, match="measure more --positions"):
        curves(FILE.model_copy(update={"samples": SAMPLES[:2]}))


def test_probes_are_told_as_rates_with_their_unit():
    probes = tuple(
        ProbeSample(
            quantity=quantity,
            dtype="fp32",
            shape=(2, 3),
            moved_bytes=6.0,
            flops=12.0,
            cpu_s=(1.0, 2.0, 3.0),
            wall_s=(1.0, 2.0, 3.0),
        )
        for quantity in ("read", "copy", "gemm", "launch")
    )
    table = machine_table(MachineFile(**HEADER, **WHERE, samples=probes))
    assert table["median"] == [3.0, 3.0, 6.0, 2.0]
    assert table["unit"] == ["B/s", "B/s", "FLOP/s", "s"]
    assert table["shape"] == ["2x3"] * 4


def test_a_table_of_another_tool_is_told_cell_by_cell():
    steps = (Step(batch=1, new_positions=1, context=0, seconds=(0.1, 0.3, 0.2)),)
    table = step_table(StepsFile(**HEADER, source="llama-bench", steps=steps))
    assert table["median_s"] == [0.2]
    assert table["times"] == [3]
