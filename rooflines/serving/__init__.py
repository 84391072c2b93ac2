"""Memory fit and steady state under load."""

from __future__ import annotations
