from __future__ import annotations

import importlib.util
import itertools
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from rooflines.errors import InputError
from rooflines.measurement.speculation.drafters import ModelDrafter, PromptLookup
from rooflines.measurement.speculation.loop import Wanted, positions_needed, run
from rooflines.measurement.speculation.rejection import distribution
from rooflines.measurement.speculation.sampling import Sampling

_SPEC = importlib.util.spec_from_file_location("toys", Path(__file__).with_name("toys.py"))
toys = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(toys)

GREEDY = Sampling()
PROMPT = np.array([1, 2, 3, 1, 2], dtype=np.int64)


def _drafter(model, *, shared, sampling=GREEDY):
    def opened(cache, positions):
        own = cache if shared else model.new_cache(positions)
        return ModelDrafter(model, own, sampling, np.random.default_rng(5))

    return opened


def _run(error=0.3, shared=True, prompt=PROMPT, **wanted):
    clock = toys.ToyClock()
    target = toys.ToyModel(clock)
    drafter = toys.ToyModel(clock, step_s=0.1, token_s=0.01, error=error)
    wanted = Wanted(**{"tokens": 30, "draft_length": 3, "sampling": GREEDY, **wanted})
    seen = run(
        target, _drafter(drafter, shared=shared, sampling=wanted.sampling), prompt, wanted, clock.time_once
    )
    return seen, target, drafter


@settings(max_examples=40, deadline=None)
@given(
    error=st.floats(0, 1),
    shared=st.booleans(),
    length=st.integers(1, 6),
    prompt=st.lists(st.integers(0, 10), min_size=2, max_size=8),
)
def test_greedy_speculation_says_what_plain_decoding_says(error, shared, length, prompt):
    seen, target, _ = _run(error, shared, np.array(prompt), draft_length=length, tokens=12)
    assert seen.tokens == decode_toy(target, prompt, len(seen.tokens))
    assert seen.divergences == ()


def decode_toy(target, prompt, count):
    return toys.decode(target, [int(token) for token in prompt], count)


@pytest.mark.parametrize("prompt", [[4, 5, 6, 4, 5, 6, 4], [1, 2, 3, 4]])
def test_prompt_lookup_says_what_plain_decoding_says(prompt):
    clock = toys.ToyClock()
    target = toys.ToyModel(clock)
    wanted = Wanted(20, 4, GREEDY)
    seen = run(target, lambda _cache, _room: PromptLookup(), np.array(prompt), wanted, clock.time_once)
    assert seen.tokens == toys.decode(target, prompt, len(seen.tokens))
    assert all(cycle.drafted <= 4 for cycle in seen.cycles)


@pytest.mark.parametrize("shared", [True, False])
def test_a_perfect_drafter_is_always_kept(shared):
    seen, _, drafter = _run(error=0.0, shared=shared)
    assert {cycle.accepted for cycle in seen.cycles} == {3}
    # prompt; first draft; then, with a cache of its own, two tokens are caught up in each first step
    steps = [width for width in drafter.widths if width > 1]
    assert steps == ([] if shared else [4] + [2] * (len(seen.cycles) - 1))


def test_a_useless_drafter_is_never_kept():
    seen, target, _ = _run(error=1.0, draft_length=2, tokens=10)
    right = sum(cycle.accepted for cycle in seen.cycles)
    assert right <= 4  # one in eleven by chance
    assert seen.tokens == decode_toy(target, PROMPT, len(seen.tokens))


def test_tokens_are_counted_not_events():
    seen, _, _ = _run()
    assert len(seen.tokens) == sum(cycle.emitted for cycle in seen.cycles) == len(seen.plain) >= 30
    assert len(seen.tokens) - seen.cycles[-1].emitted < 30
    contexts = [cycle.context for cycle in seen.cycles]
    assert contexts == [4 + sum(c.emitted for c in seen.cycles[:k]) for k in range(len(contexts))]


def test_each_part_of_a_cycle_is_timed_by_itself():
    seen, _, _ = _run(shared=True)
    for cycle in seen.cycles:
        assert cycle.draft.cpu_s == pytest.approx(3 * 0.11)
        assert cycle.verify.cpu_s == pytest.approx(1.0 + 0.25 * 4)
        assert cycle.other.cpu_s == 0.0
        assert cycle.verify.wall_s == pytest.approx(2 * cycle.verify.cpu_s)
    assert [instant.cpu_s for instant in seen.plain] == pytest.approx([1.25] * len(seen.plain))


def test_each_cycle_is_followed_by_samples_of_one_position_of_its_width_and_of_a_draft_step():
    seen, _, _ = _run()
    assert len(seen.samples) == 3 * len(seen.cycles)
    each = zip(seen.cycles, *(seen.samples[place::3] for place in range(3)), strict=True)
    for cycle, plain, step, draft in each:
        assert (plain.case, plain.new_positions, plain.context) == ("plain", 1, step.context)
        assert plain.time.cpu_s == pytest.approx(seen.plain[0].cpu_s)
        assert (step.case, step.new_positions) == ("step", cycle.verify_width)
        assert step.context == cycle.context + cycle.emitted
        assert step.time.cpu_s == pytest.approx(cycle.verify.cpu_s)
        assert (draft.case, draft.new_positions) == ("draft", 1)
        assert draft.time.cpu_s == pytest.approx(0.11)


