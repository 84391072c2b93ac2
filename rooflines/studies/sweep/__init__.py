"""Sweeps: the cross product of devices, models, drafters and loads, priced into tidy Parquet."""

from __future__ import annotations
