"""Acceptance out of files of engines: whose it is, and where it came from."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from rooflines.cli import main

SAMPLES = Path(__file__).parent.parent / "unit" / "measurement" / "samples"
QUESTION = (
    *("--hardware", "h100-sxm5-80gb", "--target", "llama-3.1-8b", "--context", "1024"),
    *("--draft-length", "2", "--calibration", "textbook"),
)


def run(*arguments):
    return CliRunner().invoke(main, [str(word) for word in arguments])


def plan(*more):
    return run("plan", *QUESTION, *more)


def test_the_basis_says_which_file_and_how_many_cycles_in_few_digits():
    result = plan("--drafter", "eagle3", "--acceptance-from", SAMPLES / "vllm-after.prom")
    told = "Acceptance: survival:0.6955,0.4136, from vllm-after.prom, llama, 1,100 cycles."
    assert told in result.stdout
    assert "as given" not in result.stdout


def test_a_file_does_not_hold_for_several_drafters_in_silence():
    result = plan("--drafter", "eagle3", "--drafter", "ngram", "--acceptance-from", SAMPLES / "vllm.log")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert "holds the acceptance of one drafter, and 2 are compared" in line
    assert "eagle3=" in line


def test_each_drafter_takes_its_own_file_or_what_was_given():
    result = plan(
        *("--drafter", "eagle3", "--drafter", "ngram", "--format", "json"),
        *("--acceptance-from", f"eagle3={SAMPLES / 'vllm.log'}", "--acceptance", "ngram=0.3"),
    )
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["acceptances"] == [
        {
            "drafter": "eagle3",
            "acceptance": "survival:0.5,0.33333333,0.16666667",
            "source": "vllm.log, 2 intervals, 4,800 cycles",
        },
        {"drafter": "ngram", "acceptance": "0.3", "source": ""},
    ]
    text = plan(
        *("--drafter", "eagle3", "--drafter", "ngram"),
        *("--acceptance-from", f"eagle3={SAMPLES / 'vllm.log'}", "--acceptance", "ngram=0.3"),
    ).stdout
    assert (
        "eagle3 survival:0.5,0.3333,0.1667, from vllm.log, 2 intervals, 4,800 cycles; ngram 0.3, as given"
        in text
    )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("medusa={}", "names no drafter of this plan"),
        ("{}.missing", "cannot be read"),
    ],
)
def test_files_of_nobody_are_refused(given, message):
    result = plan("--drafter", "eagle3", "--acceptance-from", given.format(SAMPLES / "vllm.log"))
    assert result.exit_code == 2
    assert message in result.stderr


def test_the_figure_of_speedups_takes_files_too(tmp_path):
    pictures = []
    for name, words in (
        ("file", ("--acceptance-from", SAMPLES / "vllm-serve.json")),
        ("given", ("--acceptance", "survival:0.75,0.5,0.25")),
        ("other", ("--acceptance", "0.2")),
    ):
        path = tmp_path / f"{name}.svg"
        result = run("plot", "speedup", *QUESTION, "--drafter", "eagle3", *words, "--output", path)
        assert result.exit_code == 0, result.stderr
        pictures.append(path.read_bytes())
    assert pictures[0] == pictures[1] != pictures[2]


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        (("--acceptance", "0.7,0.6,0.5"), "write conditional:0.7,0.6,0.5"),
        (("--acceptance", "0.7,0.6,0.5"), "or survival:0.7,0.6,0.5"),
        (("--acceptance", "70"), "a share of 70 % is 0.7"),
        (("--acceptance", "2.41"), "accepted-length:2.41@GAMMA"),
        (("--acceptance", "700"), "within 0..1"),
        (("--acceptance", "preset:foo"), "such as dflash-"),
        (("--acceptance", "preset:eagle3"), "did you mean 'eagle3-"),
        (("--acceptance", "0.7", "--context", "4k"), "'4k' may be 4000 or 4096: write the number"),
        (("--acceptance", "0.7", "--drafter", "llama-3.2-1b"), "write independent:llama-3.2-1b"),
        (("--acceptance", "0.7", "--drafter", "Llama-3.2-1B-Instruct"), "independent:Llama-3.2-1B-Instruct"),
    ],
)
def test_what_is_nearly_right_is_told_how_to_be(words, hint):
    result = plan(*(("--drafter", "ngram") if "--drafter" not in words else ()), *words)
    assert result.exit_code == 2
    (line,) = [line for line in result.stderr.splitlines() if "warning" not in line]
    assert hint in line
