"""Real speculation, timed: draft, verify, accept, roll back, with plain decoding beside it token by token."""

from __future__ import annotations
