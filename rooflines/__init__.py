"""Roofline analysis and performance modelling of speculative decoding."""

from __future__ import annotations

__version__ = "0.1.0"
