"""What each engine means by its words: definitions of acceptance, names of settings, and what they count."""

from __future__ import annotations
