"""Fits constants to measured kernel times, and judges predictions against them."""

from __future__ import annotations