def test_a_prompt_shorter_than_a_pass_still_has_its_sample():
    seen, _, _ = _run(prompt=np.array([1, 2]), error=1.0, draft_length=8, tokens=1)
    assert [sample.new_positions for sample in seen.samples[:2]] == [1, 9]


def test_forced_acceptance_is_a_dial_at_the_drafters_cost():
    seen, _, _ = _run(error=1.0, forced_acceptance=1.0)
    assert {cycle.accepted for cycle in seen.cycles} == {3}
    assert seen.cycles[0].draft.cpu_s == pytest.approx(0.33)
    assert seen.divergences == ()  # nobody claims that the text is the target's
    seen, target, _ = _run(error=0.0, forced_acceptance=0.0)
    assert {cycle.accepted for cycle in seen.cycles} == {0}
    assert seen.tokens == decode_toy(target, PROMPT, len(seen.tokens))


def test_forced_acceptance_accepts_as_often_as_told():
    seen, _, _ = _run(error=1.0, forced_acceptance=0.7, draft_length=1, tokens=400)
    share = np.mean([cycle.accepted for cycle in seen.cycles])
    assert share == pytest.approx(0.7, abs=4 * np.sqrt(0.7 * 0.3 / len(seen.cycles)))


def test_sampling_repeats_with_its_seed_and_changes_with_another():
    warm = Sampling(1.0)
    first, *_ = _run(sampling=warm, seed=1)
    again, *_ = _run(sampling=warm, seed=1)
    other, *_ = _run(sampling=warm, seed=2)
    assert first.tokens == again.tokens != other.tokens
    assert 0 < sum(cycle.accepted for cycle in first.cycles) < sum(cycle.drafted for cycle in first.cycles)


def test_a_plain_decoder_that_rounds_otherwise_is_found_out():
    class Coarse(toys.ToyModel):
        """Wide passes choose another token where the two best are near, as rounding in bf16 does."""

        def forward(self, tokens, cache):
            logits = super().forward(tokens, cache)
            best = np.sort(logits.rows, axis=-1)
            near = best[:, -1] - best[:, -2] < 0.2
            if len(tokens) > 1:
                for row in np.flatnonzero(near):
                    logits.rows[row, logits.rows[row].argmax()] -= 0.2
            return logits

    clock = toys.ToyClock()
    target = Coarse(clock)
    drafter = toys.ToyModel(clock, error=0.2)
    seen = run(target, _drafter(drafter, shared=True), PROMPT, Wanted(60, 2, GREEDY), clock.time_once)
    assert seen.divergences
    for divergence in seen.divergences:
        assert 0 < divergence.gap < 0.2
        assert seen.tokens[divergence.index] == divergence.emitted != divergence.plain
        assert divergence.top_logit > divergence.gap


def test_caches_have_room_for_the_last_cycle():
    wanted = Wanted(1, 8, GREEDY)
    clock = toys.ToyClock()
    target = toys.ToyModel(clock)  # its cache asserts that it is never overfull
    seen = run(target, _drafter(toys.ToyModel(clock), shared=False), PROMPT, wanted, clock.time_once)
    assert len(seen.tokens) == 9
    assert positions_needed(5, wanted) == 5 + 1 + 18


def test_bad_requests_are_refused():
    with pytest.raises(InputError, match="both must be 1 or more"):
        Wanted(0, 1, GREEDY)
    with pytest.raises(InputError, match="both must be 1 or more"):
        Wanted(1, 0, GREEDY)
    with pytest.raises(InputError, match="it must be 0 to 1"):
        Wanted(1, 1, GREEDY, forced_acceptance=1.5)
    with pytest.raises(InputError, match="2 or more"):
        _run(prompt=np.array([1]))


class Markov:
    """What follows depends on the last token alone, so that the distribution of an answer is known."""

    depth = 1

    def __init__(self, seed, scale=1.5):
        self.logits = np.random.default_rng(seed).normal(scale=scale, size=(4, 4))

    def new_cache(self, positions):
        return toys.ToyCache(positions)

    def forward(self, tokens, cache):
        cache.tokens.extend(tokens.tolist())
        return toys.ToyLogits(self.logits[tokens])


@pytest.mark.parametrize("drafter", ["model", "lookup"])
def test_the_whole_loop_samples_the_targets_exact_distribution(drafter):
    target, warm, prompt = Markov(1), Sampling(1.0), np.array([2, 3, 1, 2])
    exact = distribution(target.logits, 1.0)
    followed = np.zeros((4, 4))
    for seed in range(2500):

        def opened(_cache, positions, seed=seed):
            other = Markov(2)
            cache = other.new_cache(positions)  # its own: a draft kept whole is caught up in the next one
            model = ModelDrafter(other, cache, warm, np.random.default_rng([seed, 9]))
            return model if drafter == "model" else PromptLookup()

        seen = run(target, opened, prompt, Wanted(4, 1, warm, seed=seed), toys.ToyClock().time_once)
        said = (2, *seen.tokens[:4])  # a fixed number, since longer cycles would bring their own bias
        for before, after in itertools.pairwise(said):
            followed[before, after] += 1
    for token in range(4):
        expected = exact[token] * followed[token].sum()
        assert chisquare(followed[token], expected).pvalue > 1e-4
