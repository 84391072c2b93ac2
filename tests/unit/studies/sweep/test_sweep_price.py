"""Grids and scattered points give the numbers of single points, whatever is cut and sorted on the way."""

from __future__ import annotations

import numpy as np
import pytest

from rooflines.errors import InputError, UnknownNameError
from rooflines.estimates import Estimate, total
from rooflines.serving.memory import memory_fit
from rooflines.speculation.acceptance import Acceptance
from rooflines.speculation.branches import BranchAcceptance
from rooflines.speculation.cycle import cycle, cycle_times
from rooflines.speculation.drafters.registry import KINDS, make_drafter
from rooflines.speculation.host import CycleHost
from rooflines.speculation.uncertain import draft_estimate
from rooflines.studies.serve import make_deployment, make_machine
from rooflines.studies.sweep import price, scattered
from rooflines.studies.sweep.asked import Axes, Served
from rooflines.studies.sweep.columns import COLUMNS, EXTRAPOLATED, OF_CYCLE, VERIFY_BOUND, Piece, empty
from rooflines.studies.sweep.price import price_grid
from rooflines.studies.sweep.scattered import Points, price_points
from rooflines.timing.roofline import BOUNDS
from rooflines.timing.uncertain import pass_estimate

BATCHES, CONTEXTS = np.array([1.0, 7.0, 64.0]), np.array([0.0, 100.0, 5000.0, 90_000.0])
LENGTHS, ALPHAS = np.array([0.0, 1.0, 4.0]), np.array([0.0, 0.55, 0.8, 1.0])


def served(drafter="independent:llama-3.2-1b", target="llama-3.1-8b", calibration="auto", **options):
    deployment = make_deployment(target, make_machine("h100-sxm5-80gb", calibration))
    return Served(deployment, make_drafter(drafter, deployment), **options)


def one_point(what, batch, context, length, rates):
    """Every column of one point, straight from the cycle and the memory."""
    times = cycle_times(what.target, what.drafter, batch, context, length, host=what.host)
    outcome = cycle(times, rates)
    held = max(float(times.draft.verify_width) - 1.0, length)
    fit = memory_fit(what.target, what.drafter, batch, context, held, reserve=what.memory_reserve)
    numbers = {name: float(column(Piece(outcome, batch, None))) for name, column in OF_CYCLE.items()}
    return {
        **numbers,
        **ends_by_cause(what.target.machine, times, outcome),
        "fits": bool(fit.fits),
        "memory_bytes": float(fit.used_bytes),
        EXTRAPOLATED: False,
        VERIFY_BOUND: BOUNDS.index(str(np.ravel(times.verify.bound)[0])),
    }


def ends_by_cause(machine, times, outcome):
    """Ends of intervals of one point as a plan finds them: errors of every cause carried through."""
    plain, verify = (
        pass_estimate(time, machine, name)
        for time, name in ((times.target, "decode"), (times.verify, "verify"))
    )

    drafted = Estimate(outcome.draft_s, draft_estimate(times.draft, machine).errors)
    whole = total((drafted, verify, Estimate(outcome.overhead_s)))
    time_low, time_high = (float(end / outcome.tokens_per_cycle) for end in whole.interval())
    cost = whole / plain
    cost_low, cost_high = (float(end) for end in cost.interval())
    beside = float((total((drafted, Estimate(outcome.overhead_s))) / plain).interval()[0])
    if times.draft_length == 0:
        cost_low = cost_high = float(cost.value)
        beside = 0.0
    cost_low = min(float(cost.value), max(cost_low, 1.0 + beside))
    tau = float(outcome.tokens_per_cycle)
    return {
        "speedup_low": tau / cost_high,
        "speedup_high": tau / cost_low,
        "time_per_token_low_s": time_low,
        "time_per_token_high_s": time_high,
    }


DRAFTERS = {
    "two models": ("independent:llama-3.2-1b", "llama-3.1-8b"),
    "a head": ("eagle3", "llama-3.1-8b"),
    "a tree": ("eagle2", "llama-3.1-8b"),
    "a lookup": ("ngram", "llama-3.1-8b"),
    "experts": ("ngram", "gpt-oss-20b"),
    "latent attention": ("mtp", "deepseek-v3"),
}


# Kinds that need more than their name with most targets: a model, a parameter, or a target of their own.
WRITTEN = {
    "independent": ("independent:llama-3.2-1b",),
    "quantized": ("quantized:int4",),
    "layerskip": ("layerskip:layers=8",),
    "sparse-kv": ("sparse-kv:window=256",),
    "mtp": ("mtp", "deepseek-v3"),
    "p-eagle": ("p-eagle:qwen3-8b-peagle", "qwen3-8b"),
    "domino": ("domino:qwen3-8b-domino", "qwen3-8b"),
}


