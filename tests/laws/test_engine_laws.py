"""Whatever the schedule, every engine is told the same; however a run is cut, its acceptance stays."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.engines.catalogue import ENGINES
from rooflines.engines.served import Served
from rooflines.engines.settings import Advice, Range, settings_text
from rooflines.engines.sglang import accept_rate_meaning
from rooflines.measurement.readers.pooling import Interval, pooled_survival
from rooflines.speculation.definitions import from_survival


@st.composite
def schedules(draw):
    """Ranges from batch 1 without a gap, each with another draft length; some of it drafts."""
    widths = draw(st.lists(st.integers(1, 40), min_size=1, max_size=5))
    lengths = draw(st.lists(st.integers(0, 9), min_size=len(widths), max_size=len(widths)))
    ends = np.cumsum(widths).tolist()
    ranges = tuple(
        Range(1 if index == 0 else ends[index - 1] + 1, end, length)
        for index, (end, length) in enumerate(zip(ends, lengths, strict=True))
    )
    return ranges if any(lengths) else (*ranges[:-1], Range(ranges[-1].first, ranges[-1].last, 1))


def planned(ranges, batch):
    return next(one.draft_length for one in ranges if one.first <= batch <= one.last)


def in_vllm(text, batch):
    words = shlex.split(text.splitlines()[0])
    config = json.loads(words[words.index("--speculative-config") + 1])
    schedule = config.get("num_speculative_tokens_per_batch_size", [[1, 1, config["num_speculative_tokens"]]])
    reached = [tokens for first, _, tokens in schedule if first <= batch]
    return min(reached[-1], config["num_speculative_tokens"])


def in_tensorrt_llm(text, batch):
    lines = [line.strip().split(": ") for line in text.splitlines() if not line.startswith("#")]
    schedule = {int(pair[0]): int(pair[1]) for pair in lines if len(pair) == 2 and pair[0].isdecimal()}
    return schedule[min(key for key in schedule if key >= batch)] if batch <= max(schedule) else 0


def in_sglang(text, batch):
    lines = text.splitlines()
    if lines[0].startswith("cat > "):
        config = json.loads(lines[1])
        (steps,) = config[str(max(int(key) for key in config if int(key) <= batch))]["candidate_steps"]
        return steps
    words = shlex.split(lines[0])
    return int(words[words.index("--speculative-num-draft-tokens") + 1]) - 1


@given(schedules(), st.data())
def test_engines_draft_what_was_planned_at_every_batch(ranges, data):
    single = ranges[0].draft_length or ranges[-1].draft_length
    served = Served("bf16", "bf16", 0.1, 0.9, positions=4096, largest_batch=64, asked_batch=64)
    advice = Advice("eagle3", "target", "draft", ranges, single, served)
    batch = data.draw(st.integers(1, ranges[-1].last))
    wanted = planned(ranges, batch)
    assert in_vllm(settings_text(advice, "vllm"), batch) == wanted
    assert in_sglang(settings_text(advice, "sglang"), batch) == wanted
    # TensorRT-LLM wants max_draft_len, the longest, at the smallest batch.
    told = in_tensorrt_llm(settings_text(advice, "trtllm"), batch)
    assert told == (advice.longest if batch == 1 else wanted)


@given(st.integers(1, 64))
def test_settings_lead_back_to_the_draft_length(draft_length):
    for engine in ENGINES.values():
        for method in engine.methods.values():
            assert method.draft_length(method.setting_value(draft_length)) == draft_length


counts = st.lists(st.integers(0, 400), min_size=2, max_size=6).filter(any)


def interval(histogram):
    """What an engine prints of cycles that accepted 0, 1, .. tokens."""
    cycles = np.asarray(histogram, dtype=float)
    at_least = np.cumsum(cycles[::-1])[::-1]
    places = len(histogram) - 1
    accepted = int(sum(index * count for index, count in enumerate(histogram)))
    return Interval(accepted, int(cycles.sum()) * places, tuple((at_least[1:] / at_least[0]).tolist()))


@given(counts, st.data())
def test_a_run_cut_in_two_has_the_acceptance_of_the_whole(histogram, data):
    first = [data.draw(st.integers(0, count)) for count in histogram]
    rest = [count - part for count, part in zip(histogram, first, strict=True)]
    parts = [interval(part) for part in (first, rest) if any(part)]
    whole = pooled_survival([interval(histogram)], label="whole", meaning="m")
    cut = pooled_survival(parts, label="cut", meaning="m")
    np.testing.assert_allclose(cut.values, whole.values, atol=1e-12)
    assert cut.cycles == whole.cycles == sum(histogram)
    assert whole.tokens_per_cycle == pytest.approx(1 + parts_mean(histogram))


def parts_mean(histogram):
    return sum(index * count for index, count in enumerate(histogram)) / sum(histogram)


@given(counts)
def test_survival_and_length_printed_together_agree(histogram):
    record = pooled_survival([interval(histogram)], label="run", meaning="m")
    acceptance = from_survival(record.values)
    assert acceptance.tokens_per_cycle(len(record.values)) == pytest.approx(record.tokens_per_cycle)


@given(st.integers(2, 64), st.floats(0, 1))
def test_either_accept_rate_means_the_same_length(width, share):
    """Both of SGLang's rates lead back to the accepted length that was printed beside them."""
    tau = 1 + share * (width - 1)
    printed = round(tau, 2)
    backwards = {
        "accepted-per-drafted": lambda rate: 1 + rate * (width - 1),
        "tau-per-width": lambda rate: rate * width,
    }
    for rate in ((tau - 1) / (width - 1), tau / width):
        meaning = accept_rate_meaning(printed, round(rate, 2), width)
        assert backwards[meaning](rate) == pytest.approx(tau, abs=0.011 * width)
