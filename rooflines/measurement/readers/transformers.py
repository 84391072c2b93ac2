"""Hugging Face assisted generation: cycles as they pass through `update_candidate_strategy`.

Transformers prints nothing about acceptance. What it counts, `candidate_length` and `n_matches` of each
cycle (generation/utils.py, `_assisted_decoding`, 5.23), can be written as JSON lines by a few lines of code,
which docs/engines.md gives.
"""

from __future__ import annotations

from collections import Counter

from rooflines.errors import FileFormatError
from rooflines.measurement.readers.files import number, records_of, require
from rooflines.measurement.readers.results import AcceptanceRecord, Imported, Source


def read_cycles(source: Source) -> Imported:
    """JSON lines of ``{"candidate_length": 5, "n_matches": 3}``, one a cycle.

    Raises:
        FileFormatError: fields missing, more matches than candidates, or nothing drafted.
    """
    records = records_of(source.text, source.where)
    cycles = []
    for record in records:
        require(
            record,
            ("candidate_length", "n_matches"),
            source.where,
            "Transformers (docs/engines.md records it)",
        )
        drafted, accepted = (
            int(number(record, key, source.where)) for key in ("candidate_length", "n_matches")
        )
        if accepted > drafted:
            raise FileFormatError(
                f"{source.where}: {accepted} matches of {drafted} candidates are impossible"
            )
        cycles.append((drafted, accepted))
    with_draft = [(drafted, accepted) for drafted, accepted in cycles if drafted > 0]
    if not with_draft:
        raise FileFormatError(f"{source.where}: nothing was drafted, so there is no acceptance to read")
    longest = max(drafted for drafted, _ in with_draft)
    counts = Counter(accepted for _, accepted in with_draft)
    lengths = {drafted for drafted, _ in with_draft}
    notes = []
    if len(lengths) > 1:
        notes.append(
            f"drafts were {min(lengths)} to {longest} tokens long (set num_assistant_tokens_schedule to "
            "constant and assistant_confidence_threshold to 0 to fix them): later positions look worse than "
            "they are"
        )
    if len(with_draft) < len(cycles):
        notes.append(f"{len(cycles) - len(with_draft)} of {len(cycles)} cycles had no draft: left out")
    return Imported(
        source=f"Transformers assisted generation, {source.where}",
        acceptance=(
            AcceptanceRecord(
                label=f"{len(with_draft)} cycles",
                definition="histogram",
                values=tuple(float(counts[accepted]) for accepted in range(longest + 1)),
                draft_length=longest,
                cycles=len(with_draft),
                tokens_per_cycle=1.0 + sum(accepted for _, accepted in with_draft) / len(with_draft),
                meaning="n_matches over cycles with candidates",
            ),
        ),
        notes=tuple(notes),
    )
