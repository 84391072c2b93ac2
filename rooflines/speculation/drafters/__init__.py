"""Drafters: how many passes of what width each family needs for a draft, and what it holds in memory."""

from __future__ import annotations
