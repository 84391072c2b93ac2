"""The check agrees with honest runs, catches planted faults every time, and names the part at fault."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rooflines.errors import InputError
from rooflines.measurement.schema import Divergence
from rooflines.validation.check import Reference, check_speculation
from rooflines.validation.check_cases import cases_of
from rooflines.validation.check_layers import Interval, judge, shares, weights
from rooflines.validation.check_roofline import machine_speed
from rooflines.validation.decode_calibration import calibrate_decode

TOLERANCE = 0.15
LIMIT = math.log1p(TOLERANCE)


@pytest.fixture(scope="module")
def reference(simulator, root, profile):
    made = calibrate_decode(simulator.decode_file(root, seed=11), "decode.json", profile, "mine")
    return Reference(profile, made.calibration)


@pytest.fixture(scope="module")
def honest(simulator, root):
    return simulator.speculation_file(root, 5, simulator.LONG, speed=1.2)


def check(file, reference=None, **more):
    return check_speculation(file, "runs.json", reference=reference, **more)


def layer(case, name):
    return next(one for one in case.layers if one.name == name)


@pytest.mark.parametrize("seed", range(10))
def test_ten_short_runs_give_no_false_alarm(simulator, root, reference, seed):
    """The machine is now 30 % slower, now faster than when it was calibrated, and drifts meanwhile."""
    file = simulator.speculation_file(root, seed, speed=1.0 + 0.3 * math.sin(seed))
    assert check(file, reference).verdict == "agree"


def test_predictions_of_the_long_form_are_as_close_as_is_asked(honest, reference):
    """Median and 90 % quantile of 16 cases: 3 / 8 % from components, 5 / 12 % from the roofline."""
    report = check(honest, reference)
    for name, median, p90 in (("composition", 0.03, 0.08), ("roofline", 0.05, 0.12)):
        errors = [abs(math.expm1(layer(case, name).difference.value)) for case in report.cases]
        assert np.median(errors) <= median
        assert np.quantile(errors, 0.9) <= p90


def misreported(run):
    """Acceptance that is told 0.15 higher than it was."""
    generator = np.random.default_rng(0)
    more = [min(one.drafted, one.accepted + int(generator.binomial(one.drafted, 0.15))) for one in run.cycles]
    cycles = [one.model_copy(update={"accepted": kept}) for one, kept in zip(run.cycles, more, strict=True)]
    return {"cycles": tuple(cycles)}


def slower_samples(run, case, factor):
    return {
        "samples": tuple(
            one.model_copy(update={"cpu_s": tuple(factor * t for t in one.cpu_s)})
            if one.case == case
            else one
            for one in run.samples
        )
    }


FAULTS = {
    "draft": lambda s, f: s.changed(f, lambda one: {"draft_s": 1.6 * one.draft_s}, "int4"),
    "verify": lambda s, f: s.changed(f, lambda one: {"verify_s": 2.0 * one.verify_s}),
    "tau": lambda s, f: s.rewritten(f, misreported, draft_length=6),
    "baseline": lambda s, f: s.rewritten(f, lambda run: {"plain_s": tuple(1.25 * t for t in run.plain_s)}),
    # The same faults in the components that were timed apart: only the calibration can know.
    "draft everywhere": lambda s, f: s.rewritten(
        s.changed(f, lambda one: {"draft_s": 1.6 * one.draft_s}, "int4"),
        lambda run: slower_samples(run, "draft", 1.6),
        "int4",
    ),
    "verify everywhere": lambda s, f: s.rewritten(
        s.changed(f, lambda one: {"verify_s": 2.0 * one.verify_s}),
        lambda run: slower_samples(run, "step", 2.0),
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("seed", [0, 1])
def test_planted_faults_are_caught_and_named(simulator, root, reference, fault, seed):
    """Every time where they change the speedup by more than the tolerance; other cases stay as they were."""
    honest = simulator.speculation_file(root, seed, simulator.LONG, speed=1.0 + 0.2 * math.sin(3 * seed))
    before, after = check(honest, reference), check(FAULTS[fault](simulator, honest), reference)
    caught = 0
    for was, now in zip(before.cases, after.cases, strict=True):
        change = abs(math.log(now.measured.value / was.measured.value))
        if fault == "tau":
            change = abs(layer(now, "composition").causes["tau"])
        if change > LIMIT:
            assert (now.verdict, now.fault) == ("disagree", fault.split()[0]), now.name
            caught += 1
        elif change == 0.0 and fault != "tau":
            assert now.verdict == "agree", now.name
    assert caught >= (1 if fault == "tau" else 2)


@pytest.mark.parametrize("fault", ["draft", "verify", "tau"])
def test_faults_of_cycles_need_no_calibration(simulator, honest, fault):
    report = check(FAULTS[fault](simulator, honest))
    assert report.verdict == "disagree"
    assert {case.fault for case in report.cases} - {None} == {fault}


def test_a_slow_baseline_shows_without_calibration_where_passes_of_one_position_were_timed(simulator, honest):
    report = check(FAULTS["baseline"](simulator, honest))
    chat = [case for case in report.cases if case.name.startswith("prompt-lookup") and "chat" in case.name]
    assert all(case.fault == "baseline" for case in chat)
    assert "No calibration" in report.notes[0]


def test_causes_add_up_to_the_difference(simulator, honest, reference):
    broken = FAULTS["verify"](simulator, FAULTS["baseline"](simulator, honest))
    for case in check(broken, reference).cases:
        for one in case.layers:
            assert sum(one.causes.values()) == pytest.approx(one.difference.value, abs=1e-9)


@given(
    st.lists(st.floats(1e-4, 10.0), min_size=3, max_size=3),
    st.lists(st.floats(1e-4, 10.0), min_size=3, max_size=3),
)
def test_shares_split_the_logarithm_exactly(measured, expected):
    parts = ("draft", "verify", "overhead")
    found = shares(dict(zip(parts, measured, strict=True)), dict(zip(parts, expected, strict=True)))
    assert sum(found.values()) == pytest.approx(math.log(sum(measured) / sum(expected)), abs=1e-6)
    assert all(
        (found[p] >= 0) == (m >= e) for p, m, e in zip(parts, measured, expected, strict=True) if m != e
    )


@pytest.mark.parametrize(
    ("value", "low", "high", "verdict"),
    [
        (0.02, -0.03, 0.05, "agree"),
        (0.139, 0.10, 0.18, "agree"),
        (0.141, 0.10, 0.18, "disagree"),
        (-0.2, -0.25, -0.16, "disagree"),
        (0.0, -0.2, 0.2, "cannot tell"),
        (0.2, -0.1, 0.5, "cannot tell"),
        (0.8, 0.5, 1.1, "disagree"),
    ],
)
def test_noise_above_the_tolerance_tells_nothing_unless_it_lies_beyond_it(value, low, high, verdict):
    assert judge(Interval(value, low, high), TOLERANCE, 40) == verdict
    assert judge(Interval(value, low, high), TOLERANCE, 4) == "cannot tell"


def test_an_interval_of_few_cycles_is_as_wide_as_students():
    """Coverage of the mean of five normal values, 90 % asked: the plain bootstrap reaches about 75 %."""
    generator, inside = np.random.default_rng(0), 0
    for _ in range(400):
        values = generator.standard_normal(5)
        drawn = weights(5)
        interval = Interval.of(drawn @ values / drawn.sum(axis=1), 5)
        inside += interval.low <= 0.0 <= interval.high
    assert 0.86 <= inside / 400 <= 0.97


def test_too_few_cycles_cannot_tell(simulator, root):
    report = check(simulator.speculation_file(root, 0, prompts=1, tokens=6, noise=0.4, drift=0.0))
    assert report.verdict == "cannot tell"
    assert report.exit_code == 3


def test_noise_cannot_tell(simulator, root):
    report = check(simulator.speculation_file(root, 0, prompts=1, tokens=40, noise=0.7, drift=0.0))
    assert report.verdict == "cannot tell"


@pytest.mark.parametrize(
    ("votes", "speeds"),
    [
        ([(1.3, 1.3, 1.3)], [1.3]),
        ([(1.25, 1.0, 1.0)], [1.0]),
        ([(1.0, 2.0, 1.0)], [1.0]),
        ([(2.0, 1.0)], [1.0]),
        ([(1.5, 1.2, 1.2), (1.6, 1.25)], [1.2, 1.25]),
        # Plain steps are slow in all cases, and no case takes their word for the machine's.
        ([(1.25, 1.0, 1.0), (1.1, 0.9), (1.3, 1.05)], [1.0, 0.9, 1.05]),
        # One case alone is broken: the others tell how fast the machine was.
        ([(1.2, 1.2, 1.2), (1.5, 1.2, 1.2), (1.2, 1.21, 1.2)], [1.2, 1.2, 1.2]),
    ],
)
def test_drift_is_what_most_parts_say(votes, speeds):
    named = [dict(zip(("plain", "passes", "draft"), one, strict=False)) for one in votes]
    assert machine_speed(named) == pytest.approx(speeds)


def rules(report):
    return {(finding.rule, finding.severity) for case in report.cases for finding in case.findings}


def test_a_speedup_above_tau_is_impossible(simulator, honest):
    fast = simulator.changed(honest, lambda one: {"draft_s": one.draft_s / 9, "verify_s": one.verify_s / 9})
    assert ("speedup above tau", "fault") in rules(check(fast))
    assert not rules(check(honest))


def test_certain_acceptance_is_flagged(simulator, root):
    everything = simulator.speculation_file(root, 0, (("int4", 3, 1.0, "chat"),), prompts=5)
    nothing = simulator.speculation_file(root, 0, (("int4", 3, 0.0, "chat"),), prompts=4)
    for file in (everything, nothing):
        assert rules(check(file)) == {("certain acceptance", "warning")}


def test_certain_acceptance_of_a_short_run_is_what_good_drafters_show(simulator, root):
    """0.98^n falls below 1 % at n = 228; of lost drafts, only first tokens are tried."""
    for alpha, prompts, tries in ((1.0, 4, 192), (0.0, 3, 192)):
        file = simulator.speculation_file(root, 0, (("int4", 3, alpha, "chat"),), prompts=prompts)
        cycles = [cycle for run in file.runs for cycle in run.cycles]
        assert sum(cycle.drafted if alpha else 1 for cycle in cycles) == tries
        assert not rules(check(file))


def test_a_plain_step_dearer_than_a_wide_pass_is_flagged(simulator, root):
    file = simulator.speculation_file(root, 0, (("int4", 3, 0.9, "chat"),))
    slow = simulator.rewritten(file, lambda run: {"plain_s": tuple(1.5 * t for t in run.plain_s)})
    report = check(slow)
    assert ("verify below plain", "fault") in rules(report)
    assert report.cases[0].fault == "baseline"


def test_a_slow_baseline_shows_without_a_calibration(simulator, honest):
    """Against passes of one position timed beside it, whatever the drafter and however dear its verify pass."""
    slow = simulator.rewritten(honest, lambda run: {"plain_s": tuple(1.25 * t for t in run.plain_s)})
    report = check(slow)
    assert report.verdict == "disagree"
    assert {case.fault for case in report.cases} == {"baseline"}
    for case in report.cases:
        assert any("than a pass of one position" in finding.text for finding in case.findings)
    assert any("timed beside it" in note for note in report.notes)


def test_files_without_passes_of_one_position_are_judged_as_before(simulator, honest):
    def without(run):
        return {"samples": tuple(one for one in run.samples if one.case != "plain")}

    older = simulator.rewritten(honest, without)
    now, then = check(honest), check(older)
    assert [case.verdict for case in now.cases] == [case.verdict for case in then.cases]
    assert [case.layers for case in now.cases] == [case.layers for case in then.cases]
    assert any("only where a verify pass becomes cheaper" in note for note in then.notes)


def test_arms_of_different_length_are_flagged(simulator, root):
    file = simulator.speculation_file(root, 0, prompts=1)
    longer = simulator.rewritten(file, lambda run: {"plain_s": run.plain_s * 2})
    assert ("unequal arms", "fault") in rules(check(longer))
    one_more = simulator.rewritten(file, lambda run: {"plain_s": (*run.plain_s, run.plain_s[0])})
    assert rules(check(one_more)) == {("unequal arms", "warning")}


def test_widths_and_tokens_that_do_not_belong_together_are_flagged(simulator, root):
    file = simulator.speculation_file(root, 0, prompts=1)
    wide = simulator.changed(file, lambda one: {"verify_width": one.verify_width + 1})
    assert ("unequal arms", "warning") in rules(check(wide))
    far = Divergence(index=3, gap=2.0, resolution=0.01)
    apart = simulator.rewritten(file, lambda _: {"divergences": (far,)})
    assert ("unequal arms", "warning") in rules(check(apart))
    near = simulator.rewritten(file, lambda _: {"divergences": (far.model_copy(update={"gap": 0.02}),)})
    assert not rules(check(near))


def test_acceptance_is_what_was_decreed(simulator, root):
    file = simulator.speculation_file(root, 0, (("int4", 6, 0.65, "chat"),), prompts=8)

    def decreed(alpha):
        return simulator.rewritten(file, lambda _: {"forced_acceptance": alpha})

    assert not rules(check(decreed(0.65)))
    report = check(decreed(0.80))
    assert rules(report) == {("acceptance not as decreed", "fault")}
    assert report.cases[0].fault == "tau"


def test_no_pass_is_faster_than_the_machine(simulator, root, reference):
    file = simulator.speculation_file(root, 0, (("int4", 3, 0.9, "chat"),), speed=0.1)
    assert ("utilisation above 1", "warning") in rules(check(file, reference))


def test_a_slower_run_than_the_accepted_one_fails_and_a_faster_one_does_not(simulator, honest):
    slow = simulator.changed(honest, lambda one: {"draft_s": 1.6 * one.draft_s}, "int4")
    report = check(simulator.rewritten(slow, lambda run: slower_samples(run, "draft", 1.6)), baseline=honest)
    deep = next(case for case in report.cases if case.draft_length == 6 and case.name.startswith("int4"))
    assert (deep.verdict, deep.fault) == ("disagree", "draft")
    assert deep.change.difference.value > LIMIT
    back = check(honest, baseline=slow)
    assert back.verdict == "agree"
    assert all(case.change.verdict == "agree" for case in back.cases)


def test_a_baseline_of_other_cases_is_refused(simulator, root, honest):
    with pytest.raises(InputError, match="shares no case"):
        check(simulator.speculation_file(root, 0, (("int4", 3, 0.9, "code"),)), baseline=honest)


@pytest.mark.parametrize("tolerance", [0.0, -0.1, math.nan])
def test_impossible_tolerances_are_refused(honest, tolerance):
    with pytest.raises(InputError, match="must be above 0"):
        check(honest, tolerance=tolerance)


def test_leviathan_stands_beside_and_is_too_high_where_verifying_costs(honest):
    for case in check(honest).cases:
        if case.draft_length == 6 and case.name.startswith("int4"):
            assert case.leviathan > case.measured.value


def test_runs_of_one_drafter_length_and_kind_are_one_case(honest, simulator):
    cases = cases_of(honest)
    assert len(cases) == len(simulator.LONG) == len({case.name for case in cases})
    first = cases[0]
    assert len(first.runs) == 2
    assert first.cycles.tokens.sum() == sum(len(run.plain_s) for run in first.runs)
    assert first.cycles.plain_s.sum() == pytest.approx(sum(sum(run.plain_s) for run in first.runs))


def test_without_components_the_composition_is_not_checked(simulator, root):
    bare = simulator.rewritten(simulator.speculation_file(root, 0), lambda _: {"samples": ()})
    report = check(bare)
    assert report.verdict == "cannot tell"
    assert any("No components were timed" in note for note in report.notes)


def test_components_need_not_be_timed_beside_every_cycle(simulator, honest):
    few = simulator.rewritten(honest, lambda run: {"samples": run.samples[: len(run.samples) // 2]})
    wide = [case for case in check(few).cases if case.name.startswith("int4")]
    assert all(case.verdict == "agree" for case in wide)


def test_a_table_of_step_times_predicts_too(simulator, root, profile, honest):
    """Where no form fits, T(n) itself stands in for the roofline."""
    grid = [("step", 1, n, s, simulator.LAYERS) for n in (1, 2, 3, 4, 5, 7, 8) for s in (64, 128)]
    made = calibrate_decode(simulator.decode_file(root, grid=grid), "d", profile, "mine")
    assert made.calibration.steps
    report = check(honest, Reference(profile, made.calibration))
    assert report.verdict == "agree"
    assert "draft time as timed in the run" in layer(report.cases[0], "roofline").basis
