"""FLOPs and bytes of every operator and pass; no device, no seconds."""

from __future__ import annotations
