"""What tests against reference data share: reports as the command makes them, configs, measurements."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from rooflines.cli import main
from rooflines.dtypes import number_format


@pytest.fixture(scope="session")
def make_report(tmp_path_factory):
    """Make one report, of tables in a folder where it needs them, and say where it lies."""

    def made(name, data=None):
        folder = tmp_path_factory.mktemp("reports")
        tables = [] if data is None else ["--data", str(data)]
        result = CliRunner().invoke(main, ["report", name, "--output", str(folder), *tables])
        assert result.exit_code == 0, result.output
        return folder / name

    return made


@pytest.fixture(scope="session")
def measurements(reference_data):
    """Files of measured steps; tests that need them skip where they are not."""
    folder = reference_data / "measurements"
    if not folder.is_dir():
        pytest.skip(f"no measurements at {folder}")
    return folder


@pytest.fixture(scope="session")
def configs(reference_data):
    return reference_data / "configs"


@pytest.fixture(scope="session")
def params(configs, read_rows):
    """What is published or was counted of each config, by its name."""
    return {row["name"]: row for row in read_rows(configs / "params.csv")}


@pytest.fixture(scope="session")
def count_scales():
    """Scales, zero points and indices of all quantised matrices of some layers of width `hidden`."""

    def counted(layers, hidden):
        return sum(
            matrix.copies * number_format(formats[matrix.name]).scales(matrix.outputs, matrix.inputs)
            for layer in layers
            for formats in [dict(layer.formats)]
            for matrix in layer.matrices(hidden)
            if matrix.name in formats
        )

    return counted
