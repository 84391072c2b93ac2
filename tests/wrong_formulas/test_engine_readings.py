"""Known misreadings of engines' numbers, injected one by one: each must turn a check red."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from rooflines.engines import settings
from rooflines.engines.catalogue import ENGINES
from rooflines.engines.served import Served
from rooflines.engines.settings import Advice, Range, settings_text
from rooflines.measurement.readers import llama_bench, prometheus, sglang, vllm
from rooflines.measurement.readers.catalogue import import_file
from rooflines.measurement.schema import Step
from rooflines.measurement.step_files import read_steps

SAMPLES = Path(__file__).parent.parent / "unit" / "measurement" / "samples"
SERVED = Served("bf16", "bf16", 0.1, 0.9, positions=4096, largest_batch=64, asked_batch=64)


def read(kind, name, **options):
    return import_file(kind, SAMPLES / name, **options)


def check_rates_by_position_yield_the_printed_length():
    record = read("vllm-serve", "vllm-serve.json").acceptance[0]
    assert record.acceptance().tokens_per_cycle(3) == pytest.approx(record.tokens_per_cycle)


def check_length_counts_the_bonus_token():
    record = read("sglang-bench", "sglang-bench.jsonl").acceptance[0]
    assert record.acceptance().tokens_per_cycle(record.draft_length) == pytest.approx(2.62)
    assert record.draft_length == 3


def check_counters_are_of_the_run():
    found = read("prometheus", "vllm-after.prom", before=SAMPLES / "vllm-before.prom")
    assert found.acceptance[0].values == pytest.approx((0.75, 0.45))


def check_decoding_is_timed_per_token():
    steps = read("llama-bench", "llama-bench.json").steps
    seconds = {step.new_positions: step.seconds[0] for step in steps}
    assert seconds[1] < seconds[4]


def check_the_plain_step_is_that_of_decoding():
    table = read_steps(SAMPLES / "llama-bench.json").table
    assert table.decode(1, 128).seconds == pytest.approx(0.014)


def check_settings_draft_what_was_planned():
    text = settings_text(Advice("eagle3", "target", "draft", (Range(1, 8, 3),), 3, SERVED), "sglang")
    assert "--speculative-num-steps 3 " in text
    assert "--speculative-num-draft-tokens 4" in text


def check_schedules_end_with_their_range():
    ranges = (Range(1, 8, 3), Range(9, 64, 1))
    text = settings_text(Advice("eagle3", "target", "draft", ranges, 3, SERVED), "trtllm")
    assert "    8: 3\n    64: 1\n" in text


CHECKS = (
    check_rates_by_position_yield_the_printed_length,
    check_length_counts_the_bonus_token,
    check_counters_are_of_the_run,
    check_decoding_is_timed_per_token,
    check_the_plain_step_is_that_of_decoding,
    check_settings_draft_what_was_planned,
    check_schedules_end_with_their_range,
)


def rates_taken_as_conditional(monkeypatch):
    """vLLM's "per-position acceptance rate" read as c_k."""
    right = vllm._acceptance
    monkeypatch.setattr(
        vllm, "_acceptance", lambda *a: right(*a).model_copy(update={"definition": "conditional"})
    )


def width_taken_as_draft_length(monkeypatch):
    """SGLang's num_draft_tokens read as drafted tokens."""
    right = sglang._bench_acceptance
    monkeypatch.setattr(
        sglang, "_bench_acceptance", lambda *a: right(*a).model_copy(update={"draft_length": 4})
    )


def counters_not_differenced(monkeypatch):
    """Prometheus counters read as if the server had been started for the run."""
    monkeypatch.setattr(prometheus, "_difference", lambda now, _: now)


def generation_taken_as_one_pass(monkeypatch):
    """llama-bench's -n 32 read as the time of one step."""
    right = llama_bench._step

    def wrong(record, where):
        step = right(record, where)
        factor = record["n_gen"] or 1
        if not isinstance(step, Step):
            return step
        return step.model_copy(update={"seconds": tuple(time * factor for time in step.seconds)})

    monkeypatch.setattr(llama_bench, "_step", wrong)


def cold_pass_averaged_with_decoding(monkeypatch):
    """llama-bench's -p 1, one pass out of the cold, pooled with the steps of -n."""
    monkeypatch.setattr(llama_bench, "_cold", lambda step: step)


def anchor_forgotten(monkeypatch):
    """A chain of three written to SGLang as three draft tokens."""
    engine = ENGINES["sglang"]
    method = dataclasses.replace(engine.methods["eagle3"], anchor=0)
    monkeypatch.setitem(
        ENGINES, "sglang", dataclasses.replace(engine, methods={**engine.methods, "eagle3": method})
    )


def keys_taken_as_lower_bounds(monkeypatch):
    """TensorRT-LLM's schedule keyed by the smallest batch, as releases before March 2026 read it."""
    right = settings._draft_len_schedule

    def wrong(advice):
        _, notes = right(advice)
        return {one.first: one.draft_length for one in advice.ranges}, notes

    monkeypatch.setattr(settings, "_draft_len_schedule", wrong)


FAULTS = {
    rates_taken_as_conditional: check_rates_by_position_yield_the_printed_length,
    width_taken_as_draft_length: check_length_counts_the_bonus_token,
    counters_not_differenced: check_counters_are_of_the_run,
    generation_taken_as_one_pass: check_decoding_is_timed_per_token,
    cold_pass_averaged_with_decoding: check_the_plain_step_is_that_of_decoding,
    anchor_forgotten: check_settings_draft_what_was_planned,
    keys_taken_as_lower_bounds: check_schedules_end_with_their_range,
}


@pytest.mark.parametrize("check", CHECKS)
def test_checks_pass_on_what_is_shipped(check):
    check()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_every_fault_turns_its_check_red(fault, monkeypatch):
    fault(monkeypatch)
    with pytest.raises(AssertionError):
        FAULTS[fault]()


def test_every_check_has_a_fault():
    assert set(FAULTS.values()) == set(CHECKS)
