"""Reports that need no tables from outside, and figures that the command line draws."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.cli.report import REPORTS


@pytest.mark.parametrize("name", list(REPORTS))
def test_committed_tables_are_what_the_command_makes(name, root, make_report, assert_same_report):
    assert_same_report(make_report(name), root / "reports" / name)


def test_figures_are_the_same_bytes_each_time(make_report):
    first, second = (make_report("plan") / "plan.svg" for _ in range(2))
    assert first != second
    assert first.read_bytes() == second.read_bytes()


def test_medusa_fig9_says_what_the_paper_says(root, read_rows):
    rows = read_rows(root / "reports" / "medusa-fig9" / "llama-7b.csv")
    assert len(rows) == 6 * 49
    attention = [
        float(r["intensity_flop_per_byte"]) for r in rows if (r["series"], r["phase"]) == ("qk/pv", "ar")
    ]
    assert max(attention) / min(attention) < 1.05  # nearly constant whatever batch or length
    linear = [r for r in rows if r["series"] == "qkv" and r["phase"] == "ar"]
    for row in linear:  # on a line whose slope is the bandwidth
        rate = float(row["attained_flop_per_s"]) / float(row["intensity_flop_per_byte"])
        assert rate == pytest.approx(1.935e12)
    by_batch = {row["batch"]: row["intensity_flop_per_byte"] for row in linear}
    assert all(
        row["intensity_flop_per_byte"] == by_batch[row["batch"]] for row in linear
    )  # whatever the length
    init = [r for r in rows if r["phase"] == "init" and r["series"] == "up/gate/down"]
    bound = [float(r["attained_flop_per_s"]) == pytest.approx(312e12) for r in init]
    assert sum(bound) / len(bound) > 0.9  # mostly compute bound


def test_magnitudes_lie_where_they_are_expected(root, read_rows):
    rows = read_rows(root / "reports" / "magnitudes" / "magnitudes.csv")
    ours = {row["quantity"]: float(row["ours"]) for row in rows}
    assert ours["H100-SXM ridge point, bf16"] == pytest.approx(295.4, abs=0.1)
    assert ours["decode intensity, bf16 weights"] == pytest.approx(1.0, abs=0.05)
    assert ours["decode intensity, fp8 weights"] == pytest.approx(2.0, abs=0.15)
    assert 1.0 <= ours["verify of 4 + 1 positions, batch 1, textbook"] <= 1.2
    # The rule of thumb counts bytes; all-reduces and floors of kernels of a small model on four devices add to it.
    assert 0.2 <= ours["independent 1B draft of 4 for 70B on 4 x H100"] <= 0.3
    assert 0.15 <= ours["EAGLE: one layer and the head, 5 steps, for Llama-2-7B"] <= 0.3
    assert ours["7B draft for a 13B target, cost ratio"] == pytest.approx(0.52, abs=0.01)
    assert 1.0 < ours["the same, best speedup at acceptance 0.8"] <= 1.2
    assert ours["tokens per cycle at acceptance 0.8, draft length 4"] == pytest.approx(3.3616)


def test_an_unknown_report_is_one_line(tmp_path):
    result = CliRunner().invoke(main, ["report", "medusa", "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert result.output.strip().count("\n") == 0
    assert "medusa-fig9" in result.output


@pytest.mark.parametrize("ending", ["svg", "png", "pdf"])
def test_rooflines_are_drawn(ending, tmp_path):
    file = tmp_path / f"roofline.{ending}"
    command = (
        "plot roofline --hardware a100-sxm4-80gb --hardware h100-sxm5-80gb --model llama-3.1-8b --context 512"
    )
    result = CliRunner().invoke(main, [*command.split(), "--batch", "1,16", "--output", str(file)])
    assert result.exit_code == 0, result.output
    assert file.stat().st_size > 5_000


def test_a_figure_of_unknown_kind_is_refused(tmp_path):
    command = "plot roofline --hardware l40s --model llama-3.1-8b --context 512 --output"
    result = CliRunner().invoke(main, [*command.split(), str(tmp_path / "roofline.jpeg")])
    assert result.exit_code == 2
    assert ".svg" in result.output


def test_speedup_of_what_does_not_fit_is_not_drawn(tmp_path):
    command = (
        "plot speedup --hardware l40s --target llama-3.1-70b --drafter independent:llama-3.2-1b --acceptance 0.8 "
        "--context 512 --output"
    )
    result = CliRunner().invoke(main, [*command.split(), str(tmp_path / "speedup.svg")])
    assert result.exit_code == 2
    assert "fits" in result.output
