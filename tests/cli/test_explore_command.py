from __future__ import annotations

import socket
import sys

import pytest
from click.testing import CliRunner

from rooflines.cli import main


def test_a_port_that_is_taken_is_refused_in_one_line():
    pytest.importorskip("marimo", reason="needs the extra [explore]")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        result = CliRunner().invoke(main, ["explore", "--no-browser", "--port", str(taken.getsockname()[1])])
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert "choose another with --port" in result.stderr


def test_without_marimo_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "marimo", None)
    result = CliRunner().invoke(main, ["explore", "--no-browser"])
    assert result.exit_code == 2
    assert "pip install 'rooflines[explore]'" in result.stderr


def test_a_port_out_of_range_is_refused():
    result = CliRunner().invoke(main, ["explore", "--port", "70000"])
    assert result.exit_code == 2
    assert "70000" in result.stderr
