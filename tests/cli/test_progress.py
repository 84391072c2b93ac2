"""How far a long command is: told on a terminal, silent elsewhere, never in the answer."""

from __future__ import annotations

import sys
import time

import pytest

from rooflines.cli.progress import progress_bar


@pytest.fixture
def terminal(monkeypatch):
    """What rich takes for a terminal of 100 columns."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "100")


@pytest.mark.usefixtures("terminal")
def test_a_terminal_sees_the_count_and_the_unit(capsys):
    with progress_bar("sweep", "rows") as told:
        told(2_500_000, 10_000_000)
    drawn = capsys.readouterr().err
    assert "sweep" in drawn
    assert "2,500,000 of 10,000,000 rows" in drawn


@pytest.mark.usefixtures("terminal")
def test_nothing_is_drawn_between_what_is_told(capsys):
    with progress_bar("decode") as told:
        capsys.readouterr()
        time.sleep(0.3)  # three times what rich's own thread waits
        assert capsys.readouterr().err == ""
        told(1, 12)
        assert "1 of 12" in capsys.readouterr().err


@pytest.mark.usefixtures("terminal")
def test_the_answer_stays_on_standard_output(capsys):
    with progress_bar("sweep") as told:
        told(1, 2)
        sys.stdout.write("the answer\n")
    assert capsys.readouterr().out == "the answer\n"


def test_a_file_or_a_pipe_sees_nothing(capsys, monkeypatch):
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    with progress_bar("machine") as told:
        told(1, 2)
    assert capsys.readouterr() == ("", "")
