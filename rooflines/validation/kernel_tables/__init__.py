"""Tables of measured kernels: read by their columns, grouped, and described by our own operators."""

from __future__ import annotations

from rooflines.validation.kernel_tables.read import read_kernel_table
from rooflines.validation.kernel_tables.rows import Group, KernelRows, KernelTable, LeftOut, take

__all__ = ["Group", "KernelRows", "KernelTable", "LeftOut", "read_kernel_table", "take"]
