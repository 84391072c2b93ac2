"""llama-bench's own files import, and hold the times that tests/golden/test_llama_draft_slower.py restates."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rooflines.measurement.files import read_measured, write_measured
from rooflines.measurement.readers.catalogue import import_file, recognise
from rooflines.measurement.readers.steps import steps_file
from rooflines.measurement.step_files import step_cells
from rooflines.timing.step_times import StepTable


@pytest.fixture(scope="module")
def restated(root, load_module):
    return load_module(root / "tests" / "golden" / "test_llama_draft_slower.py")


def imported(measurements, name):
    return import_file("llama-bench", measurements / f"llama_bench_{name}_T1.json")


def means_ms(found):
    return {
        (step.new_positions, step.context): 1e3 * sum(step.seconds) / len(step.seconds)
        for step in found.steps
    }


@pytest.mark.parametrize(("name", "constant"), [("q4", "Q4_MS"), ("f32", "F32_MS")])
def test_restated_times_are_those_of_the_files(measurements, restated, name, constant):
    measured = means_ms(imported(measurements, name))
    for width, time in getattr(restated, constant).items():
        if width == 1:  # -p 1 is one cold pass: -n is the step of plain decoding
            assert (1, 128) not in measured
            continue
        assert measured[width, 128] == pytest.approx(time, rel=1e-5)


def test_decoding_one_by_one_is_timed_per_token(measurements, restated):
    assert means_ms(imported(measurements, "q4"))[1, 144] == pytest.approx(restated.Q4_DECODE_MS, rel=1e-5)


@pytest.mark.parametrize("name", ["q4", "f32"])
def test_means_are_those_that_llama_bench_prints(measurements, name):
    path = measurements / f"llama_bench_{name}_T1.json"
    printed = {
        (row["n_prompt"] or 1, row["n_depth"] + row["n_gen"] // 2): row["avg_ns"] / max(row["n_gen"], 1) / 1e6
        for row in json.loads(path.read_text(encoding="utf-8"))
        if row["n_prompt"] != 1
    }
    assert recognise(path.read_text(encoding="utf-8"), path.name).kind == "llama-bench"
    measured = means_ms(imported(measurements, name))
    assert measured.keys() == printed.keys()
    assert all(measured[cell] == pytest.approx(printed[cell], rel=1e-6) for cell in printed)


def test_a_table_times_verify_passes_of_every_width_in_between(measurements, tmp_path):
    """From llama-bench to T(n) through the file that a plan reads."""
    path = tmp_path / "steps.json"
    write_measured(steps_file(imported(measurements, "q4"), created="now", written_by="1"), path)
    table = StepTable.of(step_cells(read_measured(path)))
    ratio = table.verify(1.0, 128.0, np.array([2.0, 4.0, 8.0])).seconds / table.decode(1.0, 128.0).seconds
    # Far from free: a textbook roofline gives 1.0 for all of them.
    np.testing.assert_allclose(ratio, [1.62, 2.36, 4.16], rtol=0.01)


def test_the_cold_pass_of_one_token_is_left_out_and_told(measurements):
    notes = imported(measurements, "q4").notes
    assert any("-p 1 after 128 tokens, a single pass of 16.82 ms" in note for note in notes)
