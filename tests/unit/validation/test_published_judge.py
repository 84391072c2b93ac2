"""Verdicts on published speedups and acceptance."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from rooflines.errors import CannotTellError, FileFormatError
from rooflines.rows import as_rows
from rooflines.studies.serve import make_machine
from rooflines.validation.published.acceptance import source_columns, validate_acceptance
from rooflines.validation.published.judge import (
    EVERY_SOURCE,
    document,
    judge_speedups,
    predicted_columns,
    rank_correlation,
    row_columns,
    unused_columns,
    validate_speedups,
)
from rooflines.validation.published.parts import Parts
from rooflines.validation.published.rows import Unused, read_table
from rooflines.validation.published.sources import PRODUCTION

TABLES = Path(__file__).parent / "published"
FILES = (TABLES / "speedups.csv", TABLES / "field.csv")


@pytest.fixture(scope="module")
def found():
    return validate_speedups(FILES, make_machine)


def test_excerpts_of_production_engines_keep_what_was_asked(found):
    """The shipped gate on restated rows: median within 10 %, p90 within 25 %, cycle costs in order."""
    verdict = found.verdicts[0]
    assert (verdict.tier, verdict.source) == (PRODUCTION, EVERY_SOURCE)
    assert verdict.rows >= 15
    assert verdict.median_abs_error <= 0.10
    assert verdict.p90_abs_error <= 0.25
    assert verdict.rank_correlation >= 0.85
    assert verdict.bare_median_abs_error > 2 * verdict.median_abs_error


def test_impossible_rows_are_flagged_and_not_judged(found):
    impossible = [one for one in found.predicted if one.claim.impossible]
    assert len(impossible) == 1
    assert sum(v.impossible for v in found.verdicts if v.source == EVERY_SOURCE) == 1
    judged = sum(v.rows for v in found.verdicts if v.source == EVERY_SOURCE)
    assert judged == len(found.predicted) - 1


def test_a_tier_is_the_sum_of_its_sources(found):
    for tier in {verdict.tier for verdict in found.verdicts}:
        own = [verdict for verdict in found.verdicts if verdict.tier == tier]
        assert own[0].source == EVERY_SOURCE
        assert own[0].rows == sum(verdict.rows for verdict in own[1:])


def test_errors_are_those_of_the_rows(found):
    errors = [
        abs(one.speedup / one.claim.speedup - 1)
        for one in found.predicted
        if one.claim.source == "specbundle2026"
    ]
    verdict = next(one for one in found.verdicts if one.source == "specbundle2026")
    assert verdict.median_abs_error == pytest.approx(np.median(errors))
    assert verdict.p90_abs_error == pytest.approx(np.quantile(errors, 0.9))


def at_speedup(one, speedup):
    tau = one.parts.tokens_per_cycle
    return replace(one, parts=Parts(tau, speedup, tau / 2, tau / 2, 0.0, 0.0, 0.0))


def test_losses_are_counted_where_they_are_foreseen(found):
    rows = [one for one in found.predicted if not one.claim.impossible][:4]
    losing = [replace(one, claim=replace(one.claim, speedup=0.9)) for one in rows]
    # Cycles that cost what makes the speedup 1.04 once and 1.06 otherwise.
    foreseen = [at_speedup(one, 1.04 if one is losing[0] else 1.06) for one in losing]
    verdict = judge_speedups(foreseen)[0]
    assert (verdict.losses, verdict.losses_predicted) == (4, 1)
    assert verdict.sign == 0.0


def test_intervals_hold_most_rows(found):
    production = found.verdicts[0]
    inside = [
        one.low <= one.claim.speedup <= one.high
        for one in found.predicted
        if one.claim.known.tier == PRODUCTION and not one.claim.impossible
    ]
    assert production.coverage == pytest.approx(np.mean(inside))
    assert production.coverage >= 0.8


def test_ranks():
    assert rank_correlation([(1, 10), (2, 20), (3, 30), (4, 40)]) == pytest.approx(1.0)
    assert rank_correlation([(1, 40), (2, 30), (3, 20), (4, 10)]) == pytest.approx(-1.0)
    # Ties at their mean rank: Spearman's of (1, 2, 2, 3) with (1, 2, 3, 4) is 0.9487.
    assert rank_correlation([(1, 1), (2, 2), (2, 3), (3, 4)]) == pytest.approx(0.9486833)
    assert rank_correlation([(1, 1), (2, 2), (3, 3)]) is None
    assert rank_correlation([(1, 1), (1, 2), (1, 3), (1, 4)]) is None


def test_the_document_adds_up(found):
    content = document(found)
    assert content["rows_used"] + content["rows_impossible"] == len(found.predicted)
    assert content["rows_left_out"] == sum(one["rows"] for one in content["left_out"])
    assert any("smallest tensor parallelism" in one for one in content["assumptions"])
    assert all(url.startswith("https://") for url in predicted_columns(found.predicted)["url"])


def test_every_row_of_the_files_is_written_once(found):
    rows = as_rows(row_columns(found))
    given = {(path.name, line) for path in FILES for line, _ in read_table(path, ("hardware",))}
    assert {(row["file"], row["line"]) for row in rows} == given
    assert len(rows) == len(given) == len(found.predicted) + len(found.unused)
    for row in rows:
        assert (row["predicted_speedup"] is None) == bool(row["left_out"])
        assert row["source"]


def test_reasons_are_added_up():
    unused = [Unused("f", 1, "a", "x"), Unused("f", 2, "b", "y"), Unused("f", 3, "a", "x")]
    assert unused_columns(unused) == {"source": ["a", "b"], "rows": [2, 1], "reason": ["x", "y"]}


def test_nothing_to_judge(tmp_path):
    path = tmp_path / "speedups.csv"
    lines = (TABLES / "speedups.csv").read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([lines[0], next(line for line in lines if "Qwama" in line)]), encoding="utf-8")
    with pytest.raises(CannotTellError, match="no row can be priced: no preset has the shape of 'turboderp"):
        validate_speedups([path], make_machine)


@pytest.fixture(scope="module")
def accepted():
    return validate_acceptance([TABLES / "profiles.csv", TABLES / "lengths.csv"])


def test_positions_give_the_printed_length(accepted):
    speculators = next(one for one in accepted.judged if one.source == "vllm_speculators2026")
    assert speculators.predicted == pytest.approx(speculators.measured, abs=0.01)
    assert speculators.worst_error < 0.002 < speculators.constant_error


def test_a_domain_is_held_against_the_mean_of_its_benchmarks(accepted):
    """DSpark, table 1: EAGLE-3 on chat, (2.39 + 2.26 + 2.55) / 3, from the curve of figure 2 within 0.8 %."""
    domain = next(one for one in accepted.judged if one.source == "dspark2026")
    assert domain.measured == pytest.approx(2.40)
    assert domain.worst_error < 0.008
    assert domain.constant_error > 0.15


def test_two_numbers_follow_curves_that_one_does_not(accepted):
    curves = [one for one in accepted.judged if one.kind == "curve"]
    assert max(one.worst_error for one in curves) <= 0.065
    assert max(one.constant_error for one in curves) > 0.14


def test_rates_of_a_chain_say_nothing_of_a_tree(accepted):
    reasons = {one.reason for one in accepted.unused}
    assert "the rates are of a chain and the length beside them is of a tree" in reasons
    assert sum(source_columns(accepted.judged)["rows"]) == len(accepted.judged)


def test_survival_that_rises_and_missing_positions_are_left_out(tmp_path):
    head = "source_key,definition,position,value,gamma,tau_published,task,notes\n"
    body = (
        "a,prefix_survival,1,0.5,2,2.2,x,\na,prefix_survival,2,0.7,2,2.2,x,\n"
        "b,conditional,1,0.5,3,1.7,x,\nb,conditional,3,0.4,3,1.7,x,\n"
        "c,conditional,1,0.5,1,1.5,x,\n"
    )
    path = tmp_path / "profiles.csv"
    path.write_text(head + body, encoding="utf-8")
    found = validate_acceptance([path])
    assert [one.source for one in found.judged] == ["c"]
    reasons = {one.source: one.reason for one in found.unused}
    assert "rises" in reasons["a"]
    assert "missing" in reasons["b"]


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="lacks the column"):
        validate_acceptance([path])
