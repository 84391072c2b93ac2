"""Devices: cited datasheet facts and the catalogue that finds them; no formulas."""

from __future__ import annotations

from rooflines.hardware.catalogue import list_hardware, load_hardware
from rooflines.hardware.profile import HardwareProfile

__all__ = ["HardwareProfile", "list_hardware", "load_hardware"]
