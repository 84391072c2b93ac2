"""Alternatives to speculation as people read them."""

from __future__ import annotations

from rooflines.output.tables import quantities, render
from rooflines.studies.alternatives import Alternatives


def alternatives_text(answer: Alternatives, fmt: str) -> str:
    """The answer in words, what it rests on, and the table, as text or Markdown."""
    rows = answer.rows
    columns = {
        "batch": [row["batch"] for row in rows],
        "alternative": [row["alternative"] for row in rows],
        "gain": [row["gain"] for row in rows],
        "product of parts": [row["product_of_parts"] for row in rows],
        "draft": [row["draft_length"] for row in rows],
        "time per token": quantities([row["time_per_token_s"] for row in rows], "s"),
        "memory": quantities([row["memory_bytes"] for row in rows], "byte"),
        "largest batch": [row["largest_batch"] for row in rows],
        "fits": [row["fits"] for row in rows],
        "output": [row["output"] for row in rows],
        "model": [row["model"] for row in rows],
    }
    note = (
        "Acceptance is taken as given for every target: a drafter that was trained on the model as it is may "
        "be accepted less by a quantised one. What quality each alternative costs is not modelled."
    )
    return "\n\n".join((answer.text, f"Basis: {answer.basis}.", render(columns, fmt), note))
