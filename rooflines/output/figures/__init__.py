"""Figures: functions that draw tidy numbers on an axis; no arithmetic beyond what a picture needs."""

from __future__ import annotations