@pytest.mark.parametrize("kind", DRAFTERS)
def test_a_grid_holds_the_numbers_of_its_points(kind, monkeypatch):
    # Small pieces, so that every axis is cut.
    monkeypatch.setattr(price, "_PRICED_POINTS", 24)
    monkeypatch.setattr(price, "_CACHED_POINTS", 6)
    what = served(*DRAFTERS[kind], host=CycleHost(1e-4, 3e-4, 1e-6))
    lengths = np.array(what.drafter.draft_lengths((0, 1, 4)), dtype=float)
    grid = price_grid(what, Axes(BATCHES, CONTEXTS, lengths, Acceptance.constant(ALPHAS)))
    assert set(grid) == set(COLUMNS)
    for index in np.ndindex(len(BATCHES), len(CONTEXTS), len(lengths), len(ALPHAS)):
        i, j, k, m = index
        alone = one_point(what, BATCHES[i], CONTEXTS[j], lengths[k], Acceptance.constant(ALPHAS[m]))
        assert {name: column[index].item() for name, column in grid.items()} == pytest.approx(
            alone, rel=1e-12
        )


@pytest.mark.parametrize("kind", DRAFTERS)
def test_scattered_points_are_the_points_of_the_grid(kind, monkeypatch):
    monkeypatch.setattr(scattered, "_POINTS_AT_ONCE", 50)
    what = served(*DRAFTERS[kind])
    lengths = np.array(what.drafter.draft_lengths((1, 4)), dtype=float)
    axes = Axes(BATCHES, CONTEXTS, lengths, Acceptance.constant(ALPHAS))
    grid = price_grid(what, axes)
    order = np.random.default_rng(5).permutation(np.prod(axes.shape))
    columns = [axis.ravel()[order] for axis in np.meshgrid(BATCHES, CONTEXTS, lengths, ALPHAS, indexing="ij")]
    batch, context, length, alpha = columns
    found = price_points(what, Points(batch, context, length, Acceptance.constant(alpha)))
    for name, column in grid.items():
        np.testing.assert_allclose(found[name], column.ravel()[order], rtol=1e-12, err_msg=name)


def test_scattered_points_need_no_structure():
    what, rng = served(), np.random.default_rng(11)
    batch, context = rng.uniform(1, 300, 60), rng.uniform(0, 20_000, 60)  # no batch twice, none whole
    length, alpha = rng.integers(0, 9, 60).astype(float), rng.uniform(0, 1, 60)
    found = price_points(what, Points(batch, context, length, Acceptance.constant(alpha)))
    for i in range(60):
        alone = one_point(what, batch[i], context[i], length[i], Acceptance.constant(alpha[i]))
        assert {name: column[i].item() for name, column in found.items()} == pytest.approx(alone, rel=1e-12)


def test_large_whole_batches_are_told_apart():
    what = served(drafter="ngram")
    batch = np.array([70_000.0, 3.0, 70_000.0, 65_539.0])  # beyond 16 bits, and equal to 3 in them
    points = Points(batch, np.full(4, 10.0), np.full(4, 2.0), Acceptance.constant(0.5))
    found = price_points(what, points, ["speedup"])["speedup"]
    for i in range(4):
        alone = one_point(what, batch[i], 10.0, 2.0, Acceptance.constant(0.5))
        assert found[i] == pytest.approx(alone["speedup"], rel=1e-12)


def test_no_point_is_an_answer_too():
    none = np.empty(0)
    found = price_points(served(), Points(none, none, none, Acceptance.constant(0.5)))
    assert all(column.shape == (0,) for column in found.values())


@pytest.mark.parametrize(
    ("drafter", "rates"),
    [
        ("ngram", Acceptance.conditional_rates([0.9, 0.7, 0.5])),
        ("eagle:topk=4,nodes=12", BranchAcceptance.positional([0.6, 0.2, 0.1, 0.05])),
    ],
    ids=["by position", "by branch"],
)
def test_other_acceptances_are_one_value_of_their_axis(drafter, rates):
    what = served(drafter)
    grid = price_grid(what, Axes(BATCHES, CONTEXTS, np.array([1.0, 3.0]), rates), ["speedup"])
    assert grid["speedup"].shape == (3, 4, 2, 1)
    alone = one_point(what, BATCHES[2], CONTEXTS[1], 3.0, rates)
    assert grid["speedup"][2, 1, 1, 0] == pytest.approx(alone["speedup"], rel=1e-12)


