"""What is said where standard output takes no more."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

FULL = Path("/dev/full")
COMMAND = [sys.executable, "-c", "from rooflines.cli import main; main()", "hardware", "list"]


@pytest.mark.skipif(not FULL.exists(), reason="only Linux has a device that is always full")
def test_a_full_disk_is_one_line():
    with FULL.open("w", encoding="utf-8") as full:
        done = subprocess.run(COMMAND, check=False, stdout=full, stderr=subprocess.PIPE, text=True)  # noqa: S603 - our own command
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "rooflines: cannot write the answer: No space left on device: make room, or give --output"
    ]


def test_a_reader_that_has_seen_enough_is_no_mistake():
    with subprocess.Popen(COMMAND, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:  # noqa: S603 - our own command
        process.stdout.close()
        assert process.stderr.read() == ""
    assert process.returncode == 0
