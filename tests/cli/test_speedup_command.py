from __future__ import annotations

import csv
import io
import json

import pytest
from click.testing import CliRunner

from rooflines.cli import main


def run(acceptance="0.8", draft_length="4", cost_ratio="0.05", *more):
    options = ["--acceptance", acceptance, "--draft-length", draft_length, "--cost-ratio", cost_ratio, *more]
    return CliRunner().invoke(main, ["speedup", *options])


def rows(acceptance="0.8", draft_length="4", cost_ratio="0.05", *more):
    return json.loads(run(acceptance, draft_length, cost_ratio, *more, "--format", "json").stdout)["rows"]


def test_the_textbook_example():
    """alpha 0.8, gamma 4, c 0.05: (1 - 0.8^5) / 0.2 = 3.3616 tokens at 1.2 steps."""
    first = run().stdout.splitlines()[0]
    assert (
        first
        == "Draft 4 tokens: 3.3616 tokens per cycle at 1.2 target steps a cycle = 2.801x over plain decoding."
    )
    (row,) = rows()
    assert row["tokens_per_cycle"] == pytest.approx(3.3616, rel=1e-12)
    assert row["speedup"] == row["leviathan_speedup"] == pytest.approx(3.3616 / 1.2)
    assert row["break_even_cost_ratio"] == pytest.approx(2.3616 / 4)


@pytest.mark.parametrize("fmt", ["text", "markdown", "csv", "json"])
def test_every_format_has_every_draft_length(fmt):
    result = run("0.8", "2,4", "0.05", "--format", fmt)
    assert result.exit_code == 0
    assert "2.44" in result.stdout
    assert "3.36" in result.stdout


def test_csv_reads_back():
    table = list(csv.DictReader(io.StringIO(run("0.8", "0..2", "0.05", "--format", "csv").stdout)))
    assert [row["draft_length"] for row in table] == ["0", "1", "2"]
    assert table[0]["break_even_acceptance"] == ""
    assert float(table[2]["tokens_per_cycle"]) == pytest.approx(2.44)


def test_a_dear_verify_parts_the_general_form_from_leviathan():
    (row,) = rows("0.8", "4", "0.05", "--verify-cost", "1.5", "--overhead", "0.1")
    assert row["cycle_cost"] == pytest.approx(1.8)
    assert row["speedup"] == pytest.approx(3.3616 / 1.8)
    assert row["leviathan_speedup"] == pytest.approx(3.3616 / 1.2)


def test_drafting_nothing_is_plain_decoding_whatever_a_verify_costs():
    row = rows("0.8", "0..1", "0.05", "--verify-cost", "1.5", "--overhead", "0.1")[0]
    assert (row["speedup"], row["cycle_cost"], row["tokens_per_cycle"]) == (1.0, 1.0, 1.0)
    assert row["break_even_acceptance"] is row["break_even_cost_ratio"] is None


def test_at_the_break_even_the_speedup_is_one():
    (row,) = rows("0.8", "4", "0.2", "--verify-cost", "1.3")
    (at,) = rows(repr(row["break_even_acceptance"]), "4", "0.2", "--verify-cost", "1.3")
    assert at["speedup"] == pytest.approx(1.0, abs=1e-9)
    (at,) = rows("0.8", "4", repr(row["break_even_cost_ratio"]), "--verify-cost", "1.3")
    assert at["speedup"] == pytest.approx(1.0)


def test_what_does_not_pay_is_said():
    result = run("0.2", "4", "0.5")
    assert result.stdout.startswith("Do not speculate: the best of these draft lengths, 4, gives 0.41")
    document = json.loads(run("0.2", "4", "0.5", "--format", "json").stdout)
    assert document["answer"]["best_draft_length"] == 0


def test_lists_of_rates_and_their_reach():
    table = rows("conditional:0.9,0.5", "1..3", "0")
    assert [row["tokens_per_cycle"] for row in table] == pytest.approx([1.9, 2.35, 2.575])
    assert [row["extrapolated"] for row in table] == [False, False, True]
