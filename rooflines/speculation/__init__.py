"""Acceptance, drafters, the draft-and-verify cycle, and where it stops paying."""

from __future__ import annotations
