"""Readers of what other tools measured: their files in, our definitions out."""

from __future__ import annotations
