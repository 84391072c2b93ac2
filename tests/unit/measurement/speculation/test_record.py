from __future__ import annotations

import numpy as np
import pytest

from rooflines.measurement.clock import Timing
from rooflines.measurement.schema import Divergence as StoredDivergence
from rooflines.measurement.schema import SpeculationRun
from rooflines.measurement.speculation.choices import parse_drafter
from rooflines.measurement.speculation.loop import CycleRecord, Divergence, Run, Sample, Wanted
from rooflines.measurement.speculation.prompts import choose_prompts
from rooflines.measurement.speculation.record import NEAR_TIE_STEPS, is_near_tie, resolution, speculation_run
from rooflines.measurement.speculation.sampling import Sampling


def _run(device_s=None):
    def took(cpu_s):
        return Timing(cpu_s, 3 * cpu_s, device_s)

    cycles = (
        CycleRecord(context=9, draft=took(1.0), verify=took(2.0), other=took(0.5), drafted=3, accepted=1),
        CycleRecord(context=11, draft=took(1.5), verify=took(2.5), other=took(0.25), drafted=0, accepted=0),
    )
    samples = (Sample("step", 4, 11, 30, took(2.25)), Sample("draft", 1, 11, 10, took(0.75)))
    apart = (Divergence(index=2, emitted=5, plain=6, gap=0.25, top_logit=17.0),)
    return Run((4, 5, 6), cycles, tuple(took(second) for second in (7.0, 8.0, 9.0)), samples, apart)


def _stored(run, drafter="early-exit:10", dtype="bf16"):
    choice = parse_drafter(drafter)
    (prompt,) = choose_prompts(["chat-bread"])
    wanted = Wanted(3, 3, Sampling(), choice.forced_acceptance)
    return speculation_run(run, choice, prompt, wanted, dtype)


def test_a_run_is_stored_on_the_clock_of_the_thread():
    stored = _stored(_run())
    assert (stored.drafter, stored.parameters) == ("early-exit", {"layers": 10})
    assert (stored.prompt, stored.prompt_kind, stored.draft_length) == ("chat-bread", "chat", 3)
    first, second = stored.cycles
    assert (first.draft_s, first.verify_s, first.other_s, first.wall_s) == (1.0, 2.0, 0.5, 10.5)
    assert (first.drafted, first.accepted, first.emitted, first.verify_width, first.context) == (
        3,
        1,
        2,
        4,
        9,
    )
    assert (second.drafted, second.emitted, second.verify_width) == (0, 1, 1)
    assert stored.plain_s == (7.0, 8.0, 9.0)
    assert stored.plain_wall_s == (21.0, 24.0, 27.0)
    step, draft = stored.samples
    assert (step.case, step.new_positions, step.context, step.depth) == ("step", 4, 11, 30)
    assert (draft.case, draft.new_positions, draft.depth, draft.seconds) == ("draft", 1, 10, (0.75,))


def test_on_a_gpu_the_time_between_events_counts():
    stored = _stored(_run(device_s=0.125))
    assert {stored.cycles[0].draft_s, stored.cycles[0].verify_s, *stored.plain_s} == {0.125}
    assert stored.samples[0].seconds == (0.125,)
    assert stored.samples[0].cpu_s == (2.25,)


def test_a_forced_acceptance_is_kept_apart_from_the_drafter():
    stored = _stored(_run(), "forced:0.75:early-exit:10")
    assert (stored.drafter, stored.forced_acceptance) == ("early-exit", 0.75)


def test_a_stored_run_survives_its_file():
    stored = _stored(_run())
    assert SpeculationRun.model_validate_json(stored.model_dump_json()) == stored


def test_a_divergence_keeps_the_rounding_that_explains_it():
    (apart,) = _stored(_run()).divergences
    assert (apart.index, apart.gap, apart.resolution) == (2, 0.25, 0.125)  # bf16 between 16 and 32
    assert is_near_tie(apart)
    (apart,) = _stored(_run(), dtype="fp32").divergences
    assert apart.resolution == 2.0**-19
    assert not is_near_tie(apart)


def test_near_means_a_few_roundings():
    assert is_near_tie(StoredDivergence(index=0, gap=NEAR_TIE_STEPS * 0.5, resolution=0.5))
    assert not is_near_tie(StoredDivergence(index=0, gap=NEAR_TIE_STEPS * 0.5 + 1e-6, resolution=0.5))


@pytest.mark.parametrize("value", [1.0, 1.5, 17.25, -30.0, 0.1, 60000.0, 1e-6, 0.0])
@pytest.mark.parametrize(("dtype", "numpy_dtype"), [("fp32", np.float32), ("fp16", np.float16)])
def test_resolution_is_the_step_to_the_next_number(value, dtype, numpy_dtype):
    rounded = numpy_dtype(value)
    tiny = np.finfo(numpy_dtype).tiny  # below it the steps no longer shrink
    expected = np.spacing(np.maximum(np.abs(rounded), tiny))
    assert resolution(float(rounded), dtype) == expected


@pytest.mark.parametrize(("value", "step"), [(1.0, 2**-7), (-21.8, 2**-3), (127.0, 0.5), (128.0, 1.0)])
def test_resolution_of_bf16(value, step):
    assert resolution(value, "bf16") == step
