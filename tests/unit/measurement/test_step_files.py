"""Step times out of every file that holds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rooflines.errors import FileFormatError, InputError
from rooflines.hardware.calibration_files import read_calibration
from rooflines.measurement.files import write_measured
from rooflines.measurement.step_files import read_steps, step_cells

SAMPLES = Path(__file__).parent / "samples"


def test_what_a_tool_printed_is_read_as_it_is():
    found = read_steps(SAMPLES / "llama-bench.json")
    assert found.table.decode(1, 128).seconds == pytest.approx(0.014)
    assert found.table.verify(1, 128, 4).seconds == pytest.approx(0.03)
    assert found.parameters == 134515008
    assert "build 7310 (b9a1c5f)" in found.source
    assert any("last position" in note for note in found.notes)


def test_batched_runs_give_a_table_of_batches():
    table = read_steps(SAMPLES / "llama-batched.txt").table
    assert table.largest_batch == 8
    assert table.decode(8, 192).seconds == pytest.approx(0.015)


def test_passes_of_the_whole_model_are_cells_and_parts_are_not(root, simulator, tmp_path):
    file = simulator.decode_file(root)
    path = tmp_path / "decode.json"
    write_measured(file, path)
    whole = max(sample.depth for sample in file.samples)
    used = [one for one in file.samples if one.case == "step" and one.depth == whole]
    assert 0 < len(used) < len(file.samples)
    assert len(step_cells(file)) == len(used)
    one = used[0]
    table = read_steps(path).table
    assert table.verify(one.batch, one.context, one.new_positions).seconds == pytest.approx(
        np.mean(one.seconds), rel=0.05
    )


def test_constants_are_no_table(root):
    path = root / "docs" / "example-project" / "measurements" / "calibration.toml"
    assert not read_calibration(path).steps
    with pytest.raises(InputError, match="give it as --calibration"):
        read_steps(path)


def test_files_without_passes_are_refused(root):
    with pytest.raises(InputError, match="holds speculation measurements and no passes"):
        read_steps(root / "docs" / "example-project" / "measurements" / "runs.json")
    with pytest.raises(FileFormatError, match="no times of single passes"):
        read_steps(SAMPLES / "vllm-serve.json")


@pytest.mark.parametrize(
    "text", ["", "{", "nothing known", '{"kind": "steps"}', "[1, 2]", '{"kind": ["steps"]}']
)
def test_anything_else_is_refused_in_one_line(tmp_path, text):
    path = tmp_path / "steps.json"
    path.write_text(text)
    with pytest.raises(FileFormatError) as error:
        read_steps(path)
    assert "\n" not in str(error.value)
    assert "steps.json" in str(error.value)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileFormatError, match=r"gone\.json cannot be read"):
        read_steps(tmp_path / "gone.json")
