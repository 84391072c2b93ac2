from __future__ import annotations

import csv

import pytest
from click.testing import CliRunner

from rooflines.cli import main

ROOFLINE = [
    "plot", "roofline", "--hardware", "h100-sxm5-80gb", "--model", "llama-2-7b",
    "--phase", "decode", "--phase", "verify", "--batch", "1,8", "--context", "1024",
]  # fmt: skip
SPEEDUP = [
    "plot", "speedup", "--hardware", "a100-sxm4-80gb", "--target", "llama-2-7b",
    "--drafter", "independent:tinyllama-1.1b-v1.0", "--acceptance", "0.8", "--draft-length", "1..4",
    "--batch", "1,8", "--context", "1024",
]  # fmt: skip
PARETO = [
    "plot", "pareto", "--hardware", "h100-sxm5-80gb", "--target", "llama-3.1-8b",
    "--prompt-tokens", "1024", "--output-tokens", "256", "--drafter", "ngram", "--acceptance", "0.5",
    "--max-sequences", "32", "--calibration", "textbook",
]  # fmt: skip
VERIFY = [
    "plot", "verify", "--hardware", "h100-sxm5-80gb", "--hardware", "a100-sxm4-80gb", "--model", "llama-2-7b",
    "--batch", "1,32", "--positions", "1..32", "--context", "1024",
]  # fmt: skip
COMMANDS = [ROOFLINE, SPEEDUP, PARETO, VERIFY]
HEADS = {"svg": b"<?xml", "png": b"\x89PNG", "pdf": b"%PDF"}


def _run(arguments, *more):
    return CliRunner().invoke(main, [*arguments, *more])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[1])
@pytest.mark.parametrize("kind", list(HEADS))
def test_a_figure_is_written_in_the_format_of_its_ending(tmp_path, command, kind):
    path = tmp_path / f"figure.{kind}"
    result = _run(command, "--output", str(path))
    assert result.exit_code == 0, result.output
    assert path.read_bytes().startswith(HEADS[kind])


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[1])
def test_two_runs_write_the_same_bytes(tmp_path, command):
    for name in ("one.svg", "other.svg"):
        assert _run(command, "--output", str(tmp_path / name)).exit_code == 0
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "other.svg").read_bytes()


def test_devices_models_and_phases_share_a_roofline(tmp_path):
    more = ["--hardware", "a100-sxm4-80gb", "--model", "tinyllama-1.1b-v1.0", "--phase", "prefill"]
    alone, together = tmp_path / "alone.svg", tmp_path / "together.svg"
    assert _run(ROOFLINE, "--output", str(alone)).exit_code == 0
    assert _run(ROOFLINE, *more, "--output", str(together)).exit_code == 0
    assert together.read_bytes().count(b"<use") > 2 * alone.read_bytes().count(b"<use")


@pytest.mark.parametrize(
    ("command", "more"),
    [
        (ROOFLINE, ["--hardware", "h100-sxm5-80gbb"]),
        (ROOFLINE, ["--model", "llama-2-7bb"]),
        (ROOFLINE, ["--batch", "0"]),
        (ROOFLINE, ["--tp", "7"]),
        (ROOFLINE, ["--weight-dtype", "bf17"]),
        (ROOFLINE, ["--output", "figure.jpg"]),
        (ROOFLINE, ["--output", "missing/figure.svg"]),
        (SPEEDUP, ["--acceptance", "1.2"]),
        (SPEEDUP, ["--draft-length", "-1"]),
        (SPEEDUP, ["--drafter", "independent:qwen3-0.6b"]),
        (SPEEDUP, ["--output", "figure.jpg"]),
        (VERIFY, ["--positions", "0..4"]),
        (VERIFY, ["--batch", "1..9"]),
        (VERIFY, ["--hardware", "h100-sxm5-80gbb"]),
        (VERIFY, ["--output", "figure.jpg"]),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(tmp_path, monkeypatch, command, more):
    monkeypatch.chdir(tmp_path)
    result = _run(command, "--output", "figure.svg", *more)
    assert result.exit_code == 2, result.output
    assert len(result.output.strip().splitlines()) == 1
    assert "Traceback" not in result.output
    assert not list(tmp_path.iterdir())


def test_the_pareto_curve_is_the_one_beside_a_capacity_answer(tmp_path):
    alone, beside = tmp_path / "alone.svg", tmp_path / "beside.svg"
    assert _run(PARETO, "--output", str(alone)).exit_code == 0
    assert _run(["capacity", *PARETO[2:]], "--figure", str(beside)).exit_code == 0
    assert alone.read_bytes() == beside.read_bytes()


def test_a_promise_shows_on_the_pareto_curve(tmp_path):
    alone, promised = tmp_path / "alone.svg", tmp_path / "promised.svg"
    assert _run(PARETO, "--output", str(alone)).exit_code == 0
    assert _run(PARETO, "--slo-tpot", "30 ms", "--output", str(promised)).exit_code == 0
    assert alone.read_bytes() != promised.read_bytes()


def test_what_is_odd_about_a_plan_is_said_beside_its_figure(tmp_path):
    odd = [*SPEEDUP, "--acceptance", "conditional:0.8,0.7", "--output", str(tmp_path / "figure.svg")]
    odd.remove("0.8")
    odd.remove("--acceptance")
    result = _run(odd)
    assert result.exit_code == 0, result.output
    assert "rooflines: warning: " in result.stderr


def test_many_batches_draw_without_complaint(tmp_path):
    result = _run([*SPEEDUP[:-4], "--batch", "1..37", "--context", "64", "--output", str(tmp_path / "f.png")])
    assert result.exit_code == 0, result.output
    assert result.stderr == ""


def test_what_is_drawn_of_verifying_stands_in_its_table(tmp_path):
    table = tmp_path / "verify.csv"
    result = _run(VERIFY, "--rows", str(table), "--output", str(tmp_path / "verify.svg"))
    assert result.exit_code == 0, result.output
    rows = list(csv.DictReader(table.read_text(encoding="utf-8").splitlines()))
    assert {(row["hardware"], row["batch"], row["positions"]) for row in rows} == {
        (device, batch, str(width))
        for device in ("h100-sxm5-80gb", "a100-sxm4-80gb")
        for batch in ("1", "32")
        for width in range(1, 33)
    }
    for row in rows:
        assert float(row["relative"]) == pytest.approx(float(row["verify_s"]) / float(row["step_s"]))
