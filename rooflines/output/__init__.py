"""Figures, tables, report pages and engine settings; no arithmetic."""

from __future__ import annotations
