from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chisquare

from rooflines.errors import InputError
from rooflines.measurement.speculation.rejection import (
    acceptance_probability,
    distribution,
    draw,
    forced_verdict,
    greedy_verdict,
    lossless_verdict,
)

DRAWS = 100_000


def _chain(seed, vocabulary=6):
    """A target and a draft of a Markov kind: row = distribution of what follows a token."""
    generator = np.random.default_rng(seed)
    target = distribution(generator.normal(scale=1.5, size=(vocabulary, vocabulary)), 1.0)
    draft = distribution(np.log(target) + generator.normal(scale=1.0, size=target.shape), 1.0)
    return target, draft, generator


def _cycles(target, draft, generator, start, length, *, count=DRAWS):
    """`count` cycles at once; drafted tokens and the verdict on them."""
    tokens = np.full((count, length + 1), start)
    for k in range(length):
        tokens[:, k + 1] = draw(draft[tokens[:, k]], generator.random(count))
    drafted = tokens[:, 1:]
    verdict = lossless_verdict(
        drafted,
        draft[tokens[:, :-1]],
        target[tokens],
        generator.random((count, length)),
        generator.random(count),
    )
    return drafted, verdict


def _emitted(drafted, verdict):
    """Emitted tokens in rows, -1 behind the last."""
    rows = np.concatenate([drafted, np.full((len(drafted), 1), -1)], axis=1)
    rows[np.arange(len(rows)), verdict.accepted] = verdict.token
    rows[np.arange(rows.shape[1]) > verdict.accepted[:, None]] = -1
    return rows


@pytest.mark.parametrize("length", [1, 3])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_emitted_tokens_follow_the_targets_exact_distribution(seed, length):
    target, draft, generator = _chain(seed)
    rows = _emitted(*_cycles(target, draft, generator, 0, length))
    first = np.bincount(rows[:, 0], minlength=6)
    assert chisquare(first, target[0] * DRAWS).pvalue > 1e-4
    for token in range(6):  # and every later one, given the token before it, wherever it was emitted
        later = rows[:, 1:][(rows[:, :-1] == token) & (rows[:, 1:] >= 0)]
        counts = np.bincount(later, minlength=6)
        assert chisquare(counts, target[token] * later.size).pvalue > 1e-4


def test_the_chi_square_sees_a_rule_that_is_not_lossless():
    target, draft, generator = _chain(1)
    drafted, verdict = _cycles(target, draft, generator, 0, 1)
    wrong = np.where(
        verdict.accepted == 0, draw(target[0], generator.random((DRAWS, 1))[:, 0]), drafted[:, 0]
    )
    assert chisquare(np.bincount(wrong, minlength=6), target[0] * DRAWS).pvalue < 1e-10


def test_acceptance_is_the_overlap_of_the_distributions():
    target, draft, generator = _chain(4)
    _, verdict = _cycles(target, draft, generator, 0, 1)
    expected = float(acceptance_probability(draft[0], target[0]))
    error = np.sqrt(expected * (1 - expected) / DRAWS)
    assert verdict.accepted.mean() == pytest.approx(expected, abs=4 * error)


def test_a_certain_draft_keeps_the_targets_distribution():
    target, _, generator = _chain(5)
    certain = np.zeros((DRAWS, 1, 6))
    certain[..., 2] = 1.0
    drafted = np.full((DRAWS, 1), 2)
    both = np.broadcast_to(target[[0, 2]], (DRAWS, 2, 6))
    verdict = lossless_verdict(drafted, certain, both, generator.random((DRAWS, 1)), generator.random(DRAWS))
    first = _emitted(drafted, verdict)[:, 0]
    assert chisquare(np.bincount(first, minlength=6), target[0] * DRAWS).pvalue > 1e-4


def test_a_draft_equal_to_the_target_is_always_kept():
    target, _, generator = _chain(6)
    _, verdict = _cycles(target, target, generator, 3, 4, count=1000)
    assert (verdict.accepted == 4).all()


def test_nothing_the_target_cannot_say_is_kept():
    target = np.array([[[0.0, 1.0], [0.5, 0.5]]])
    draft = np.array([[[1.0, 0.0]]])
    verdict = lossless_verdict(np.array([[0]]), draft, target, np.zeros((1, 1)), np.array([0.999]))
    assert (verdict.accepted.item(), verdict.token.item()) == (0, 1)


def test_an_empty_draft_yields_one_token_of_the_target():
    verdict = lossless_verdict(
        np.zeros(0, dtype=int), np.zeros((0, 3)), np.array([[0.0, 0.0, 1.0]]), np.zeros(0), np.asarray(0.0)
    )
    assert (verdict.accepted.item(), verdict.token.item()) == (0, 2)


@given(
    hnp.arrays(np.int64, st.tuples(st.integers(1, 5), st.integers(1, 4)), elements=st.integers(0, 2)),
    st.integers(0, 2**32 - 1),
)
def test_greedy_is_the_lossless_rule_on_certain_distributions(drafted, seed):
    generator = np.random.default_rng(seed)
    target = generator.integers(0, 3, (drafted.shape[0], drafted.shape[1] + 1))
    eye = np.eye(3)
    lossless = lossless_verdict(
        drafted, eye[drafted], eye[target], generator.random(drafted.shape), generator.random(len(drafted))
    )
    greedy = greedy_verdict(drafted, target)
    assert (greedy.accepted == lossless.accepted).all()
    assert (greedy.token == lossless.token).all()


def test_greedy_stops_at_the_first_difference():
    verdict = greedy_verdict(np.array([[5, 6, 7], [5, 0, 7], [1, 6, 7]]), np.array([[5, 6, 7, 8]] * 3))
    assert verdict.accepted.tolist() == [3, 1, 0]
    assert verdict.token.tolist() == [8, 6, 5]


def test_forced_acceptance_is_geometric():
    generator = np.random.default_rng(7)
    verdict = forced_verdict(0.8, np.zeros((DRAWS, 5), dtype=int), generator.random((DRAWS, 4)))
    expected = np.array([0.2, 0.8 * 0.2, 0.8**2 * 0.2, 0.8**3 * 0.2, 0.8**4]) * DRAWS
    assert chisquare(np.bincount(verdict.accepted, minlength=5), expected).pvalue > 1e-4


@pytest.mark.parametrize(("acceptance", "kept"), [(0.0, 0), (1.0, 4)])
def test_forced_acceptance_at_its_ends(acceptance, kept):
    uniforms = np.random.default_rng(8).random((1000, 4))
    uniforms[0] = 0.0
    assert (forced_verdict(acceptance, np.zeros((1000, 5), dtype=int), uniforms).accepted == kept).all()


def test_distribution_is_a_softmax():
    assert distribution(np.log([1.0, 3.0]), 1.0) == pytest.approx([0.25, 0.75])
    assert distribution(np.log([1.0, 3.0]), 0.5) == pytest.approx([0.1, 0.9])
    assert distribution(np.array([1e4, 0.0]), 1.0) == pytest.approx([1.0, 0.0])


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan")])
def test_no_distribution_without_temperature(temperature):
    with pytest.raises(InputError, match="above 0"):
        distribution(np.zeros(3), temperature)


@given(st.lists(st.sampled_from([0.0, 1e-300, 0.3, 1.0, 7.0]), min_size=1, max_size=6), st.data())
def test_draw_never_takes_what_has_no_weight(weights, data):
    row = np.array(weights)
    if not row.sum() > 0:
        row[-1] = 1.0
    uniform = data.draw(st.sampled_from([0.0, 0.5, np.nextafter(1.0, 0.0)]))
    assert row[draw(row, np.asarray(uniform))] > 0
