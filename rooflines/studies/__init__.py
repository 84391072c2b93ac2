"""Questions that people ask, answered as tidy tables."""

from __future__ import annotations
