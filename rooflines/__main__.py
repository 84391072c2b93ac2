"""`python -m rooflines`."""

from __future__ import annotations

from rooflines.cli import main

main()
