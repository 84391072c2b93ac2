"""From costs to seconds: roofline, smooth maximum, machine and pass times."""

from __future__ import annotations
