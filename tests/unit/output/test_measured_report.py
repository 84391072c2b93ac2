from __future__ import annotations

import shutil

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.errors import FileFormatError, InputError
from rooflines.measurement.files import write_measured as store
from rooflines.measurement.schema import DecodeFile, Inputs, MachineFacts, Sample, Stability, Step, StepsFile
from rooflines.output.figures.steps import draw_growth, draw_steps, steps_figure
from rooflines.output.figures.style import figure_style, new_figure, save_figure
from rooflines.output.measured_report import write_measured
from rooflines.studies.measured import Curve

CURVES = (
    Curve(1, 16, (1, 2, 8), (0.040, 0.041, 0.050), (0.039, 0.040, 0.048), (0.042, 0.043, 0.055)),
    Curve(4, 512, (1, 2, 8), (0.060, 0.063, 0.090), (0.059, 0.060, 0.088), (0.062, 0.066, 0.095)),
)
HEADER = {"created": "2026-11-30T07:30:00+00:00", "rooflines": "0.1.0", "versions": {"torch": "2.13.0"}}
MACHINE = MachineFacts(
    device="EPYC", kind="cpu", cpu="EPYC", cores=2, threads=1, memory_bytes=10**9, caches=(), system="Linux"
)
STABLE = Stability(run_delay_share=None, iqr_share=0.0, stable=True, advice="held still")


def decode_file(*, stable=True):
    samples = tuple(
        Sample(
            case="step",
            batch=1,
            new_positions=n,
            context=16,
            depth=2,
            cpu_s=(0.04 + 0.001 * n,),
            wall_s=(0.05,),
        )
        for n in (1, 2, 4, 8)
    )
    return DecodeFile(
        **HEADER,
        machine=MACHINE,
        stability=STABLE.model_copy(update={"stable": stable}),
        inputs=Inputs(model="toy", config="{}", dtype="bf16"),
        samples=samples,
    )


def test_times_are_drawn_as_measured_in_milliseconds_with_quartiles():
    with figure_style():
        _, (axis,) = new_figure(4, 3)
        draw_steps(axis, CURVES)
    line = axis.lines[0]
    assert line.get_ydata() == pytest.approx([40, 41, 50])
    assert line.get_markerfacecolor() == "white"
    assert "ms" in axis.get_ylabel()
    assert [text.get_text() for text in axis.get_legend().get_texts()] == [
        "context 16",
        "batch 4, context 512",
    ]
    bars = axis.containers[0][2][0].get_segments()
    assert bars[2][:, 1] == pytest.approx([48, 55])


def test_growth_is_relative_to_the_narrowest_pass_beside_one_by_one():
    with figure_style():
        _, (axis,) = new_figure(4, 3)
        draw_growth(axis, CURVES)
    assert axis.lines[0].get_ydata() == pytest.approx([1, 1.025, 1.25])
    assert axis.lines[1].get_ydata() == pytest.approx([1, 1.05, 1.5])
    one_by_one = axis.lines[2]
    assert one_by_one.get_xdata() == pytest.approx(one_by_one.get_ydata())
    assert axis.get_ylim()[1] == pytest.approx(1.65)


def test_the_figure_is_the_same_bytes_each_time(tmp_path):
    for name in ("one.svg", "two.svg"):
        with figure_style():
            save_figure(steps_figure(CURVES, "title"), tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()


def test_each_file_gets_its_tables_and_passes_their_curve(tmp_path, read_rows):
    store(decode_file(), tmp_path / "decode.json")
    steps = (Step(batch=1, new_positions=1, context=0, seconds=(0.5,)),)
    store(StepsFile(**HEADER, inputs=Inputs(), source="llama-bench b1", steps=steps), tmp_path / "steps.json")
    written = {path.name for path in write_measured(tmp_path)}
    # No profile lies there, so nothing is fitted.
    assert written == {"decode.csv", "decode.md", "decode.svg", "steps.csv", "steps.md"}
    medians = [float(row["median_s"]) for row in read_rows(tmp_path / "decode.csv")]
    assert medians == pytest.approx([0.041, 0.042, 0.044, 0.048])
    assert "toy in bf16, EPYC, 1 thread, torch 2.13.0, 2026-11-30" in (tmp_path / "decode.md").read_text()
    assert "llama-bench b1" in (tmp_path / "steps.md").read_text()


def test_an_unstable_file_says_so_in_its_title(tmp_path):
    store(decode_file(stable=False), tmp_path / "decode.json")
    write_measured(tmp_path)
    assert "UNSTABLE" in (tmp_path / "decode.md").read_text()


def test_a_folder_without_measurements_is_refused(tmp_path):
    with pytest.raises(InputError, match="measure there first"):
        write_measured(tmp_path)
    (tmp_path / "notes.json").write_text("{}")
    with pytest.raises(FileFormatError, match=r"notes\.json"):
        write_measured(tmp_path)
    result = CliRunner().invoke(main, ["report", "measured", "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert "measure there first" in result.stderr


def test_committed_measurements_remake_what_is_committed_beside_them(root, tmp_path, assert_same_report):
    stored = root / "reports" / "measurements"
    if not list(stored.glob("*.json")):
        pytest.skip(
            f"no measurements in {stored}: rooflines measure decode --output {stored / 'decode.json'}"
        )
    folder = tmp_path / "measurements"
    folder.mkdir()
    for source in (*stored.glob("*.json"), stored / "machine.toml"):
        shutil.copy(source, folder)
    result = CliRunner().invoke(main, ["report", "measured", "--output", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert_same_report(folder, stored)