def test_drafts_beyond_the_given_acceptance_are_marked():
    rates = Acceptance.conditional_rates([0.9, 0.7])
    lengths = np.array([0.0, 2.0, 3.0])
    grid = price_grid(served("ngram"), Axes(BATCHES, CONTEXTS, lengths, rates), [EXTRAPOLATED])
    np.testing.assert_array_equal(grid[EXTRAPOLATED][1, 2, :, 0], [False, False, True])
    points = Points(np.ones(3), np.zeros(3), lengths, rates)
    found = price_points(served("ngram"), points, [EXTRAPOLATED])[EXTRAPOLATED]
    np.testing.assert_array_equal(found, [False, False, True])


def test_one_column_costs_no_other():
    grid = price_grid(served(), Axes(BATCHES, CONTEXTS, LENGTHS, Acceptance.constant(ALPHAS)), ["fits"])
    assert list(grid) == ["fits"]
    assert grid["fits"].dtype == bool
    assert grid["fits"].any()
    assert not grid["fits"].all()


def test_arrays_are_written_over_where_they_are_given():
    axes = Axes(BATCHES, CONTEXTS, LENGTHS, Acceptance.constant(ALPHAS))
    fresh, given = price_grid(served(), axes), empty(COLUMNS, axes.shape)
    price_grid(served("ngram"), axes, out=given)
    assert not np.array_equal(given["draft_s"], fresh["draft_s"])
    assert price_grid(served(), axes, out=given) is given
    for name, column in fresh.items():
        np.testing.assert_array_equal(given[name], column)
    with pytest.raises(InputError, match="out must hold speedup"):
        price_grid(served(), axes, ["speedup"], out=given)
    with pytest.raises(InputError, match=r"of shape \(1, 4, 3, 4\)"):
        price_grid(served(), Axes(BATCHES[:1], CONTEXTS, LENGTHS, axes.rates), out=given)


def test_what_does_not_vary_along_an_axis_is_held_once():
    axes = Axes(BATCHES, CONTEXTS, LENGTHS, Acceptance.constant(ALPHAS))
    fresh = price_grid(served(), axes)
    held = {name: tuple(np.array(column.strides) > 0) for name, column in fresh.items()}
    assert all(column.shape == axes.shape for column in fresh.values())
    assert held["speedup"] == held["draft_s"] == (True, True, True, True)
    assert held["target_step_s"] == (True, True, False, False)
    assert held["tokens_per_cycle"] == (False, False, True, True)
    assert not fresh["target_step_s"].flags.writeable


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_drafter_varies_as_columns_say(kind):
    """Columns that are held once along an axis would not take a value that varies there."""
    what = served(*WRITTEN.get(kind, (kind,)))
    lengths = np.array(what.drafter.draft_lengths((0, 1, 4)), dtype=float)
    axes = Axes(BATCHES, CONTEXTS, lengths, Acceptance.constant(ALPHAS))
    whole = price_grid(what, axes, out=empty(COLUMNS, axes.shape))
    for name, column in price_grid(what, axes).items():
        np.testing.assert_array_equal(column, whole[name], err_msg=name)


def test_numbers_of_float32_are_those_of_float64_rounded():
    axes = Axes(BATCHES, CONTEXTS, LENGTHS, Acceptance.constant(ALPHAS))
    whole, half = price_grid(served(), axes), price_grid(served(), axes, dtype=np.float32)
    assert half["fits"].dtype == bool
    for name in set(COLUMNS) - {"fits", VERIFY_BOUND, EXTRAPOLATED}:
        assert half[name].dtype == np.float32
        np.testing.assert_array_equal(half[name], whole[name].astype(np.float32), err_msg=name)


def test_a_textbook_knows_no_interval():
    axes = Axes(BATCHES, CONTEXTS, LENGTHS, Acceptance.constant(ALPHAS))
    grid = price_grid(served(calibration="textbook"), axes)
    assert np.isnan(grid["speedup_low"]).all()
    assert np.isnan(grid["time_per_token_high_s"]).all()
    assert np.isfinite(grid["speedup"]).all()


def test_the_verify_pass_waits_for_memory_at_first_and_for_arithmetic_later():
    axes = Axes(np.array([1.0, 512.0]), np.zeros(1), np.array([1.0, 8.0]), Acceptance.constant(0.8))
    codes = price_grid(served(), axes, [VERIFY_BOUND])[VERIFY_BOUND]
    assert BOUNDS[codes[0, 0, 0, 0]] == "memory"
    assert BOUNDS[codes[1, 0, 1, 0]] == "compute"


def test_mistakes_are_refused():
    with pytest.raises(UnknownNameError, match=r"'speed'.*did you mean 'speedup'"):
        price_grid(served(), Axes(BATCHES, CONTEXTS, LENGTHS, Acceptance.constant(0.5)), ["speed"])
    with pytest.raises(InputError, match="each array needs one value a point"):
        Points(BATCHES, CONTEXTS, LENGTHS, Acceptance.constant(0.5))
