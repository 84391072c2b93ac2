"""Measured seconds: what files of them hold, and how a machine and a decode loop are measured."""

from __future__ import annotations
